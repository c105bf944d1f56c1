"""archive_batch moves ended jobs out of the hot table, unchanged."""

import pytest
from django.db import transaction

from flexiq_django.core.status import TERMINAL
from flexiq_django.models import ArchivedJob, Job, JobDependency, JobError
from flexiq_django.models.job import BaseJob
from flexiq_django.store import archive, inspect
from flexiq_django.store.archive import archive_batch
from flexiq_django.store.vendors import batches, open_database
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import (
    NOW,
    JobDependencyFactory,
    JobErrorFactory,
    JobFactory,
    at,
    later,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_an_ended_job_moves_with_all_its_columns(status: str) -> None:
    job = JobFactory(
        ended=True, status=status, result='"r"', error="e", progress=50, priority=-3,
        retry_count=2, timeout_ms=9, result_ttl_ms=8, purge_at=later(8), unique_key="k",
        metadata="m", notes="{}", worker_id="w", cancel_requested_at=NOW, origin="periodic",
        schedule="nightly", session_id="s", user_id="u", deployment_id="d", trace_id="t",
        attempt_id="a", trial_id="b", pause_reason="p",
    )  # fmt: skip
    kept = [field.name for field in BaseJob._meta.local_fields]
    before = Job.objects.values(*kept).get()

    assert archive_batch(at(100), older_than_ms=99_000) == 1

    assert Job.objects.count() == 0
    assert ArchivedJob.objects.values(*kept).get() == before
    assert ArchivedJob.objects.get().archived_at == later(100)
    assert inspect.get(at(), job.id) is not None


def test_every_column_of_the_archive_is_filled() -> None:
    columns = {field.column for field in ArchivedJob._meta.local_fields}

    assert columns == {*archive._KEPT, "archived_at"}


@pytest.mark.parametrize(
    ("age_ms", "moves"), [(0, True), (9_999, True), (10_000, False), (-1, True), (10**12, False)]
)
def test_only_what_is_older(age_ms: int, moves: bool) -> None:
    JobFactory(ended=True)

    assert archive_batch(at(10), older_than_ms=age_ms) == (1 if moves else None)
    assert ArchivedJob.objects.count() == moves


def test_a_negative_age_moves_what_ends_right_now() -> None:
    JobFactory(ended=True)

    assert archive_batch(at(), older_than_ms=0) is None
    assert archive_batch(at(), older_than_ms=-1_000) == 1


def test_jobs_that_have_not_ended_stay() -> None:
    for state in ({}, {"scheduled": True}, {"waiting": True}, {"running": True}):
        JobFactory(**state)
    JobFactory(waiting=True, status="paused")

    assert archive_batch(at(10**6), older_than_ms=-(10**9)) is None
    assert Job.objects.count() == 5


def test_children_stay_where_they_are() -> None:
    job = JobFactory(ended=True)
    JobErrorFactory(job_id=job.id)
    JobDependencyFactory(parent_id=job.id, is_open=False)

    archive_batch(at(1), older_than_ms=0)

    assert JobError.objects.count() == JobDependency.objects.count() == 1


def test_the_oldest_go_first_and_no_more_than_the_limit() -> None:
    jobs = [JobFactory(ended=True, completed_at=later(-number)) for number in range(5)]

    assert archive_batch(at(1), older_than_ms=0, limit=2) == 2
    assert set(Job.objects.values_list("id", flat=True)) == {job.id for job in jobs[:3]}
    assert archive_batch(at(1), older_than_ms=0, limit=2) == 2
    assert archive_batch(at(1), older_than_ms=0, limit=2) == 1
    assert archive_batch(at(1), older_than_ms=0, limit=2) is None


def test_without_a_limit_a_batch_is_what_the_database_likes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 2)
    for _ in range(3):
        JobFactory(ended=True)

    assert [archive_batch(at(1), older_than_ms=0) for _ in range(3)] == [2, 1, None]


def test_a_batch_larger_than_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_CHARS", 100)
    for _ in range(9):
        JobFactory(ended=True)

    assert archive_batch(at(1), older_than_ms=0) == 9
    assert (Job.objects.count(), ArchivedJob.objects.count()) == (0, 9)


def test_archiving_stays_in_its_namespace() -> None:
    JobFactory(ended=True, namespace="other")

    assert archive_batch(at(1), older_than_ms=0) is None
    assert archive_batch(at(1, namespace="other"), older_than_ms=0) == 1


def test_a_job_is_always_in_exactly_one_table() -> None:
    JobFactory(ended=True)
    with transaction.atomic():
        archive_batch(at(1), older_than_ms=0)
        assert (Job.objects.count(), ArchivedJob.objects.count()) == (0, 1)
        transaction.set_rollback(True)

    assert (Job.objects.count(), ArchivedJob.objects.count()) == (1, 0)


@pytest.mark.django_db(transaction=True)
def test_two_that_archive_at_once_move_each_job_once() -> None:
    for _ in range(40):
        JobFactory(ended=True)

    moved = run_in_threads([lambda: archive_batch(at(1), older_than_ms=0)] * 2)

    assert sum(each or 0 for each in moved) == 40
    assert (Job.objects.count(), ArchivedJob.objects.count()) == (0, 40)


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_job_that_comes_back_to_life_meanwhile_stays(
    other_connection: OtherConnection,
) -> None:
    revived, ended = JobFactory(ended=True), JobFactory(ended=True)

    def revive() -> None:
        transaction.set_autocommit(False)
        Job.objects.filter(id=revived.id).update(
            status="pending", completed_at=None, ready_lane="default"
        )

    other_connection.run(revive)
    moved = other_connection.submit(transaction.commit)

    assert archive_batch(at(1), older_than_ms=0) in (1, 2)
    moved.result(10)
    assert Job.objects.filter(id=revived.id).count() + ArchivedJob.objects.count() == 2
    assert not ArchivedJob.objects.exclude(status="complete").exists()
    assert not Job.objects.filter(id=ended.id).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_one_batch_leaves_a_job_that_somebody_holds(other_connection: OtherConnection) -> None:
    held, free = JobFactory(ended=True), JobFactory(ended=True)

    def hold() -> None:
        transaction.set_autocommit(False)
        Job.objects.filter(id=held.id).update(progress=50)

    other_connection.run(hold)

    assert archive_batch(at(1), older_than_ms=0) == 1
    assert archive_batch(at(1), older_than_ms=0) == 0
    assert [job.id for job in ArchivedJob.objects.all()] == [free.id]
    other_connection.run(transaction.rollback)
    assert archive_batch(at(1), older_than_ms=0) == 1
    assert archive_batch(at(1), older_than_ms=0) is None
