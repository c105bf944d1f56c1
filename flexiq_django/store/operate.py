"""What a person or a program may do to a job that it does not own."""

from __future__ import annotations

from uuid import UUID

from flexiq_django.core.status import JobStatus
from flexiq_django.store import dependencies, history, sessions
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS

_CANCELLED = JobStatus.CANCELLED.value


def cancel(scope: Scope, job_id: UUID) -> list[UUID]:
    """Cancel a pending or paused job and, in the same transaction, all that depends on it.

    Returns the ids cancelled, the job itself first; an empty list when there is no such job in the
    namespace or it is neither pending nor paused.
    """
    database = open_database(scope)
    with database.transaction():
        done = database.update_joined(
            JOBS,
            dependencies.cancel_assignments(database, error="NULL"),
            {"id": "id"},
            [{"id": database.id_text(job_id)}],
            "j.status IN ('pending', 'paused') AND j.namespace = %(namespace)s",
        )
        if not done:
            return []
        history.note_replay_errors(database, done)
        sessions.hand_on_after(database, done)
        return [job_id, *dependencies.resolve(database, {job_id: _CANCELLED}).cancelled]


def request_cancel(scope: Scope, job_id: UUID) -> bool:
    """Ask a running job to stop. True when the request is recorded, also when it already was."""
    database = open_database(scope)
    return (
        database.change(
            f"UPDATE {JOBS} SET cancel_requested_at = COALESCE(cancel_requested_at, {{now}}),"  # noqa: S608
            " updated_at = {now}"
            " WHERE id = %(id)s AND namespace = %(namespace)s AND status = 'running'",
            {"id": database.id_text(job_id)},
        )
        > 0
    )


def set_progress(scope: Scope, job_id: UUID, progress: int) -> bool:
    """Set the progress of a job that has not ended. False when there is none."""
    database = open_database(scope)
    return (
        database.change(
            f"UPDATE {JOBS} SET progress = %(progress)s, updated_at = {{now}}"  # noqa: S608
            " WHERE id = %(id)s AND namespace = %(namespace)s"
            " AND status IN ('pending', 'running', 'paused')",
            {"id": database.id_text(job_id), "progress": progress},
        )
        > 0
    )
