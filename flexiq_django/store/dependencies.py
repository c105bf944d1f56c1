"""Who waits for whom: edges at enqueue, and the release or cancellation of dependents.

An edge is open until its parent has ended. A job with an open edge is in none of the hot indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.core.lanes import lane_name
from flexiq_django.core.records import NewJob
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.exceptions import DependencyError
from flexiq_django.models import ArchivedJob, Job, JobDependency
from flexiq_django.store import edges, sessions
from flexiq_django.store.edges import Parents
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.vendors.batches import chunks

_FAILURES = {JobStatus.DEAD.value, JobStatus.FAILED.value, JobStatus.CANCELLED.value}
_ENDED = {status.value for status in TERMINAL}
_CANCELLED = JobStatus.CANCELLED.value


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


def sweep_ended(scope: Scope, after: int, limit: int = 500) -> tuple[int, Moved]:
    """The net under ``recheck``: resolve open edges whose parent has ended or is gone.

    Looks at ``limit`` open edges with an id above ``after``. Returns the id to go on from (0 when
    the walk is through) and what became of the dependents. Those that somebody else has locked
    wait for the next walk.
    """
    database = open_database(scope)
    seen = list(
        JobDependency.objects.using(scope.using)
        .filter(open_in=scope.namespace, id__gt=after)
        .order_by("id")
        .values_list("id", "parent_id")[:limit]
    )
    if not seen:
        return 0, Moved([], 0)
    parents = {parent for _, parent in seen}
    ended = _ended_of(parents, _statuses(database, parents))
    moved = Moved([], 0)
    if ended:
        with database.transaction():
            moved = resolve(database, ended, only_free=True)
    return (seen[-1][0] if len(seen) == limit else 0), moved


class Moved(NamedTuple):
    """What became of dependents: the ids cancelled, and how many were released.

    ``passed_over``: how many were left as they are, since somebody else has locked them.
    """

    cancelled: list[UUID]
    released: int
    passed_over: int = 0


def resolve(database: Database, ended: Mapping[UUID, str], *, only_free: bool = False) -> Moved:
    """Move the dependents of jobs that have just ended, in the same transaction.

    Call it after the jobs' rows were written: only a look at the edges that comes after the row
    locks leaves no gap to the re-check of a dependent that is being enqueued.

    A dependent all of whose parents are done becomes ready, or due. One whose parent failed is
    cancelled with everything that depends on it, unless its edge allows failure.

    ``only_free`` passes over dependents that somebody else has locked instead of waiting for them.
    Their edges stay open, so that ``sweep_ended`` finds them.
    """
    cancelled: list[UUID] = []
    released = passed_over = 0
    causes: dict[UUID, str] = {}
    while ended:
        found = edges.open_to(database, ended)
        if not found:
            break
        # Lock the dependents before looking at their other edges: two parents that end at the same
        # moment would otherwise each see the other's edge still open, and nobody would release.
        columns = "id, status, queue, deployment_id, session_id, session_slot"
        children = {edge.child for edge in found}
        rows = {
            database.read_id(row[0]): row
            for row in database.lock_rows(columns, sorted(children), only_free=only_free)
        }
        if only_free:
            held = _existing(database, children - rows.keys())
            children -= held
            passed_over += len(held)
        still_open = edges.still_open(database, sorted(children))
        # Not one that was closed while we waited: its job was moved, or was told to go without us.
        found = [edge for edge in found if edge.id in still_open]
        edges.close(database, found)
        doomed: dict[UUID, UUID] = {}
        for edge in found:
            del still_open[edge.id]
            if ended[edge.parent] in _FAILURES and not edge.allow_failure:
                doomed.setdefault(edge.child, edge.parent)
        blocked = {*still_open.values(), *doomed}
        waiting = {
            edge.child: rows[edge.child]
            for edge in found
            if edge.child in rows and rows[edge.child][1] == JobStatus.PENDING.value
        }
        released += _release(database, [row for key, row in waiting.items() if key not in blocked])
        # Grandchildren name the job the cascade began with, not their own parent.
        causes = {
            key: causes.get(parent) or _cause(parent, ended[parent])
            for key, parent in doomed.items()
            if key in waiting
        }
        fallen = _cancel(database, causes)
        cancelled += fallen
        # As a rule a job with an open edge holds no line; but whoever ends a holder hands it on.
        lines = {waiting[key][5] for key in fallen} - {None}
        released += sessions.hand_on(database, lines) if lines else 0
        ended = dict.fromkeys(fallen, _CANCELLED)
    return Moved(cancelled, released, passed_over)


def _cause(parent: UUID, status: str) -> str:
    return f"dependency {'cancelled' if status == _CANCELLED else 'failed'}: {parent}"


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
        for chunk in chunks(sorted(ids)):
            rows = model.objects.using(alias).filter(namespace=namespace, id__in=chunk)
            found.update(rows.values_list("id", "status"))
    return found


def _existing(database: Database, ids: set[UUID]) -> set[UUID]:
    """Those of the jobs that are in the hot table."""
    jobs = Job.objects.using(database.scope.using)
    return {
        key
        for chunk in chunks(sorted(ids))
        for key in jobs.filter(id__in=chunk).values_list("id", flat=True)
    }


def _archived(database: Database, ids: set[UUID]) -> dict[UUID, str]:
    alias, namespace = database.scope.using, database.scope.namespace
    found: dict[UUID, str] = {}
    for chunk in chunks(sorted(ids)):
        rows = ArchivedJob.objects.using(alias).filter(namespace=namespace, id__in=chunk)
        found.update(rows.values_list("id", "status"))
    return found


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
            for key, _, queue, deployment, _, _ in rows
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
