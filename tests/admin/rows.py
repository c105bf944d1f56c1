"""Rows for the pages to show, with valid defaults."""

from datetime import UTC, datetime, timedelta
from typing import Any

from flexiq_django.core.errors import describe_exception
from flexiq_django.core.payload import encode_call, encode_result
from flexiq_django.models import (
    ArchivedJob,
    DeadLetter,
    Job,
    JobDependency,
    JobError,
    PeriodicTask,
    QueueState,
    TaskLog,
    TaskMetric,
    TaskState,
    Worker,
)
from flexiq_django.store.ids import new_id
from flexiq_django.store.keys import active_key

NOW = datetime(2026, 7, 4, 12, 30, 15, 250_000, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>{{ 7|add:7 }}\u202e\"'&"


def call(*args: Any, **kwargs: Any) -> str:
    """Stored arguments."""
    return encode_call(args, kwargs, limit_bytes=50_000_000)


def failure(message: str) -> str:
    """A stored exception with a traceback."""
    try:
        raise ValueError(message)
    except ValueError as error:
        return describe_exception(error, limit_bytes=65_536)


def job_fields(status: str = "pending", **given: Any) -> dict[str, Any]:
    """The columns of a job in some state, as the check constraints want them."""
    by_status: dict[str, dict[str, Any]] = {
        "pending": {"ready_lane": given.get("queue", "mail")},
        "running": {
            "lease_at": NOW + timedelta(minutes=1),
            "token": 7,
            "attempt": 1,
            "started_at": NOW,
            "worker_id": "web-1-4711-a0b1c2",
        },
        "paused": {},
        "complete": {
            "attempt": 1, "started_at": NOW, "completed_at": NOW + timedelta(seconds=2),
            "result": encode_result({"rows": 28_000}, limit_bytes=10_000),
            "worker_id": "web-1-4711-a0b1c2",
        },
        "dead": {"attempt": 4, "retry_count": 4, "started_at": NOW, "completed_at": NOW},
        "cancelled": {"completed_at": NOW},
    }  # fmt: skip
    return {
        "id": new_id(),
        "namespace": "default",
        "queue": "mail",
        "task_name": "shop.tasks.send_receipt",
        "status": status,
        "payload": call(4711, "ada@example.org", language="en"),
        "created_at": NOW - timedelta(minutes=2),
        "scheduled_at": NOW - timedelta(minutes=2),
        "updated_at": NOW,
        "max_retries": 3,
        **by_status[status],
        **given,
    }


def make_job(status: str = "pending", **given: Any) -> Job:
    """One live job."""
    if given.get("unique_key") and status in ("pending", "running", "paused"):
        given.setdefault("active_key", active_key(given["unique_key"]))
    return Job.objects.create(**job_fields(status, **given))


def make_archived(status: str = "complete", **given: Any) -> ArchivedJob:
    """One archived job."""
    fields = job_fields(status, **given)
    for name in ("ready_lane", "lease_at", "token"):
        fields.pop(name, None)
    return ArchivedJob.objects.create(archived_at=NOW + timedelta(days=1), **fields)


def make_dead_letter(job: Job | None = None, **given: Any) -> DeadLetter:
    """One dead letter."""
    return DeadLetter.objects.create(
        **{
            "id": new_id(),
            "namespace": "default",
            "original_job_id": job.pk if job else new_id(),
            "queue": "mail",
            "task_name": "shop.tasks.send_receipt",
            "payload": call(4711),
            "error": failure("no such address"),
            "retry_count": 3,
            "max_retries": 3,
            "failed_at": NOW,
            **given,
        }
    )


def make_error(job: Job | ArchivedJob, attempt: int = 0, **given: Any) -> JobError:
    """One failed attempt."""
    fields = {
        "id": new_id(),
        "namespace": "default",
        "job_id": job.pk,
        "attempt": attempt,
        "error": failure("no such address"),
        "worker_id": "web-1-4711-a0b1c2",
        "failed_at": NOW,
    }
    return JobError.objects.create(**{**fields, **given})


def make_log(job: Job | ArchivedJob, message: str = "half of it is done", **given: Any) -> TaskLog:
    """One log line."""
    fields = {
        "id": new_id(),
        "namespace": "default",
        "job_id": job.pk,
        "task_name": job.task_name,
        "level": "info",
        "message": message,
        "logged_at": NOW,
    }
    return TaskLog.objects.create(**{**fields, **given})


def make_edge(job: Job, parent: Job | ArchivedJob, *, is_open: bool = True) -> JobDependency:
    """``job`` waits for ``parent``."""
    return JobDependency.objects.create(
        namespace="default", job_id=job.pk, parent_id=parent.pk, is_open=is_open
    )


def make_worker(**given: Any) -> Worker:
    """One worker, alive for the next hour."""
    now = datetime.now(UTC)
    return Worker.objects.create(
        **{
            "id": "web-1-4711-a0b1c2",
            "namespace": "default",
            "hostname": "web-1",
            "pid": 4711,
            "queues": "null",
            "executor": "threads",
            "concurrency": 8,
            "version": "0.1.0",
            "config": '{"lock_grace_seconds": 60}',
            "state": "running",
            "started_at": now,
            "heartbeat_at": now,
            "turned_at": now,
            "lease_at": now + timedelta(hours=1),
            **given,
        }
    )


def make_schedule(**given: Any) -> PeriodicTask:
    """One schedule."""
    return PeriodicTask.objects.create(
        **{
            "namespace": "default",
            "name": "nightly",
            "task_name": "shop.tasks.clean",
            "cron": "0 2 * * *",
            "timezone": "Europe/Dublin",
            "payload": call(),
            "misfire_policy": "once",
            "misfire_window_ms": 3_600_000,
            "next_run_at": datetime.now(UTC) + timedelta(hours=1),
            **given,
        }
    )


def open_queue(name: str = "mail", **given: Any) -> QueueState:
    """A queue that is neither paused nor limited, but was."""
    return QueueState.objects.create(namespace="default", name=name, **given)


def pause_queue(name: str = "mail", **given: Any) -> QueueState:
    """A paused queue."""
    fields = {"namespace": "default", "name": name, "paused_at": NOW}
    return QueueState.objects.create(**fields | given)


def make_task(name: str = "shop.tasks.pay", **given: Any) -> TaskState:
    """A task that is limited, but not revoked."""
    return TaskState.objects.create(
        **{"namespace": "default", "name": name, "rate_limit": "10/s", **given}
    )


def make_metric(
    task: str = "shop.tasks.pay", ms: float = 20, *, ago: float = 90, **given: Any
) -> TaskMetric:
    """An execution that ended some seconds ago."""
    return TaskMetric.objects.create(
        **{
            "namespace": "default",
            "task_name": task,
            "job_id": new_id(),
            "duration_ms": ms,
            "succeeded": True,
            "recorded_at": datetime.now(UTC) - timedelta(seconds=ago),
            **given,
        }
    )
