"""What Queue does to jobs: cancel, ask to stop, progress, archive."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from flexiq_django import Queue
from flexiq_django.exceptions import InvalidOptionError, JobNotActiveError
from flexiq_django.models import ArchivedJob, Job
from flexiq_django.store import archive, inspect
from flexiq_django.store.vendors import open_database
from tests.concurrency import DEADLINE, OtherConnection, blocked_connections
from tests.factories import ArchivedJobFactory, JobFactory, at, later
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db

STATES: dict[str, dict[str, Any]] = {
    "ready": {},
    "scheduled": {"scheduled": True},
    "waiting": {"waiting": True},
    "running": {"running": True},
    "complete": {"ended": True},
    "dead": {"ended": True, "status": "dead"},
    "cancelled": {"ended": True, "status": "cancelled"},
}
PENDING = {"ready", "scheduled", "waiting"}


@pytest.mark.parametrize("state", STATES)
def test_what_each_does_by_the_state_of_the_job(queue: Queue, state: str) -> None:
    def fresh() -> str:
        return str(JobFactory(**STATES[state]).id)

    assert queue.cancel_running_job(fresh()) is (state == "running")
    assert queue.cancel_job(fresh()) is (state in PENDING)
    if state in PENDING | {"running"}:
        key = fresh()
        queue.update_progress(key, 40)
        assert Job.objects.get(id=key).progress == 40
    else:
        with pytest.raises(JobNotActiveError):
            queue.update_progress(fresh(), 40)


def test_a_cancel_takes_the_dependents_along(queue: Queue) -> None:
    parent = queue.enqueue("app.a")
    child = queue.enqueue("app.b", depends_on=parent)
    grandchild = queue.enqueue("app.c", depends_on=child)

    assert queue.cancel_job(parent.id)
    assert not queue.cancel_job(parent.id)

    for handle in (parent, child, grandchild):
        handle.refresh()
        assert handle.status == "cancelled"
    assert (parent.error, grandchild.error) == (None, f"dependency cancelled: {parent.id}")


def test_a_request_may_be_repeated(queue: Queue) -> None:
    job = JobFactory(running=True)

    assert queue.cancel_running_job(str(job.id))
    assert queue.cancel_running_job(str(job.id))
    assert Job.objects.get().cancel_requested_at is not None


@pytest.mark.parametrize("job_id", ["", "x", "01900000-0000-7000-8000-000000000000"])
def test_progress_of_an_unknown_job(queue: Queue, job_id: str) -> None:
    with pytest.raises(RuntimeError, match=f"^job {job_id} is unknown or has ended"):
        queue.update_progress(job_id, 5)


@pytest.mark.parametrize(
    ("value", "error"),
    [(-1, InvalidOptionError), (101, ValueError), (1.5, TypeError), ("1", TypeError)],
)
def test_bad_progress_is_refused_before_the_job_is_looked_for(
    queue: Queue, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"^progress is"):
        queue.update_progress("unknown", value)


def test_archived_jobs_are_past_all_this(queue: Queue) -> None:
    key = str(ArchivedJobFactory().id)

    assert not queue.cancel_job(key)
    assert not queue.cancel_running_job(key)
    with pytest.raises(JobNotActiveError):
        queue.update_progress(key, 5)


def test_archiving_moves_all_that_is_old_in_batches(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 2)
    for _ in range(5):
        JobFactory(ended=True)
    JobFactory()

    assert queue.archive() == 5
    assert (Job.objects.count(), ArchivedJob.objects.count()) == (1, 5)
    assert queue.stats()["completed"] == 0
    assert queue.archive() == 0


def test_archiving_ends_though_jobs_keep_growing_old(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 1)
    old = [JobFactory(ended=True) for _ in range(3)]
    young: list[Job] = []

    def end_another(execute: Any, sql: str, *rest: Any) -> Any:
        if f"INSERT INTO {archive.ARCHIVE}" in sql and len(young) < 9:
            ended_at = inspect.read_clock(queue.scope) + timedelta(milliseconds=5)
            young.append(JobFactory(ended=True, completed_at=ended_at))
        return execute(sql, *rest)

    with connection.execute_wrapper(end_another):
        assert queue.archive(0) == len(old)

    assert set(Job.objects.values_list("id", flat=True)) == {job.id for job in young}


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_archiving_goes_on_where_somebody_else_was_faster(
    queue: Queue, other_connection: OtherConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 2)
    for _ in range(5):
        JobFactory(ended=True)

    with transaction.atomic():
        assert archive.archive_batch(queue.scope, older_than_ms=0) == 2
        slower = other_connection.submit(queue.archive)
        wait_until(blocked_connections, DEADLINE)

    assert slower.result(DEADLINE) == 3
    assert (Job.objects.count(), ArchivedJob.objects.count()) == (0, 5)


@pytest.mark.parametrize(
    ("older_than", "moved"), [(0, 1), (-1e300, 1), (-5, 1), (1e300, 0), (10**400, 0),
                              (float("inf"), 0), (float("-inf"), 1)]
)  # fmt: skip
def test_any_age_is_a_number_of_seconds(queue: Queue, older_than: Any, moved: int) -> None:
    JobFactory(ended=True)

    assert queue.archive(older_than) == moved


def test_by_default_a_day_old(queue: Queue) -> None:
    JobFactory(ended=True, completed_at=later(10**9))
    assert queue.archive() == 0


@pytest.mark.parametrize("older_than", [None, "5", True])
def test_another_age_is_refused(queue: Queue, older_than: Any) -> None:
    with pytest.raises(TypeError, match=r"^older_than is"):
        queue.archive(older_than)


def test_no_number_is_refused(queue: Queue) -> None:
    with pytest.raises(InvalidOptionError, match=r"^older_than is NaN"):
        queue.archive(float("nan"))
