"""Pages of jobs by number, in an order of the reader's choice, for a surface that is not in Python.

Only the order by age has an index, and no other would pay for itself: each is one more entry to
write whenever a job moves. So any other order is that of the newest ``REACH`` jobs that match, and
no page lies beyond them: what a listing costs is bounded, however many jobs there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from flexiq_django.core.status import JobStatus
from flexiq_django.models import ArchivedJob, Job
from flexiq_django.store.listing import of_status
from flexiq_django.store.scope import Scope

#: How many jobs, from the first of a listing on, its pages may show.
REACH = 10_000

#: What is read of a job, beside its arguments.
COLUMNS = (
    "id",
    "task_name",
    "status",
    "max_retries",
    "attempt",
    "error",
    "created_at",
    "updated_at",
    "completed_at",
    "unique_key",
    "worker_id",
    "session_id",
    "user_id",
    "origin",
    "schedule",
)

Row = dict[str, Any]


class Order(NamedTuple):
    """An order other than by age: the columns it looks at, and what it sorts by.

    ``key`` makes of these columns a value that sorts, or ``None``: such jobs come last.
    """

    columns: tuple[str, ...]
    key: Callable[..., Any]


def browse(
    scope: Scope,
    statuses: Collection[JobStatus] | None,
    *,
    order: Order | None = None,
    descending: bool = True,
    limit: int,
    offset: int = 0,
    with_payload: bool = False,
) -> list[Row]:
    """One page of the jobs that have one of the statuses and are not archived.

    By age without ``order``. Jobs that are alike in it follow by age too. Empty beyond the last
    job; ``offset`` and ``limit`` together are at most ``REACH``.
    """
    if order is None:
        ids = _by_age(scope, statuses, descending=descending, limit=limit, offset=offset)
    else:
        ids = _sorted(scope, statuses, order, descending=descending)[offset : offset + limit]
    columns = (*COLUMNS, "payload") if with_payload else COLUMNS
    found = Job.objects.using(scope.using).filter(namespace=scope.namespace, id__in=ids)
    rows = {row["id"]: dict(row) for row in found.values(*columns)}
    return [rows[key] for key in ids if key in rows]  # one may have been archived just now


def look_up(scope: Scope, job_id: UUID, *, with_payload: bool = False) -> Row | None:
    """The same of one job, live or archived; ``None`` if the namespace has none with this id."""
    columns = (*COLUMNS, "payload") if with_payload else COLUMNS
    # In this order: a job that is being archived between the two looks is seen by the second.
    for model in (Job, ArchivedJob):
        rows = model.objects.using(scope.using).filter(namespace=scope.namespace, id=job_id)
        row = rows.values(*columns).first()
        if row is not None:
            return dict(row)
    return None


def _by_age(
    scope: Scope,
    statuses: Collection[JobStatus] | None,
    *,
    descending: bool,
    limit: int,
    offset: int,
) -> list[UUID]:
    sign = "-" if descending else ""
    if statuses is None or len(statuses) == 1:
        jobs = _jobs(scope, *(statuses or (None,))).order_by(f"{sign}id")
        return list(jobs.values_list("id", flat=True)[offset : offset + limit])
    # Each by the index that it has, and none for all of them together.
    lists = [
        list(
            _jobs(scope, each).order_by(f"{sign}id").values_list("id", flat=True)[: offset + limit]
        )
        for each in sorted(statuses)
    ]
    return list(islice(heapq.merge(*lists, reverse=descending), offset, offset + limit))


def _sorted(
    scope: Scope, statuses: Collection[JobStatus] | None, order: Order, *, descending: bool
) -> list[UUID]:
    """The newest ``REACH`` in that order. Sorted here, as databases differ over text and NULL."""
    lists: list[Sequence[tuple[Any, ...]]] = [
        list(_jobs(scope, each).order_by("-id").values_list("id", *order.columns)[:REACH])
        for each in (sorted(statuses) if statuses is not None else (None,))
    ]
    newest = islice(heapq.merge(*lists, key=lambda row: row[0], reverse=True), REACH)
    return arrange(newest, order, descending=descending)


def arrange(rows: Iterable[tuple[Any, ...]], order: Order, *, descending: bool) -> list[UUID]:
    """The ids in that order; of each row the id and the columns that the order looks at."""
    keyed = [(order.key(*values), key) for key, *values in rows]
    present = sorted((pair for pair in keyed if pair[0] is not None), reverse=descending)
    absent = sorted((key for value, key in keyed if value is None), reverse=descending)
    return [key for _, key in present] + absent


def _jobs(scope: Scope, status: JobStatus | None) -> QuerySet[Job]:
    return Job.objects.using(scope.using).filter(of_status(status), namespace=scope.namespace)
