"""Read-only questions: one job and its history, ready lanes, paused queues, the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Min

from flexiq_django.core.records import JobRecord
from flexiq_django.models import ArchivedJob, Job, JobError, QueueState, ReplayHistory
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


class StoredResult(NamedTuple):
    """The encoded return value of a job; ``None`` when it has none."""

    text: str | None


def get_result(scope: Scope, job_id: UUID) -> StoredResult | None:
    """What a job returned, or ``None`` when there is no such job in the namespace."""
    for model in (Job, ArchivedJob):
        row = (
            model.objects.using(scope.using)
            .filter(namespace=scope.namespace, id=job_id)
            .values_list("result")
            .first()
        )
        if row is not None:
            return StoredResult._make(row)
    return None


def oldest_ready(scope: Scope) -> datetime | None:
    """Since when the job has been claimable that has waited longest; ``None`` when none waits."""
    rows = Job.objects.using(scope.using).filter(
        namespace=scope.namespace, ready_lane__isnull=False
    )
    return rows.aggregate(oldest=Min("scheduled_at"))["oldest"]  # type: ignore[no-any-return]


def lane_names(scope: Scope) -> list[str]:
    """The stored names of the lanes in which jobs wait, sorted. Costs one index entry per lane."""
    return open_database(scope).lanes()


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


def replays(scope: Scope, job_id: UUID) -> list[dict[str, Any]]:
    """The replays of a job, newest first."""
    rows = (
        ReplayHistory.objects.using(scope.using)
        .filter(namespace=scope.namespace, original_job_id=job_id)
        .order_by("-replayed_at", "-id")
        .values(
            "id",
            "original_job_id",
            "replay_job_id",
            "replayed_at",
            "original_error",
            "replay_error",
        )
    )
    return [dict(row) for row in rows]


def read_clock(scope: Scope) -> datetime:
    """What time it is for the database."""
    database = open_database(scope)
    moment = database.read(database.fetch("SELECT {now}")[0][0])
    assert moment is not None  # noqa: S101 - a clock never answers NULL
    return moment
