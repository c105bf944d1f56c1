"""Read-only questions: one job and its history, ready lanes, paused queues, the clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Min

from flexiq_django.core.records import JobRecord
from flexiq_django.models import ArchivedJob, Job, JobError, QueueState, ReplayHistory
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS
from flexiq_django.store.vendors.batches import chunks

_FIELDS = JobRecord._fields

#: A job that was due longer ago is worth a look at when it became ready.
LATE = timedelta(seconds=1)
#: How many jobs of a lane are looked at: at first, and if all of these came late.
LOOKS = (500, 10_000)


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
    """Since when the job has been ready that waits longest; ``None`` when none is ready."""
    return min((each.oldest for each in ready_lanes(scope)), default=None)


def lane_names(scope: Scope) -> list[str]:
    """The stored names of the lanes in which jobs wait, sorted. Costs one index entry per lane."""
    return open_database(scope).lanes()


class ReadyLane(NamedTuple):
    """The jobs that can be claimed now from one lane, and since when one has been waiting."""

    name: str
    jobs: int
    oldest: datetime


def ready_lanes(scope: Scope) -> list[ReadyLane]:
    """Every lane in which a job waits, by name: how many, and since when the one waits longest.

    A job is ready from when it is due or, where it had to wait for another, was claimed and given
    back or came late, from when it was put into its lane.
    """
    now = read_clock(scope)
    rows = (
        Job.objects.using(scope.using)
        .filter(namespace=scope.namespace, ready_lane__isnull=False)
        .order_by("ready_lane")
        .values_list("ready_lane")
        .annotate(jobs=Count("id"), oldest=Min("scheduled_at"))
    )
    lanes = [ReadyLane._make(row) for row in rows]
    return [
        each._replace(oldest=_oldest_of(scope, each.name, now))
        if now - each.oldest > LATE
        else each
        for each in lanes
    ]


def _oldest_of(scope: Scope, lane: str, now: datetime) -> datetime:
    """Since when the job of a lane has been ready that waits longest.

    The index knows when jobs were due, which is the order of claims, and not when they were put
    into the lane. So those that were due first are looked at, until no job behind them can have
    waited longer. Where more than the last of ``LOOKS`` came late it says too early a moment, as
    somebody among the others may have waited since then.
    """
    ready = Job.objects.using(scope.using).filter(namespace=scope.namespace, ready_lane=lane)
    due_last = now
    for most in LOOKS:
        head = list(ready.order_by("scheduled_at").values_list("id", "scheduled_at")[:most])
        oldest = min(_ready_since(scope, lane, [key for key, _ in head]), default=now)
        if len(head) < most:
            return oldest
        due_last = head[-1][1]
        if oldest <= due_last:
            return oldest
    return due_last


def _ready_since(scope: Scope, lane: str, ids: Sequence[UUID]) -> Iterator[datetime]:
    """Since when these jobs have been ready, as far as they still are."""
    database = open_database(scope)
    for chunk in chunks(ids):
        condition, params = database.among("id", chunk)
        rows = database.fetch(
            f"SELECT scheduled_at, updated_at FROM {JOBS}{database.by_key}"  # noqa: S608
            f" WHERE {condition} AND ready_lane = %(lane)s",
            {**params, "lane": lane},
        )
        for row in rows:
            yield max(moment for moment in map(database.read, row) if moment is not None)


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
