"""Read-only questions: one job, listings, counts, errors, dead letters."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Min, QuerySet

from flexiq_django.core.records import JobRecord
from flexiq_django.core.status import COUNT_KEYS, JobStatus, count_key
from flexiq_django.models import (
    ArchivedJob,
    DeadLetter,
    Job,
    JobDependency,
    JobError,
    QueueState,
)
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

_FIELDS = JobRecord._fields


def get(scope: Scope, job_id: UUID) -> JobRecord | None:
    """A job, live or archived, or ``None`` when the namespace has none with this id."""
    for model in (Job, ArchivedJob):
        row = (
            model.objects.using(scope.using)
            .filter(namespace=scope.namespace, id=job_id)
            .values_list(*_FIELDS)
            .first()
        )
        if row is not None:
            return JobRecord._make(row)
    return None


def get_result(scope: Scope, job_id: UUID) -> str | None:
    """The encoded return value of a job, or ``None`` when it has none."""
    for model in (Job, ArchivedJob):
        row = (
            model.objects.using(scope.using)
            .filter(namespace=scope.namespace, id=job_id)
            .values_list("result")
            .first()
        )
        if row is not None:
            return row[0]
    return None


def list_jobs(
    scope: Scope,
    *,
    status: JobStatus | None,
    queue: str | None,
    task_name: str | None,
    limit: int,
    offset: int,
    everywhere: bool,
) -> list[JobRecord]:
    """Jobs that are not archived, newest first. ``everywhere`` looks into every namespace."""
    jobs: QuerySet[Job] = Job.objects.using(scope.using)
    if not everywhere:
        jobs = jobs.filter(namespace=scope.namespace)
    wanted = {"status": status and status.value, "queue": queue, "task_name": task_name}
    jobs = jobs.filter(**{name: value for name, value in wanted.items() if value is not None})
    rows = jobs.order_by("-id").values_list(*_FIELDS)[offset : offset + limit]
    return [JobRecord._make(row) for row in rows]


def list_archived(scope: Scope, *, limit: int, offset: int) -> list[JobRecord]:
    """Archived jobs, the one that ended last first."""
    rows = (
        ArchivedJob.objects.using(scope.using)
        .filter(namespace=scope.namespace)
        .order_by("-completed_at", "-id")
        .values_list(*_FIELDS)[offset : offset + limit]
    )
    return [JobRecord._make(row) for row in rows]


def stats(scope: Scope) -> dict[str, int]:
    """How many jobs of the namespace are in each state."""
    counts = dict.fromkeys(COUNT_KEYS, 0)
    for by_status in stats_by_queue(scope).values():
        for key, count in by_status.items():
            counts[key] += count
    return counts


def stats_by_queue(scope: Scope, queue: str | None = None) -> dict[str, dict[str, int]]:
    """The counts of every queue that has a job, or of one."""
    jobs = Job.objects.using(scope.using).filter(namespace=scope.namespace)
    if queue is not None:
        jobs = jobs.filter(queue=queue)
    counts: dict[str, dict[str, int]] = {}
    rows = jobs.order_by().values_list("queue", "status").annotate(number=Count("id"))
    for name, status, number in rows:
        by_status = counts.setdefault(name, dict.fromkeys(COUNT_KEYS, 0))
        key = count_key(status)
        # A paused job waits, for a person: the seven states fold into six counts.
        key = "pending" if key == JobStatus.PAUSED.value else key
        by_status[key] += number
    return counts


def oldest_ready(scope: Scope) -> datetime | None:
    """Since when the job has been claimable that has waited longest; ``None`` when none waits."""
    rows = Job.objects.using(scope.using).filter(
        namespace=scope.namespace, ready_lane__isnull=False
    )
    return rows.aggregate(oldest=Min("scheduled_at"))["oldest"]  # type: ignore[no-any-return]


class ReadyLane(NamedTuple):
    """The jobs that can be claimed now from one lane."""

    name: str
    jobs: int
    oldest: datetime


def ready_lanes(scope: Scope) -> list[ReadyLane]:
    """Every lane in which a job waits, by name: how many, and since when the oldest."""
    rows = (
        Job.objects.using(scope.using)
        .filter(namespace=scope.namespace, ready_lane__isnull=False)
        .order_by("ready_lane")
        .values_list("ready_lane")
        .annotate(jobs=Count("id"), oldest=Min("scheduled_at"))
    )
    return [ReadyLane._make(row) for row in rows]


def paused_queues(scope: Scope) -> list[str]:
    """The names of the queues that are paused, sorted."""
    rows = QueueState.objects.using(scope.using).filter(
        namespace=scope.namespace, paused_at__isnull=False
    )
    return list(rows.order_by("name").values_list("name", flat=True))


def job_errors(scope: Scope, job_id: UUID) -> list[dict[str, Any]]:
    """The failed attempts of a job, oldest first."""
    rows = (
        JobError.objects.using(scope.using)
        .filter(namespace=scope.namespace, job_id=job_id)
        .order_by("id")
        .values("id", "job_id", "attempt", "error", "failed_at")
    )
    return [dict(row) for row in rows]


def dead_letters(scope: Scope, *, limit: int, offset: int) -> list[dict[str, Any]]:
    """Dead letters, the latest failure first."""
    rows = (
        DeadLetter.objects.using(scope.using)
        .filter(namespace=scope.namespace)
        .order_by("-failed_at", "-id")
        .values(
            "id",
            "original_job_id",
            "queue",
            "task_name",
            "error",
            "retry_count",
            "failed_at",
            "metadata",
            "dlq_retry_count",
        )[offset : offset + limit]
    )
    return [dict(row) for row in rows]


def related(scope: Scope, job_id: UUID, *, upwards: bool) -> list[UUID]:
    """The jobs that a job depends on (``upwards``), or that depend on it."""
    ours, theirs = ("job_id", "parent_id") if upwards else ("parent_id", "job_id")
    rows: Iterable[UUID] = (
        JobDependency.objects.using(scope.using)
        .filter(namespace=scope.namespace, **{ours: job_id})
        .order_by("id")
        .values_list(theirs, flat=True)
    )
    return list(rows)


def read_clock(scope: Scope) -> datetime:
    """What time it is for the database."""
    database = open_database(scope)
    moment = database.read(database.fetch("SELECT {now}")[0][0])
    assert moment is not None  # noqa: S101 - a clock never answers NULL
    return moment
