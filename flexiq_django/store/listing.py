"""Lists of jobs, archived jobs and dead letters: never counted, only the columns that are shown.

Each list has a total order, so a page can begin after a place as well as after a number of rows. A
place costs the same at any depth; an offset reads all that it skips.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet, Value
from django.db.models.functions import StrIndex

from flexiq_django.core.records import JobRecord
from flexiq_django.core.status import JobStatus
from flexiq_django.models import ArchivedJob, DeadLetter, Job
from flexiq_django.models.job import BAD_ENDS
from flexiq_django.store.scope import Scope

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """What a job must be like to be listed; ``None`` asks nothing.

    ``metadata_like`` and ``error_like`` are parts of the stored text, taken literally.
    Both moments are included.
    """

    status: JobStatus | None = None
    queue: str | None = None
    task_name: str | None = None
    metadata_like: str | None = None
    error_like: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


class Place(NamedTuple):
    """Where a list ordered by a time goes on: after this row."""

    moment: datetime
    id: UUID


def list_jobs(
    scope: Scope,
    wanted: JobFilter,
    *,
    limit: int,
    offset: int = 0,
    after: UUID | None = None,
    everywhere: bool = False,
) -> list[JobRecord]:
    """Jobs that are not archived, newest first. ``everywhere`` looks into every namespace."""
    jobs = Job.objects.using(scope.using).filter(_matches(wanted))
    if not everywhere:
        jobs = jobs.filter(namespace=scope.namespace)
    for column, part in (("metadata", wanted.metadata_like), ("error", wanted.error_like)):
        if part is not None:
            jobs = _holding(jobs, column, part)
    if after is not None:
        jobs = jobs.filter(id__lt=after)
    rows = jobs.order_by("-id").values_list(*JobRecord._fields)[offset : offset + limit]
    return [JobRecord._make(row) for row in rows]


def list_archived(
    scope: Scope, *, limit: int, offset: int = 0, after: Place | None = None
) -> list[JobRecord]:
    """Archived jobs, the one that ended last first."""
    jobs = ArchivedJob.objects.using(scope.using).filter(namespace=scope.namespace)
    rows = _from_place(jobs, "completed_at", after).values_list(*JobRecord._fields)
    return [JobRecord._make(row) for row in rows[offset : offset + limit]]


#: What is told of a dead letter.
LETTER = (
    "id",
    "original_job_id",
    "queue",
    "task_name",
    "error",
    "retry_count",
    "failed_at",
    "metadata",
    "dlq_retry_count",
)


def dead_letters(
    scope: Scope, *, limit: int, offset: int = 0, after: Place | None = None
) -> list[dict[str, Any]]:
    """Dead letters, the latest failure first."""
    letters = DeadLetter.objects.using(scope.using).filter(namespace=scope.namespace)
    rows = _from_place(letters, "failed_at", after).values(*LETTER)
    return [dict(row) for row in rows[offset : offset + limit]]


def _from_place(rows: QuerySet[Row], moment: str, after: Place | None) -> QuerySet[Row]:
    """The rows latest first, from ``after`` on."""
    ordered = rows.order_by(f"-{moment}", "-id")
    if after is None:
        return ordered
    # The bound on the moment alone is what an index can begin at; many rows may share a moment.
    return ordered.filter(
        Q(**{f"{moment}__lt": after.moment}) | Q(id__lt=after.id),
        **{f"{moment}__lte": after.moment},
    )


def _matches(wanted: JobFilter) -> Q:
    conditions = {
        "queue": wanted.queue,
        "task_name": wanted.task_name,
        "created_at__gte": wanted.created_after,
        "created_at__lte": wanted.created_before,
    }
    given = {name: value for name, value in conditions.items() if value is not None}
    return of_status(wanted.status) & Q(**given)


def of_status(status: JobStatus | None) -> Q:
    """A status in words that an index understands, where the jobs it has are few among others."""
    if status is None:
        return Q()
    if status is JobStatus.PENDING:
        waiting = Q(idle_status=status.value)
        is_pending = Q(ready_lane__isnull=False) | Q(promote_at__isnull=False) | waiting
        return Q(status=status.value) & is_pending
    if status is JobStatus.RUNNING:
        return Q(status=status.value, lease_at__isnull=False)
    return Q(**{"bad_end" if status.value in BAD_ENDS else "idle_status": status.value})


def _holding(jobs: QuerySet[Job], column: str, part: str) -> QuerySet[Job]:
    """Jobs whose column holds a text, letter for letter.

    Asked twice, because SQLite's LIKE folds case and so does MariaDB's INSTR: both together are
    exact on every database.
    """
    found = StrIndex(column, Value(part))
    return jobs.alias(**{f"{column}_at": found}).filter(
        **{f"{column}__contains": part, f"{column}_at__gt": 0}
    )
