"""Counts and measures of Queue."""

from datetime import timedelta
from typing import Any

import pytest

from flexiq_django import Queue
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.store import inspect
from flexiq_django.store.scope import Scope
from tests.factories import (
    ArchivedJobFactory,
    JobFactory,
    PeriodicTaskFactory,
    QueueStateFactory,
    TaskMetricFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

NONE = {"pending": 0, "running": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 0}


def test_counts(queue: Queue) -> None:
    assert queue.stats() == NONE
    assert queue.stats_by_queue() == {}
    JobFactory(queue="mail")
    JobFactory(ended=True)
    JobFactory(namespace="other")
    ArchivedJobFactory()

    assert queue.stats() == {**NONE, "pending": 1, "completed": 1}
    assert queue.stats_by_queue() == {
        "mail": {**NONE, "pending": 1}, "default": {**NONE, "completed": 1}
    }  # fmt: skip
    assert queue.stats_by_queue("mail") == {**NONE, "pending": 1}
    assert queue.stats_by_queue("unknown") == NONE
    assert list(queue.stats()) == list(NONE)


def test_all_queues_that_are_known(queue: Queue) -> None:
    assert queue.stats_all_queues() == {}

    @queue.task(name="app.loud", queue="of-a-task")
    def loud() -> None: ...

    JobFactory(queue="with-jobs")
    QueueStateFactory(name="paused")
    QueueStateFactory(name="limited", paused_at=None, max_concurrent=3)
    PeriodicTaskFactory(name="a", queue="of-a-schedule")
    PeriodicTaskFactory(name="b", queue=None, task_name="app.loud")
    now = inspect.read_clock(Scope())
    WorkerFactory(queues='["served", "with-jobs"]', lease_at=now + timedelta(hours=1))
    WorkerFactory(queues='["gone"]', lease_at=now - timedelta(hours=1))
    WorkerFactory(queues="null", lease_at=now + timedelta(hours=1))

    names = ["limited", "of-a-schedule", "of-a-task", "paused", "served", "with-jobs"]
    assert queue.stats_all_queues() == {
        name: {**NONE, "pending": int(name == "with-jobs")} for name in names
    }
    assert list(queue.stats_all_queues()) == names


def test_a_task_or_schedule_without_a_queue_uses_the_default_one(queue: Queue) -> None:
    PeriodicTaskFactory(queue=None, task_name="app.unknown")
    assert queue.stats_all_queues() == {"default": NONE}

    other = Queue("other")
    assert other.stats_all_queues() == {}
    other.task(name="app.quiet")(lambda: None)
    assert other.stats_all_queues() == {"default": NONE}


def test_counts_of_queues_are_the_callers_own(queue: Queue) -> None:
    QueueStateFactory(name="a")
    QueueStateFactory(name="b")

    found = queue.stats_all_queues()
    found["a"]["pending"] = 5

    assert found["b"] == NONE


def test_how_long_the_oldest_ready_job_has_waited(queue: Queue) -> None:
    assert queue.oldest_ready_seconds() is None
    now = inspect.read_clock(Scope())
    JobFactory(scheduled_at=now - timedelta(seconds=100))
    JobFactory(scheduled_at=now)

    waited = queue.oldest_ready_seconds()

    assert waited is not None
    assert 100 <= waited < 160


# --- executions -----------------------------------------------------------------------------------


def execute(ago: float, duration_ms: float = 5, **fields: Any) -> None:
    """An execution recorded so many seconds ago."""
    recorded_at = inspect.read_clock(Scope()) - timedelta(seconds=ago)
    TaskMetricFactory(recorded_at=recorded_at, duration_ms=duration_ms, **fields)


def test_metrics_by_task(queue: Queue) -> None:
    assert queue.metrics() == {}
    for number in range(1, 11):
        execute(10, number + 0.123, task_name="a", succeeded=number > 2)
    execute(10, 3, task_name="b")
    execute(10, 3, task_name="c", namespace="other")

    found = queue.metrics()

    assert found == {
        "a": {
            "count": 10, "success_count": 8, "failure_count": 2, "avg_ms": 5.62, "p50_ms": 6.12,
            "p95_ms": 10.12, "p99_ms": 10.12, "min_ms": 1.12, "max_ms": 10.12,
        },
        "b": {
            "count": 1, "success_count": 1, "failure_count": 0, "avg_ms": 3, "p50_ms": 3,
            "p95_ms": 3, "p99_ms": 3, "min_ms": 3, "max_ms": 3,
        },
    }  # fmt: skip
    assert queue.metrics("b") == {"b": found["b"]}
    assert queue.metrics(task_name="unknown") == {}


def test_metrics_of_a_time(queue: Queue) -> None:
    execute(3_000, task_name="new")
    execute(4_000, task_name="old")

    assert set(queue.metrics()) == {"new"}
    assert set(queue.metrics(since=5_000.5)) == {"new", "old"}
    assert queue.metrics(since=0) == {}


def test_a_time_series(queue: Queue) -> None:
    assert queue.metrics_timeseries() == []
    now = inspect.read_clock(Scope())
    execute(290, 1)
    execute(280, 3, succeeded=False)
    execute(90, 7, task_name="b")

    first, second = queue.metrics_timeseries(since=300, bucket=60)

    start = first.pop("timestamp")
    assert 0 <= start - int((now.timestamp() - 300) * 1000) < 60_000  # in whole milliseconds
    assert second.pop("timestamp") == start + 180_000
    assert first == {
        "count": 2, "success": 1, "failure": 1, "avg_ms": 2, "p50_ms": 3, "p95_ms": 3, "p99_ms": 3
    }  # fmt: skip
    assert second == {
        "count": 1, "success": 1, "failure": 0, "avg_ms": 7, "p50_ms": 7, "p95_ms": 7, "p99_ms": 7
    }  # fmt: skip
    assert len(queue.metrics_timeseries("b", since=300)) == 1
    assert len(queue.metrics_timeseries(since=300, bucket=0.5)) == 3


@pytest.mark.parametrize("method", ["metrics", "metrics_timeseries", "query_logs"])
@pytest.mark.parametrize("since", [-1, float("nan"), float("inf"), None, "60"])
def test_a_bad_time_is_refused(queue: Queue, method: str, since: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^since is"):
        getattr(queue, method)(since=since)


@pytest.mark.parametrize("bucket", [0, -1, float("nan"), None, "60"])
def test_a_bad_bucket_is_refused(queue: Queue, bucket: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^bucket is"):
        queue.metrics_timeseries(bucket=bucket)


@pytest.mark.parametrize("method", ["metrics", "metrics_timeseries", "query_logs"])
def test_a_task_name_that_is_no_text_is_refused(queue: Queue, method: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"^task_name is a int"):
        getattr(queue, method)(5)
