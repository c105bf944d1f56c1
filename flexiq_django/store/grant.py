"""Give a job that died or was cancelled one more execution: the same row, its history and id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from flexiq_django.core.lanes import lane_name
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.exceptions import (
    JobMayStillRunError,
    JobNotFoundError,
    JobNotGrantableError,
    TaskRevokedError,
    UniqueKeyTakenError,
)
from flexiq_django.models import ArchivedJob, DeadLetter, TaskState
from flexiq_django.models.job import BaseJob
from flexiq_django.store import edges, sessions
from flexiq_django.store.gates import limited_tasks
from flexiq_django.store.history import DEAD, forget_replay_error
from flexiq_django.store.keys import active_key
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database

ARCHIVE = ArchivedJob._meta.db_table
TASKS = TaskState._meta.db_table

_KEPT = ", ".join(str(field.column) for field in BaseJob._meta.local_fields)
_READ = ("namespace", "status", "queue", "deployment_id", "task_name", "unique_key", "session_id")
_GRANTABLE = {status.value for status in TERMINAL - {JobStatus.COMPLETE}}
_NOT_REVOKED = (
    f"NOT EXISTS (SELECT 1 FROM {TASKS} AS t WHERE t.namespace = %(namespace)s"  # noqa: S608
    " AND t.name = j.task_name AND t.revoked_at IS NOT NULL)"
)

Row = Mapping[str, Any]


def grant(
    scope: Scope,
    job_id: UUID,
    *,
    limited: Mapping[str, bool],
    clear_cancellation: bool = False,
    grace_ms: int = 0,
) -> None:
    """Make a dead or cancelled job ready again, and raise its budget to one attempt more than used.

    An archived job comes back from the archive. Its dead letter goes, its unique key is taken
    again; dependents that fell with it stay cancelled. It runs without waiting for its parents,
    whatever becomes of those that have not ended. A job of a session goes to the end of its line.
    A request to cancel stays, and a cancelled job has one, unless ``clear_cancellation``:
    then its next attempt is cancelled before its body begins. Nothing is changed by a call that
    raises: ``JobNotFoundError``; ``JobNotGrantableError`` for another status;
    ``JobMayStillRunError`` if the job failed less than ``grace_ms`` ago; ``TaskRevokedError``;
    ``UniqueKeyTakenError`` if another job has the key by now.
    """
    database = open_database(scope)
    key: str | None = None
    try:
        with database.transaction():
            # The letter first, like whoever retries or deletes it with its job.
            letters = _lock_letters(database, job_id)
            job = _lock_job(database, job_id)
            key = None if job["unique_key"] is None else active_key(job["unique_key"])
            if not _restart(database, job_id, job, key, limited, clear_cancellation, grace_ms):
                raise _refusal(database, job_id, job, grace_ms)
            # Or what becomes of its parents would hold it up, or cancel it once more.
            edges.close_all_of(database, job_id)
            if job["session_id"] is not None:
                sessions.look_after_commit(scope, {job["session_id"]})
            forget_replay_error(database, job_id)
            if letters:
                database.delete_rows(DEAD, letters)
    except IntegrityError as error:
        holder = None if key is None else database.active_holder(key)
        if holder is None:
            raise
        raise UniqueKeyTakenError(
            f"job {job_id}: job {holder} has taken its unique key and has not ended"
        ) from error


def _lock_letters(database: Database, job_id: UUID) -> list[UUID]:
    letters = DeadLetter.objects.using(database.scope.using).filter(
        namespace=database.scope.namespace, original_job_id=job_id
    )
    ids = sorted(letters.values_list("id", flat=True))
    rows = database.lock_rows("id", ids, table=DEAD) if ids else []
    return [database.read_id(key) for (key,) in rows]


def _lock_job(database: Database, job_id: UUID) -> Row:
    """The job, locked, in the hot table: an archived one is moved back there first."""
    columns = ", ".join(_READ)
    # In this order: a job that is being archived meanwhile is seen by the second look.
    rows = database.lock_rows(columns, [job_id])
    is_archived = not rows
    if is_archived:
        rows = database.lock_rows(columns, [job_id], table=ARCHIVE)
    job = dict(zip(_READ, rows[0], strict=True)) if rows else {}
    if job.get("namespace") != database.scope.namespace:
        raise JobNotFoundError(
            f"there is no job {job_id} in namespace {database.scope.namespace!r}"
        )
    if is_archived and job["status"] in _GRANTABLE:
        database.change(
            f"INSERT INTO {JOBS} ({_KEPT}) SELECT {_KEPT} FROM {ARCHIVE} WHERE id = %(id)s",  # noqa: S608
            {"id": database.id_text(job_id)},
        )
        database.delete_rows(ARCHIVE, [job_id])
    return job


def _restart(
    database: Database,
    job_id: UUID,
    job: Row,
    key: str | None,
    limited: Mapping[str, bool],
    clear_cancellation: bool,
    grace_ms: int,
) -> bool:
    alone = limited_tasks(database.scope, [job["task_name"]], limited)
    task = job["task_name"] if job["task_name"] in alone else None
    asked = "CASE WHEN j.status = 'cancelled' THEN j.completed_at END"
    done = database.update_joined(
        JOBS,
        {
            # The numbers add up: what is left of the budget is max_attempts minus attempt.
            "max_retries": "CASE WHEN j.max_retries < j.attempt THEN j.attempt"
            " ELSE j.max_retries END",
            "retry_count": "j.attempt",
            "cancel_requested_at": "NULL"
            if clear_cancellation
            else f"COALESCE(j.cancel_requested_at, {asked})",
            "status": "'pending'",
            "ready_lane": "CASE WHEN j.session_id IS NULL THEN b.lane END",
            "session_line": "j.session_id",  # at the end: those behind it have gone on without it
            "scheduled_at": "{now}",
            "active_key": "b.active_key",
            "started_at": "NULL",
            "completed_at": "NULL",
            "purge_at": "NULL",
            "token": "NULL",
            "result": "NULL",
            "error": "NULL",
            "updated_at": "{now}",
        },
        {"id": "id", "lane": "text", "active_key": "text"},
        [
            {
                "id": database.id_text(job_id),
                "lane": lane_name(job["queue"], job["deployment_id"], task),
                **({} if key is None else {"active_key": key}),
            }
        ],
        "j.status IN ('dead', 'failed', 'cancelled')"
        f" AND (j.status = 'cancelled' OR j.completed_at <= {_before(database, grace_ms)})"
        f" AND {_NOT_REVOKED}",
    )
    return bool(done)


def _before(database: Database, grace_ms: int) -> str:
    return database.plus_ms("{now}", str(-grace_ms)) if grace_ms else "{now}"


def _refusal(database: Database, job_id: UUID, job: Row, grace_ms: int) -> Exception:
    """Why the job was not restarted. It is locked, so nothing has changed since."""
    if job["status"] not in _GRANTABLE:
        return JobNotGrantableError(
            f"job {job_id} is {job['status']}; only a job that failed or was cancelled can be"
            " requeued"
        )
    revoked = TaskState.objects.using(database.scope.using).filter(
        namespace=database.scope.namespace, name=job["task_name"], revoked_at__isnull=False
    )
    if revoked.exists():
        return TaskRevokedError(
            f"task {job['task_name']} is revoked; queue.unrevoke_task() allows its jobs again"
        )
    return JobMayStillRunError(
        f"job {job_id} failed less than {grace_ms / 1000:g} s ago, and its worker may still be"
        " executing it; wait, or force it"
    )
