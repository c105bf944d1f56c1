"""Who waits for whom: edges at enqueue, and the release or cancellation of dependents.

An edge is open until its parent has ended. A job with an open edge is in none of the hot indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from flexiq_django.core.lanes import lane_name
from flexiq_django.core.records import NewJob
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.exceptions import DependencyError
from flexiq_django.models import ArchivedJob, Job, JobDependency
from flexiq_django.store import sessions
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database

EDGES = JobDependency._meta.db_table

#: For each new job the parents that have not ended yet.
Parents = Mapping[UUID, list[UUID]]

_FAILURES = {JobStatus.DEAD.value, JobStatus.FAILED.value, JobStatus.CANCELLED.value}
_ENDED = {status.value for status in TERMINAL}
_CANCELLED = JobStatus.CANCELLED.value

Key = TypeVar("Key", UUID, int)


def open_parents(database: Database, jobs: Sequence[NewJob]) -> Parents:
    """The parents each job has to wait for.

    Raises ``DependencyError`` for a parent that is unknown here, or has failed or was cancelled
    while the job does not allow that. A parent may also be another job of the same call.
    """
    wanted = {parent for job in jobs for parent in job.parents}
    if not wanted:
        return {}
    statuses = _statuses(database, wanted)
    statuses.update({job.id: JobStatus.PENDING.value for job in jobs if job.id in wanted})
    waiting: dict[UUID, list[UUID]] = {}
    for job in jobs:
        for parent in job.parents:
            status = statuses.get(parent)
            if status is None:
                raise DependencyError(
                    f"depends_on: there is no job {parent} in namespace"
                    f" {database.scope.namespace!r}"
                )
            if status in _FAILURES and not job.allow_parent_failure:
                raise DependencyError(
                    f"depends_on: job {parent} is {status}, so a job that needs it can never run"
                )
            if status not in _ENDED:
                waiting.setdefault(job.id, []).append(parent)
    return waiting


def insert_edges(database: Database, jobs: Sequence[NewJob], parents: Parents) -> None:
    """Store the edges of jobs, open for the parents that have not ended."""
    rows = [
        {
            "job_id": database.id_text(job.id),
            "parent_id": database.id_text(parent),
            "is_open": int(parent in parents.get(job.id, ())),
            "allow_failure": int(job.allow_parent_failure),
        }
        for job in jobs
        for parent in job.parents
    ]
    columns = {"job_id": "id", "parent_id": "id", "is_open": "bool", "allow_failure": "bool"}
    values = {"namespace": "%(namespace)s", **{name: f"b.{name}" for name in columns}}
    database.insert_rows(EDGES, values, columns, rows)


def recheck(scope: Scope, parents: Iterable[UUID]) -> list[UUID]:
    """Release dependents of parents that ended while the dependents were being enqueued.

    Call it after the enqueue has committed. It locks the parents, so it either sees that one has
    ended or makes the one that is ending see the new edge. Returns the jobs that were cancelled.
    """
    database = open_database(scope)
    wanted = set(parents)
    with database.transaction():
        found = {
            database.read_id(key): status
            for key, status in database.lock_rows("id, status", sorted(wanted))
        }
        found |= _archived(database, wanted - set(found))
        return resolve(database, _ended_of(wanted, found)).cancelled


def sweep_ended(scope: Scope, after: int, limit: int = 500) -> tuple[int, list[UUID]]:
    """The net under ``recheck``: resolve open edges whose parent has ended or is gone.

    Looks at ``limit`` open edges with an id above ``after``. Returns the id to go on from (0 when
    the walk is through) and the jobs cancelled.
    """
    database = open_database(scope)
    edges = list(
        JobDependency.objects.using(scope.using)
        .filter(namespace=scope.namespace, is_open=True, id__gt=after)
        .order_by("id")
        .values_list("id", "parent_id")[:limit]
    )
    if not edges:
        return 0, []
    parents = {parent for _, parent in edges}
    ended = _ended_of(parents, _statuses(database, parents))
    cancelled: list[UUID] = []
    if ended:
        with database.transaction():
            cancelled = resolve(database, ended).cancelled
    return (edges[-1][0] if len(edges) == limit else 0), cancelled


class Moved(NamedTuple):
    """What became of dependents: the ids cancelled, and how many were released."""

    cancelled: list[UUID]
    released: int


def resolve(database: Database, ended: Mapping[UUID, str]) -> Moved:
    """Move the dependents of jobs that have just ended, in the same transaction.

    Call it after the jobs' rows were written: only a look at the edges that comes after the row
    locks leaves no gap to the re-check of a dependent that is being enqueued.

    A dependent all of whose parents are done becomes ready, or due. One whose parent failed is
    cancelled with everything that depends on it, unless its edge allows failure.
    """
    cancelled: list[UUID] = []
    released = 0
    causes = {
        parent: f"dependency {'cancelled' if status == _CANCELLED else 'failed'}: {parent}"
        for parent, status in ended.items()
    }
    while ended:
        edges = _open_edges(database, ended)
        if not edges:
            break
        # Lock the dependents before looking at their other edges: two parents that end at the same
        # moment would otherwise each see the other's edge still open, and nobody would release.
        children = sorted({edge.child for edge in edges})
        rows = {
            database.read_id(row[0]): row
            for row in database.lock_rows("id, status, queue, deployment_id, session_id", children)
        }
        _close_edges(database, edges)
        doomed: dict[UUID, UUID] = {}
        for edge in edges:
            if ended[edge.parent] in _FAILURES and not edge.allow_failure:
                doomed.setdefault(edge.child, edge.parent)
        blocked = _with_open_edges(database, children)
        waiting = {key: row for key, row in rows.items() if row[1] == JobStatus.PENDING.value}
        released += _release(
            database,
            [row for key, row in waiting.items() if key not in doomed and key not in blocked],
        )
        # Grandchildren name the job the cascade began with, not their own parent.
        causes = {key: causes[parent] for key, parent in doomed.items() if key in waiting}
        fallen = _cancel(database, causes)
        cancelled += fallen
        ended = dict.fromkeys(fallen, _CANCELLED)
    return Moved(cancelled, released)


def _ended_of(parents: set[UUID], found: Mapping[UUID, str]) -> dict[UUID, str]:
    """The parents that have ended, and how."""
    # A parent without a row was purged: its dependents may run, as for one that completed.
    statuses = {parent: found.get(parent, JobStatus.COMPLETE.value) for parent in parents}
    return {parent: status for parent, status in statuses.items() if status in _ENDED}


def _statuses(database: Database, ids: set[UUID]) -> dict[UUID, str]:
    alias, namespace = database.scope.using, database.scope.namespace
    found: dict[UUID, str] = {}
    # In this order: a job that is being archived between the two looks is seen by the second.
    for model in (Job, ArchivedJob):
        for chunk in _chunks(sorted(ids)):
            rows = model.objects.using(alias).filter(namespace=namespace, id__in=chunk)
            found.update(rows.values_list("id", "status"))
    return found


def _archived(database: Database, ids: set[UUID]) -> dict[UUID, str]:
    alias, namespace = database.scope.using, database.scope.namespace
    found: dict[UUID, str] = {}
    for chunk in _chunks(sorted(ids)):
        rows = ArchivedJob.objects.using(alias).filter(namespace=namespace, id__in=chunk)
        found.update(rows.values_list("id", "status"))
    return found


def _chunks(ids: Sequence[Key], size: int = 500) -> Iterable[Sequence[Key]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


class _Edge(NamedTuple):
    id: int
    child: UUID
    parent: UUID
    allow_failure: bool


def _open_edges(database: Database, parents: Iterable[UUID]) -> list[_Edge]:
    edges: list[_Edge] = []
    for chunk in _chunks(list(parents)):
        condition, params = database.among("parent_id", chunk)
        rows = database.fetch(
            "SELECT id, job_id, parent_id, allow_failure"  # noqa: S608 - names are our own
            f" FROM {EDGES} WHERE {condition} AND is_open = {database.true}",
            params,
        )
        edges += [
            _Edge(key, database.read_id(child), database.read_id(parent), bool(allow))
            for key, child, parent, allow in rows
        ]
    return edges


def _with_open_edges(database: Database, children: Sequence[UUID]) -> set[UUID]:
    blocked: set[UUID] = set()
    for chunk in _chunks(children):
        condition, params = database.among("job_id", chunk)
        rows = database.fetch(
            f"SELECT DISTINCT job_id FROM {EDGES}"  # noqa: S608
            f" WHERE {condition} AND is_open = {database.true}{database.latest}",
            params,
        )
        blocked.update(database.read_id(key) for (key,) in rows)
    return blocked


def _close_edges(database: Database, edges: Iterable[_Edge]) -> None:
    # Exactly those we saw: an edge that was committed since belongs to a child that nobody has
    # looked at, and its re-check finds it only while it is open.
    for chunk in _chunks(sorted(edge.id for edge in edges)):
        JobDependency.objects.using(database.scope.using).filter(id__in=chunk, is_open=True).update(
            is_open=False
        )


def _release(database: Database, rows: Sequence[tuple[Any, ...]]) -> int:
    done = database.update_joined(
        JOBS,
        {
            "ready_lane": (
                "CASE WHEN j.scheduled_at <= {now} AND j.session_id IS NULL THEN b.lane END"
            ),
            "session_line": "CASE WHEN j.scheduled_at <= {now} THEN j.session_id END",
            "promote_at": "CASE WHEN j.scheduled_at > {now} THEN j.scheduled_at END",
            "updated_at": "{now}",
        },
        {"id": "id", "lane": "text"},
        [
            {"id": database.id_text(database.read_id(key)), "lane": lane_name(queue, deployment)}
            for key, _, queue, deployment, _ in rows
        ],
        "j.status = 'pending' AND j.ready_lane IS NULL AND j.promote_at IS NULL"
        " AND j.session_line IS NULL",
    )
    sessions.look_after_commit(database.scope, {row[4] for row in rows if row[4] is not None})
    return len(done)


def _cancel(database: Database, errors: Mapping[UUID, str]) -> list[UUID]:
    """Cancel pending jobs, each with its own error text; the ids that were cancelled."""
    return sorted(
        database.update_joined(
            JOBS,
            cancel_assignments(database, error="b.error"),
            {"id": "id", "error": "text"},
            [{"id": database.id_text(key), "error": text} for key, text in errors.items()],
            "j.status = 'pending'",
        )
    )


def cancel_assignments(database: Database, *, error: str) -> dict[str, str]:
    """What it means for a pending or paused job ``j`` to be cancelled; ``error`` is SQL."""
    return {
        "status": "'cancelled'",
        "error": error,
        "ready_lane": "NULL",
        "promote_at": "NULL",
        "active_key": "NULL",
        "session_slot": "NULL",
        "session_line": "NULL",
        "expires_at": "NULL",
        "completed_at": "{now}",
        "updated_at": "{now}",
        "purge_at": database.plus_ms("{now}", "j.result_ttl_ms"),
    }
