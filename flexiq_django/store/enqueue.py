"""Store jobs, in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from flexiq_django.core.lanes import lane_name
from flexiq_django.core.records import NewJob
from flexiq_django.exceptions import TaskRevokedError, UniqueKeyError
from flexiq_django.models import TaskState
from flexiq_django.models.fields import to_naive_text
from flexiq_django.store import dependencies, edges, sessions
from flexiq_django.store.admission import Depths, admitted
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

_COLUMNS = {
    "id": "id",
    "queue": "text",
    "task_name": "text",
    "payload": "text",
    "max_retries": "int",
    "priority": "int",
    "lane": "text",
    "waits": "int",
    "delay_ms": "big",
    "due": "moment",
    "timeout_ms": "big",
    "expires_ms": "big",
    "result_ttl_ms": "big",
    "unique_key": "text",
    "active_key": "text",
    "metadata": "text",
    "notes": "text",
    "origin": "text",
    "schedule": "text",
    "session_id": "text",
    "user_id": "text",
    "deployment_id": "text",
    "trace_id": "text",
    "attempt_id": "text",
    "trial_id": "text",
    "dlq_retry_count": "int",
    "origin_job_id": "id",
}

_COPIED = (
    "id",
    "queue",
    "task_name",
    "payload",
    "max_retries",
    "priority",
    "timeout_ms",
    "result_ttl_ms",
    "unique_key",
    "active_key",
    "metadata",
    "notes",
    "origin",
    "schedule",
    "session_id",
    "user_id",
    "deployment_id",
    "trace_id",
    "attempt_id",
    "trial_id",
    "origin_job_id",
)


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
    rows = _rows(database, jobs, parents)
    if not database.insert_rows(
        JOBS, _values(database), _COLUMNS, rows, where=_NOT_REVOKED, notify=notify
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
        inserted = database.insert_unless_active(
            _values(database),
            _COLUMNS,
            _rows(database, list(missing.values()), parents),
            _NOT_REVOKED,
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


def _values(database: Database) -> Mapping[str, str]:
    due = f"COALESCE(b.due, {database.plus_ms('{now}', 'b.delay_ms')}, {{now}})"
    ready = f"(b.waits IS NULL AND {due} <= {{now}})"
    later = f"(b.waits IS NULL AND {due} > {{now}})"
    return {
        **{name: f"b.{name}" for name in _COPIED},
        "namespace": "%(namespace)s",
        "status": "'pending'",
        "attempt": "0",
        "retry_count": "0",
        "dlq_retry_count": "COALESCE(b.dlq_retry_count, 0)",
        "created_at": "{now}",
        "updated_at": "{now}",
        "scheduled_at": due,
        "ready_lane": f"CASE WHEN {ready} AND b.session_id IS NULL THEN b.lane END",
        "session_line": f"CASE WHEN {ready} THEN b.session_id END",
        "promote_at": f"CASE WHEN {later} THEN {due} END",
        "expires_at": database.plus_ms("{now}", "b.expires_ms"),
    }


def _rows(
    database: Database, jobs: Sequence[NewJob], parents: edges.Parents
) -> list[dict[str, Any]]:
    rows = []
    for job in jobs:
        row: dict[str, Any] = {
            "id": database.id_text(job.id),
            "queue": job.queue,
            "task_name": job.task_name,
            "payload": job.payload,
            "max_retries": job.max_retries,
            "priority": job.priority,
            "lane": lane_name(
                job.queue, job.deployment_id, job.task_name if job.is_limited else None
            ),
            "origin": job.origin,
        }
        if job.delay_ms:
            row["delay_ms"] = job.delay_ms
        if job.run_at is not None:
            row["due"] = to_naive_text(job.run_at) + database.zone_suffix
        if parents.get(job.id):
            row["waits"] = 1
        if job.unique_key is not None:
            row["active_key"] = active_key(job.unique_key)
        if job.dlq_retry_count:
            row["dlq_retry_count"] = job.dlq_retry_count
        if job.origin_job_id is not None:
            row["origin_job_id"] = database.id_text(job.origin_job_id)
        for name in _OPTIONAL:
            value = getattr(job, name)
            if value is not None:
                row[name] = value
        rows.append(row)
    return rows


_OPTIONAL = (
    "timeout_ms",
    "expires_ms",
    "result_ttl_ms",
    "unique_key",
    "metadata",
    "notes",
    "schedule",
    "session_id",
    "user_id",
    "deployment_id",
    "trace_id",
    "attempt_id",
    "trial_id",
)
