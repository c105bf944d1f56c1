"""Store jobs, in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from uuid import UUID

from flexiq_django.core.records import NewJob
from flexiq_django.exceptions import TaskRevokedError, UniqueKeyError
from flexiq_django.models import TaskState
from flexiq_django.store import dependencies, edges, sessions
from flexiq_django.store.admission import Depths, admitted
from flexiq_django.store.job_rows import columns_of, rows_of, values_of
from flexiq_django.store.keys import active_key
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database

#: Judged by the statement that inserts: whoever revokes a task need not wait for anybody.
_NOT_REVOKED = (
    f"NOT EXISTS (SELECT 1 FROM {TaskState._meta.db_table} AS t"  # noqa: S608 - our own name
    " WHERE t.namespace = %(namespace)s AND t.name = b.task_name AND t.revoked_at IS NOT NULL)"
)

#: How often a keyed insert is tried while other jobs take and free the key under its hands.
_KEY_ATTEMPTS = 20


def insert_jobs(
    scope: Scope,
    jobs: Sequence[NewJob],
    *,
    notify: bool = False,
    depths: Depths = MappingProxyType({}),
) -> list[UUID]:
    """Store jobs; the id that now stands for each of them, in order.

    For a job whose ``unique_key`` is held by a job that has not ended (or by an earlier one of the
    same call) that is the holder's id, and nothing of the new job is stored. Inside the caller's
    transaction the rows exist exactly when the caller's do; a taken key never aborts it. ``notify``
    wakes listening workers with the same commit; only for a caller without a transaction.
    ``depths`` says how many jobs may be pending.

    Raises ``UniqueKeyError`` if a transaction above READ COMMITTED cannot see the holder of a key,
    ``TaskRevokedError`` if the task is revoked, which is the same task for all jobs of a call,
    ``DependencyError`` before anything is written when a parent is unknown, has failed or lies
    in another namespace, and ``QueueFull``, before anything is written too.
    """
    database = open_database(scope)
    with admitted(database, jobs, depths):
        return _insert_all(database, jobs, notify=notify)


def _insert_all(database: Database, jobs: Sequence[NewJob], *, notify: bool) -> list[UUID]:
    parents = dependencies.open_parents(database, jobs)
    plain = [job for job in jobs if job.unique_key is None]
    keyed = [job for job in jobs if job.unique_key is not None]
    if not keyed and not any(job.parents for job in jobs):
        _insert(database, plain, parents, notify=notify)
        return [job.id for job in jobs]
    with database.transaction():
        if plain:
            _insert(database, plain, parents)
        stands_for = _insert_keyed(database, keyed, parents)
        stored = [job for job in jobs if stands_for.get(job.id, job.id) == job.id]
        edges.insert_edges(database, stored, parents)
        if notify:
            database.notify()
    return [stands_for.get(job.id, job.id) for job in jobs]


def insert_copies(database: Database, jobs: Sequence[NewJob]) -> None:
    """Store jobs without keys or parents, in the transaction at hand.

    Raises ``TaskRevokedError`` if one of their tasks is revoked.
    """
    by_task: dict[str, list[NewJob]] = {}  # a statement is about one task: all its rows, or none
    for job in jobs:
        by_task.setdefault(job.task_name, []).append(job)
    for alike in by_task.values():
        _insert(database, alike, {})


def _insert(
    database: Database,
    jobs: Sequence[NewJob],
    parents: edges.Parents,
    *,
    notify: bool = False,
) -> None:
    rows = rows_of(database, jobs, parents)
    columns = columns_of(rows)
    if not database.insert_rows(
        JOBS, values_of(database, columns), columns, rows, where=_NOT_REVOKED, notify=notify
    ):
        raise TaskRevokedError(_refusal(jobs[0]))
    sessions.look_after_commit(database.scope, _sessions(jobs))


def _sessions(jobs: Sequence[NewJob]) -> set[str]:
    return {job.session_id for job in jobs if job.session_id is not None}


def _refusal(job: NewJob) -> str:
    return f"task {job.task_name} is revoked; queue.unrevoke_task() allows new jobs of it again"


def _insert_keyed(
    database: Database, jobs: Sequence[NewJob], parents: edges.Parents
) -> dict[UUID, UUID]:
    """Insert jobs that carry a unique key; for each job the id of the holder of its key."""
    first: dict[str, NewJob] = {}
    for job in jobs:
        first.setdefault(active_key(job.unique_key or ""), job)
    holders: dict[str, UUID] = {}
    # Keys in one order everywhere, so that two bulk calls with the same keys cannot deadlock.
    missing = dict(sorted(first.items()))
    for _ in range(_KEY_ATTEMPTS):
        if not missing:
            break
        rows = rows_of(database, list(missing.values()), parents)
        columns = columns_of(rows)
        inserted = database.insert_unless_active(
            values_of(database, columns), columns, rows, _NOT_REVOKED
        )
        for key, job in list(missing.items()):
            holder = job.id if job.id in inserted else database.active_holder(key)
            if holder is not None:  # else the holder ended in between: the key is free again
                holders[key] = holder
                del missing[key]
            elif _is_revoked(database, job):
                raise TaskRevokedError(_refusal(job))
    else:
        raise UniqueKeyError(
            f"unique_key {next(iter(missing.values())).unique_key!r}: another job holds the key but"
            " this transaction cannot see it. Enqueue outside the transaction, or use the READ"
            " COMMITTED isolation level."
        )
    sessions.look_after_commit(database.scope, _sessions(jobs))
    return {job.id: holders[active_key(job.unique_key or "")] for job in jobs}


def _is_revoked(database: Database, job: NewJob) -> bool:
    return bool(
        TaskState.objects.using(database.scope.using)
        .filter(namespace=database.scope.namespace, name=job.task_name, revoked_at__isnull=False)
        .exists()
    )
