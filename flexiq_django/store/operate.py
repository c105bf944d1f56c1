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
    return open_database(scope).update_job(
        job_id,
        "cancel_requested_at = COALESCE(cancel_requested_at, {now})",
        "status = 'running'",
        {},
    )


def set_progress(scope: Scope, job_id: UUID, progress: int) -> bool:
    """Set the progress of a job that has not ended. False when there is none."""
    return open_database(scope).update_job(
        job_id,
        "progress = %(progress)s",
        "status IN ('pending', 'running', 'paused')",
        {"progress": progress},
    )


def cancel_even_running(scope: Scope, job_id: UUID, *, error: str) -> str | None:
    """Cancel a job that has not ended, running or not, with the pending jobs that depend on it.

    The status it had before, which is also the answer for a job that has ended and stays as it is;
    ``None`` if there is none in the namespace, or it is archived. An attempt that runs loses the
    job at once; ``error`` is what the job says then.
    """
    database = open_database(scope)
    with database.transaction():
        # Locked first: so the answer is about the very status that the job is taken from.
        rows = database.lock_rows("status, namespace", [job_id])
        if not rows or rows[0][1] != scope.namespace:
            return None
        before = str(rows[0][0])
        done = database.update_joined(
            JOBS,
            {
                **dependencies.cancel_assignments(
                    database, error="CASE WHEN j.status = 'running' THEN %(error)s END"
                ),
                "cancel_requested_at": "COALESCE(j.cancel_requested_at, {now})",
                "lease_at": "NULL",
                "token": "NULL",
            },
            {"id": "id"},
            [{"id": database.id_text(job_id)}],
            "j.status IN ('pending', 'running', 'paused')",
            {"error": error},
        )
        if done:
            history.note_replay_errors(database, done)
            dependencies.resolve(database, {job_id: _CANCELLED})
            sessions.hand_on_after(database, done)
    return before


def set_priority(scope: Scope, job_id: UUID, priority: int, *, only_pending: bool) -> bool:
    """Set the priority of a job that is not archived. False when there is none."""
    return open_database(scope).update_job(
        job_id,
        "priority = %(priority)s",
        "status = 'pending'" if only_pending else "1 = 1",
        {"priority": priority},
    )


def set_lineage(
    scope: Scope,
    job_id: UUID,
    *,
    attempt_id: str | None,
    trial_id: str | None,
    token: int | None = None,
) -> bool:
    """Set ``attempt_id`` and ``trial_id`` of a job that is not archived; ``None`` leaves one alone.

    With ``token`` only for the attempt that owns the job. False when there is no such job.
    """
    return open_database(scope).update_job(
        job_id,
        "attempt_id = COALESCE(%(attempt_id)s, attempt_id),"
        " trial_id = COALESCE(%(trial_id)s, trial_id)",
        "1 = 1" if token is None else "token = %(token)s AND status = 'running'",
        {"token": token, "attempt_id": attempt_id, "trial_id": trial_id},
    )
