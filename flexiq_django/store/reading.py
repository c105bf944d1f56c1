"""Read jobs with their arguments: the next one, one with all that is known of it, all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.models import ArchivedJob, DeadLetter, Job, JobError, TaskMetric
from flexiq_django.models.job import BaseJob
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

_COMMON = tuple(field.name for field in BaseJob._meta.local_fields)
#: What only a job that is not archived has.
_LIVE = ("lease_at", "expires_at")


class StoredCall(NamedTuple):
    """A job and its encoded arguments."""

    id: UUID
    status: str
    payload: str


class QueuedCall(NamedTuple):
    """A job, its queue and its encoded arguments."""

    id: UUID
    queue: str
    status: str
    payload: str


def next_ready(scope: Scope, lanes: Sequence[str]) -> StoredCall | None:
    """The best job that is ready in these lanes; nothing is locked."""
    if not lanes:
        return None
    best = open_database(scope).heads(lanes, 1) if len(lanes) > 1 else lanes
    row = (
        Job.objects.using(scope.using)
        .filter(namespace=scope.namespace, ready_lane__in=best)
        .order_by("rank", "scheduled_at", "id")
        .values_list(*StoredCall._fields)
        .first()
    )
    return None if row is None else StoredCall._make(row)


def lane_of(scope: Scope, job_id: UUID) -> str | None:
    """The lane in which a job is ready; ``None`` if it is not."""
    rows = Job.objects.using(scope.using).filter(namespace=scope.namespace, id=job_id)
    return rows.values_list("ready_lane", flat=True).first()


def read(scope: Scope, job_id: UUID) -> dict[str, Any] | None:
    """All columns of a job that mean something to a reader; ``None`` if there is no such job.

    Of an archived one ``lease_at`` and ``expires_at`` are ``None``, and ``is_archived`` says so.
    """
    # In this order: a job that is being archived between the two looks is seen by the second.
    for model, names in ((Job, _COMMON + _LIVE), (ArchivedJob, _COMMON)):
        rows = model.objects.using(scope.using).filter(namespace=scope.namespace, id=job_id)
        row = rows.values(*names).first()
        if row is not None:
            return {**dict.fromkeys(_LIVE), **row, "is_archived": model is ArchivedJob}
    return None


def errors_of(scope: Scope, job_id: UUID) -> list[dict[str, Any]]:
    """The failed attempts of a job with the workers that made them, oldest first."""
    rows = JobError.objects.using(scope.using).filter(namespace=scope.namespace, job_id=job_id)
    return [dict(row) for row in rows.order_by("id").values(
        "attempt", "error", "worker_id", "failed_at"
    )]  # fmt: skip


def executions_of(scope: Scope, job_id: UUID) -> list[tuple[datetime, float]]:
    """When the attempts of a job ended that ran, and their durations in milliseconds."""
    rows = TaskMetric.objects.using(scope.using).filter(namespace=scope.namespace, job_id=job_id)
    return list(rows.order_by("id").values_list("recorded_at", "duration_ms"))


def letter_of(scope: Scope, job_id: UUID) -> UUID | None:
    """The dead letter of a job; ``None`` if it has none."""
    rows = DeadLetter.objects.using(scope.using).filter(
        namespace=scope.namespace, original_job_id=job_id
    )
    return rows.values_list("id", flat=True).first()


def calls_of(scope: Scope, *, task_name: str) -> list[QueuedCall]:
    """The jobs of a task that are not archived, oldest first."""
    rows = Job.objects.using(scope.using).filter(namespace=scope.namespace, task_name=task_name)
    return [QueuedCall._make(row) for row in rows.order_by("id").values_list(*QueuedCall._fields)]


def all_jobs(scope: Scope, *, limit: int | None, offset: int = 0) -> Iterator[StoredCall]:
    """Jobs that are not archived, by status, then the larger priority, then the older."""
    rows = (
        Job.objects.using(scope.using)
        .filter(namespace=scope.namespace)
        .order_by("status", "rank", "created_at", "id")
        .values_list(*StoredCall._fields)
    )
    end = None if limit is None else offset + limit
    return (StoredCall._make(row) for row in rows[offset:end])
