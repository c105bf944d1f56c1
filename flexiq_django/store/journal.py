"""What a running attempt notes down: progress and log lines, fenced like everything else."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from flexiq_django.models import TaskLog
from flexiq_django.store.ids import new_id
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS
from flexiq_django.store.vendors.batches import json_batches

LOGS = TaskLog._meta.db_table
# A job that is complete under this token was completed by this very attempt: a transactional body
# settles its job itself, and what it noted before may be written after.
_OWNED = "token = %(token)s AND status IN ('running', 'complete')"


def set_progress(scope: Scope, job_id: UUID, token: int, progress: int) -> bool:
    """Note the progress (0 to 100) of an attempt. False, and nothing done, if it lost its job."""
    return open_database(scope).update_job(
        job_id,
        "progress = %(progress)s",
        _OWNED,
        {"token": token, "progress": progress},
    )


def append_log(
    scope: Scope,
    job_id: UUID,
    token: int,
    *,
    task_name: str,
    level: str,
    message: str,
    extra: str | None,
) -> bool:
    """Append a log line of an attempt. False, and nothing written, if it lost its job."""
    database = open_database(scope)
    return (
        database.change(
            f"INSERT INTO {LOGS}"  # noqa: S608
            " (id, namespace, job_id, task_name, level, message, extra, logged_at)"
            " SELECT %(log_id)s, namespace, id, %(task_name)s, %(level)s, %(message)s, %(extra)s,"
            f" {{now}} FROM {JOBS}{database.by_key}"
            f" WHERE id = %(id)s AND namespace = %(namespace)s AND {_OWNED}",
            {
                "id": database.id_text(job_id),
                "token": token,
                "log_id": database.id_text(new_id()),
                "task_name": task_name,
                "level": level,
                "message": message,
                "extra": extra,
            },
        )
        > 0
    )


def look(scope: Scope, held: Iterable[tuple[UUID, int]]) -> dict[UUID, bool]:
    """For each attempt, by (id, token), that still owns its job: whether it was asked to stop."""
    database = open_database(scope)
    sql = (
        "SELECT j.id, j.cancel_requested_at"  # noqa: S608 - names are our own
        f" FROM {database.rows_from_json('batch', {'id': 'id', 'token': 'big'})}"
        f" JOIN {JOBS} AS j ON j.id = b.id WHERE j.token = b.token AND j.status = 'running'"
    )
    rows = [{"id": database.id_text(key), "token": token} for key, token in held]
    return {
        database.read_id(key): requested_at is not None
        for batch in json_batches(rows)
        for key, requested_at in database.fetch(sql, {"batch": batch})
    }


def can_look(scope: Scope) -> bool:
    """Whether this thread's connection sees the present; in a transaction it may not."""
    return not open_database(scope).connection.in_atomic_block
