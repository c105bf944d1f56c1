"""Run work again: the same job (requeue, continue), or a new one (replay, retry of a dead letter).

``limited`` says of the tasks whose code is here whether they have a limit of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.core.chain import mark_chain
from flexiq_django.core.lanes import lane_name
from flexiq_django.core.records import NewJob
from flexiq_django.models import ArchivedJob, Job, TaskState
from flexiq_django.store.due import seconds_until_first
from flexiq_django.store.enqueue import insert_copies
from flexiq_django.store.gates import limited_tasks
from flexiq_django.store.history import DEAD, append_replay
from flexiq_django.store.ids import new_id, new_ids
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database

ARCHIVE = ArchivedJob._meta.db_table

Row = Mapping[str, Any]

#: What a new job takes over from the one it stands in for. Not its unique key, its dependencies,
#: its expiry, its due time.
_KEPT = (
    "queue",
    "task_name",
    "payload",
    "priority",
    "max_retries",
    "timeout_ms",
    "result_ttl_ms",
    "metadata",
    "notes",
    "origin",
    "schedule",
    "session_id",
    "user_id",
    "deployment_id",
    "trace_id",
)
_SOURCE = (*_KEPT, "error", "completed_at")
_LETTER = (
    *_KEPT,
    "id",
    "namespace",
    "original_job_id",
    "origin_job_id",
    "dlq_retry_count",
    "auto_retry_at",
)


class Retried(NamedTuple):
    """The new jobs by their dead letters, and the letters that stayed as their task is revoked."""

    jobs: dict[UUID, NewJob]
    revoked: list[UUID]


# --- the same job ---------------------------------------------------------------------------------


def requeue(scope: Scope, job_id: UUID, *, limited: Mapping[str, bool]) -> bool:
    """Take a running job from its worker and make it ready; False if it is not running.

    Without its token the attempt that had it can write nothing any more.
    """
    return _make_ready(
        scope,
        job_id,
        "running",
        limited,
        {"lease_at": "NULL", "cancel_requested_at": "NULL", "error": "NULL"},
    )


def continue_paused(scope: Scope, job_id: UUID, *, limited: Mapping[str, bool]) -> bool:
    """Make a paused job ready; False if it is not paused. No attempt of its budget is used."""
    return _make_ready(scope, job_id, "paused", limited, {"pause_reason": "NULL"})


def _make_ready(
    scope: Scope,
    job_id: UUID,
    status: str,
    limited: Mapping[str, bool],
    changes: Mapping[str, str],
) -> bool:
    """Put a job of this status back in line, due now; False if there is none."""
    row = (
        Job.objects.using(scope.using)
        .filter(namespace=scope.namespace, id=job_id, status=status)
        .values_list("queue", "deployment_id", "task_name")
        .first()
    )
    if row is None:
        return False
    queue, deployment_id, task = row  # these never change
    alone = limited_tasks(scope, [task], limited)
    database = open_database(scope)
    lane = lane_name(queue, deployment_id, task if task in alone else None)
    done = database.update_joined(
        JOBS,
        {
            "status": "'pending'",
            "ready_lane": "b.lane",
            "scheduled_at": "{now}",
            "started_at": "NULL",
            "token": "NULL",
            "updated_at": "{now}",
            **changes,
        },
        {"id": "id", "lane": "text"},
        [{"id": database.id_text(job_id), "lane": lane}],
        "j.status = %(status)s AND j.namespace = %(namespace)s",
        {"status": status},
    )
    return bool(done)


# --- a copy of a job ------------------------------------------------------------------------------


def replay(
    scope: Scope, job_id: UUID, *, limited: Mapping[str, bool], actor: str | None = None
) -> NewJob | None:
    """Store a copy of a job, and who asked for it; the copy, or ``None`` if there is no such job.

    Raises ``TaskRevokedError``.
    """
    database = open_database(scope)
    with database.transaction():
        source = _source(database, job_id)
        if source is None:
            return None
        job = _copy(new_id(), source, limited_tasks(scope, [source["task_name"]], limited))
        insert_copies(database, [job])
        append_replay(database, job_id, job.id, error=source["error"], actor=actor)
    return job


def _source(database: Database, job_id: UUID) -> Row | None:
    """The job, live or archived. Locked if it has ended: so no purge leaves its history behind."""
    params = {"id": database.id_text(job_id)}
    for table in (JOBS, ARCHIVE):  # a job that is archived between the looks is seen by the second
        rows = database.fetch(
            f"SELECT {', '.join(_SOURCE)} FROM {table}"  # noqa: S608 - names are our own
            " WHERE id = %(id)s AND namespace = %(namespace)s",
            params,
        )
        if rows and rows[0][-1] is not None:
            rows = database.lock_rows(", ".join(_SOURCE), [job_id], table=table)
        # One that has not ended is left alone: its worker must not have to wait for our caller.
        if rows:
            return dict(zip(_SOURCE, rows[0], strict=True))
    return None


# --- dead letters ---------------------------------------------------------------------------------


def retry_dead(
    scope: Scope, letter_ids: Collection[UUID], *, limited: Mapping[str, bool]
) -> Retried:
    """Put a new job in the place of each dead letter, exactly once.

    Letters that are not there, or no more, are passed over, and so are those of revoked tasks.
    Raises ``TaskRevokedError`` if a task is revoked at this very moment; nothing is changed then.
    """
    database = open_database(scope)
    with database.transaction():
        letters = _lock_letters(database, letter_ids)
        return _retry(database, letters, limited)


def due_letters(scope: Scope, *, limit: int = 100) -> list[UUID]:
    """Dead letters that are due to be retried by themselves, longest due first.

    Without those that somebody else has locked, however many: they hide none of the others.
    """
    database = open_database(scope)
    return [
        database.read_id(key)
        for (key,) in database.fetch(
            f"SELECT id FROM {DEAD} WHERE namespace = %(namespace)s"  # noqa: S608
            " AND auto_retry_at <= {now} ORDER BY auto_retry_at LIMIT %(limit)s"
            f"{database.for_update_of_free}",
            {"limit": limit},
        )
    ]


def seconds_until_due(scope: Scope) -> float | None:
    """The seconds until a dead letter is due next, 0 if one is; ``None``: none will be."""
    return seconds_until_first(open_database(scope), DEAD, "auto_retry_at")


def retry_due(
    scope: Scope, letter_ids: Collection[UUID], *, most: int, limited: Mapping[str, bool]
) -> Retried:
    """``retry_dead`` for letters that were due.

    One whose chain was retried ``most`` times already, or whose task is revoked, is left to a
    person: it is not due any more. One that somebody else has locked is passed over.
    """
    database = open_database(scope)
    with database.transaction():
        locked = _lock_letters(database, letter_ids, only_free=True)
        letters = [row for row in locked if row["auto_retry_at"] is not None]
        outcome = _retry(
            database, [row for row in letters if row["dlq_retry_count"] < most], limited
        )
        _leave(database, [row["id"] for row in letters if row["id"] not in outcome.jobs])
    return outcome


def leave_letters(scope: Scope, letter_ids: Collection[UUID]) -> None:
    """Dead letters are not retried by themselves any more."""
    _leave(open_database(scope), letter_ids)


def _lock_letters(
    database: Database, letter_ids: Collection[UUID], *, only_free: bool = False
) -> list[dict[str, Any]]:
    """The letters of these that are there, oldest first; nobody else can retry or delete them."""
    if not letter_ids:
        return []
    rows = [
        dict(zip(_LETTER, row, strict=True))
        for row in database.lock_rows(
            ", ".join(_LETTER), sorted(letter_ids), table=DEAD, only_free=only_free
        )
    ]
    for row in rows:
        row["id"] = database.read_id(row["id"])
    return [row for row in rows if row["namespace"] == database.scope.namespace]


def _retry(
    database: Database, letters: Sequence[dict[str, Any]], limited: Mapping[str, bool]
) -> Retried:
    scope, tasks = database.scope, {row["task_name"] for row in letters}
    revoked = set(
        TaskState.objects.using(scope.using)
        .filter(namespace=scope.namespace, name__in=tasks, revoked_at__isnull=False)
        .values_list("name", flat=True)
    )
    chosen = [row for row in letters if row["task_name"] not in revoked]
    alone = limited_tasks(scope, tasks, limited)
    jobs = {
        row["id"]: _copy(key, row, alone, **_chain(database, row))
        for key, row in zip(new_ids(len(chosen)), chosen, strict=True)
    }
    if jobs:
        database.delete_rows(DEAD, jobs)
        insert_copies(database, list(jobs.values()))
    return Retried(jobs, [row["id"] for row in letters if row["task_name"] in revoked])


def _chain(database: Database, letter: Row) -> dict[str, Any]:
    """What the new job says of the chain that it goes on."""
    origin = database.read_id(letter["origin_job_id"] or letter["original_job_id"])
    retries = letter["dlq_retry_count"] + 1
    return {
        "dlq_retry_count": retries,
        "origin_job_id": origin,
        "metadata": mark_chain(letter["metadata"], retries=retries, origin=origin),
    }


def _leave(database: Database, letter_ids: Collection[UUID]) -> None:
    if letter_ids:
        condition, params = database.among("id", letter_ids)
        database.change(
            f"UPDATE {DEAD}{database.by_key} SET auto_retry_at = NULL WHERE {condition}",  # noqa: S608
            params,
        )


def _copy(key: UUID, source: Row, alone: Collection[str], **own: Any) -> NewJob:
    kept = {name: source[name] for name in _KEPT}
    return NewJob(id=key, is_limited=source["task_name"] in alone, **{**kept, **own})
