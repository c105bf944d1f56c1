"""Make scheduled jobs ready when they are due, and cancel those that have expired."""

from __future__ import annotations

from flexiq_django.core.status import JobStatus
from flexiq_django.store import dependencies, history, sessions
from flexiq_django.store.due import seconds_until_first
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS


def promote_due(scope: Scope) -> tuple[int, float | None]:
    """Make due jobs ready; how many, and the seconds until the next one is due.

    ``None`` when no further job is scheduled. Moves at most one batch: repeat at once when the wait
    is 0. Any number of processes may do it at the same time.
    """
    database = open_database(scope)
    wait = seconds_until_first(database, JOBS, "promote_at")
    if wait is None or wait > 0:
        return 0, wait
    lines = database.promote(sessions.sql_of_lane(database), database.batch_size)
    sessions.look_after_commit(scope, {line for line in lines if line is not None})
    return len(lines), seconds_until_first(database, JOBS, "promote_at")


def cancel_expired(scope: Scope, *, limit: int = 100) -> dependencies.Moved:
    """Cancel pending jobs that are too late to start, with their dependents; what became of all.

    Whatever somebody else has locked is passed over.
    """
    database = open_database(scope)
    due = (
        f"SELECT id FROM {JOBS} WHERE namespace = %(namespace)s"  # noqa: S608
        " AND expires_at <= {now} AND status = 'pending' ORDER BY expires_at LIMIT %(limit)s"
    )
    if not database.fetch(due, {"limit": 1}):  # the usual answer, without a transaction
        return dependencies.Moved([], 0)
    with database.transaction():
        expired = database.fetch(due + database.for_update_of_free, {"limit": limit})
        if not expired:
            return dependencies.Moved([], 0, passed_over=1)
        cancelled = database.update_joined(
            JOBS,
            dependencies.cancel_assignments(database, error="'expired'"),
            {"id": "id"},
            [{"id": database.id_text(database.read_id(key))} for (key,) in expired],
            "j.status = 'pending' AND j.expires_at <= {now}",
        )
        history.note_replay_errors(database, cancelled)
        handed_on = sessions.hand_on_after(database, cancelled)
        moved = dependencies.resolve(
            database, dict.fromkeys(cancelled, JobStatus.CANCELLED.value), only_free=True
        )
    return dependencies.Moved(
        sorted(cancelled) + moved.cancelled, handed_on + moved.released, moved.passed_over
    )
