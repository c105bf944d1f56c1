"""The reading methods of Queue: filters, shapes, errors."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from flexiq_django import JobStatus, Queue
from flexiq_django.exceptions import InvalidOptionError, UnknownStatusError
from flexiq_django.store import inspect
from flexiq_django.store.scope import Scope
from tests.api.conftest import open_first
from tests.factories import (
    NOW,
    ArchivedJobFactory,
    DeadLetterFactory,
    JobErrorFactory,
    JobFactory,
    PeriodicTaskFactory,
    WorkerFactory,
    later,
)

pytestmark = pytest.mark.django_db

NOW_MS = int(NOW.timestamp() * 1000)
NONE = {"pending": 0, "running": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 0}


@pytest.mark.parametrize("as_given", [str, lambda key: key, lambda key: key.hex, "{%s}".__mod__])
@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_job_is_found_by_its_id(queue: Queue, factory: Any, as_given: Any) -> None:
    job = factory()

    found = queue.get_job(as_given(job.id))

    assert found is not None
    assert found.id == str(job.id)


@pytest.mark.parametrize(
    "job_id", ["", "nonsense", None, 5, "01900000-0000-7000-8000-000000000000", "\x00"]
)
def test_what_cannot_be_an_id_finds_nothing(queue: Queue, job_id: Any) -> None:
    JobFactory()

    assert queue.get_job(job_id) is None
    assert queue.job_errors(job_id) == []
    assert not queue.cancel_job(job_id)
    assert not queue.cancel_running_job(job_id)


@pytest.mark.parametrize("status", JobStatus)
def test_a_listing_of_one_status(queue: Queue, status: JobStatus) -> None:
    for state in ({}, {"running": True}, {"waiting": True, "status": "paused"}):
        JobFactory(**state)
    for word in ("complete", "failed", "dead", "cancelled"):
        JobFactory(ended=True, status=word)

    assert [job.status for job in queue.list_jobs(status)] == [status.value]
    assert [job.status for job in queue.list_jobs(status.value)] == [status.value]


def test_completed_is_another_word_for_complete(queue: Queue) -> None:
    job = JobFactory(ended=True)
    JobFactory()

    assert [found.id for found in queue.list_jobs(status="completed")] == [str(job.id)]


@pytest.mark.parametrize("status", ["canceled", "PENDING", "", "queued", 5])
def test_an_unknown_status_is_told_the_known_ones(queue: Queue, status: Any) -> None:
    with pytest.raises(UnknownStatusError, match=r"^status is .*; allowed are pending, running"):
        queue.list_jobs(status)


def test_a_listing_pages_from_the_newest(queue: Queue) -> None:
    ids = [str(JobFactory().id) for _ in range(60)][::-1]

    assert [job.id for job in queue.list_jobs()] == ids[:50]
    assert [job.id for job in queue.list_jobs(limit=5, offset=50)] == ids[50:55]
    assert queue.list_jobs(limit=0) == queue.list_jobs(offset=99) == []


@pytest.mark.parametrize("method", ["list_jobs", "list_archived", "dead_letters"])
@pytest.mark.parametrize("page", [{"limit": -1}, {"offset": -1}, {"limit": 1.5}, {"limit": None}])
def test_a_bad_page_is_refused(queue: Queue, method: str, page: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=f"^{next(iter(page))} is"):
        getattr(queue, method)(**page)


def test_filters_of_a_listing(queue: Queue) -> None:
    job = JobFactory(queue="mail", task_name="app.send")
    JobFactory(queue="mail")
    JobFactory(task_name="app.send")

    found = queue.list_jobs(queue="mail", task_name="app.send", status="pending")

    assert [each.id for each in found] == [str(job.id)]
    assert queue.list_jobs(queue="Mail") == queue.list_jobs(task_name="unknown") == []


def test_handles_of_a_listing_need_no_further_look(
    queue: Queue, django_assert_num_queries: Any
) -> None:
    for _ in range(3):
        JobFactory()

    open_first(queue)
    with django_assert_num_queries(1):
        assert [job.status for job in queue.list_jobs()] == ["pending"] * 3


def test_counts(queue: Queue) -> None:
    assert queue.stats() == NONE
    assert queue.stats_by_queue() == {}
    JobFactory(queue="mail")
    JobFactory(ended=True)

    assert queue.stats() == {**NONE, "pending": 1, "completed": 1}
    assert queue.stats_by_queue() == {
        "mail": {**NONE, "pending": 1}, "default": {**NONE, "completed": 1}
    }  # fmt: skip
    assert queue.stats_by_queue("mail") == {**NONE, "pending": 1}
    assert queue.stats_by_queue("unknown") == NONE
    assert list(queue.stats()) == list(NONE)


def test_errors_are_plain_values(queue: Queue) -> None:
    job = JobFactory()
    row = JobErrorFactory(job_id=job.id, attempt=0, failed_at=later(1.5))

    (found,) = queue.job_errors(str(job.id))

    assert found == {
        "id": str(row.id), "job_id": str(job.id), "attempt": 0, "error": "ValueError: bad",
        "failed_at": NOW_MS + 1_500,
    }  # fmt: skip
    handle = queue.get_job(str(job.id))
    assert handle is not None
    assert handle.errors == [found]


def test_dead_letters_are_plain_values(queue: Queue) -> None:
    row = DeadLetterFactory(metadata="m", dlq_retry_count=2)

    assert queue.dead_letters() == [
        {
            "id": str(row.id), "original_job_id": str(row.original_job_id), "queue": "default",
            "task_name": "app.tasks.work", "error": "ValueError: bad", "retry_count": 3,
            "failed_at": NOW_MS, "metadata": "m", "dlq_retry_count": 2,
        }
    ]  # fmt: skip


def test_ten_dead_letters_unless_told_otherwise(queue: Queue) -> None:
    for _ in range(12):
        DeadLetterFactory()

    assert len(queue.dead_letters()) == 10
    assert len(queue.dead_letters(limit=50, offset=5)) == 7


def test_archived_jobs(queue: Queue) -> None:
    first, last = ArchivedJobFactory(completed_at=NOW), ArchivedJobFactory(completed_at=later(1))

    assert [job.id for job in queue.list_archived()] == [str(last.id), str(first.id)]
    assert [job.id for job in queue.list_archived(limit=1, offset=1)] == [str(first.id)]


def test_workers_are_plain_values(queue: Queue) -> None:
    now = inspect.read_clock(Scope())
    fresh = {"started_at": NOW, "heartbeat_at": later(2), "lease_at": now + timedelta(hours=1)}
    WorkerFactory(id="a", queues='["x"]', config='{"b": 1}', deployment_id="blue", **fresh)
    WorkerFactory(id="gone", lease_at=now - timedelta(seconds=1))

    (found,) = queue.workers()

    assert json.loads(json.dumps(found)) == found
    assert found == {
        "id": "a", "namespace": "default", "hostname": "host", "pid": 42, "queues": ["x"],
        "executor": "threads", "concurrency": 8, "deployment_id": "blue", "version": "0",
        "state": "running", "clock_skew_ms": 0, "started_at": NOW_MS,
        "heartbeat_at": NOW_MS + 2_000, "config": {"b": 1},
    }  # fmt: skip


def test_schedules_are_plain_values(queue: Queue) -> None:
    PeriodicTaskFactory(name="b", queue="slow", last_run_at=later(-5), missed_count=4)
    PeriodicTaskFactory(name="a", enabled=False)

    first, second = queue.list_periodic()

    assert (first["name"], first["enabled"], first["last_run"]) == ("a", False, None)
    assert second == {
        "name": "b", "task_name": "app.tasks.work", "cron_expr": "0 * * * *", "timezone": "UTC",
        "queue": "slow", "enabled": True, "last_run": NOW_MS - 5_000, "next_run": NOW_MS,
        "missed": 4,
    }  # fmt: skip


def test_how_long_the_oldest_ready_job_has_waited(queue: Queue) -> None:
    assert queue.oldest_ready_seconds() is None
    now = inspect.read_clock(Scope())
    JobFactory(scheduled_at=now - timedelta(seconds=100))
    JobFactory(scheduled_at=now)

    waited = queue.oldest_ready_seconds()

    assert waited is not None
    assert 100 <= waited < 160


def test_ids_are_texts(queue: Queue) -> None:
    (job,) = queue.list_jobs() or [queue.enqueue("app.work")]

    assert isinstance(job.id, str)
    assert str(UUID(job.id)) == job.id
