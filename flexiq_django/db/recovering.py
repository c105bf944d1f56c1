"""Take back jobs whose worker is lost."""

from __future__ import annotations

from flexiq_django.api import options as check
from flexiq_django.db.database import JobDatabase
from flexiq_django.db.ending import end_lost
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.store import settle, takeover, workers


def reclaim_stale(db: JobDatabase, stale_secs: float = 0) -> int:
    """Take back running jobs whose lease has run out; how many.

    The attempt counts as failed: the job is pending again at once, or has failed when no retry is
    left. Its late writes are refused. With ``stale_secs`` only jobs that have been silent for so
    many seconds as well. It can make this call more patient, never less: what has a lease that
    runs is healthy, however long its worker chose it. Any number of processes may call this at any
    time; a ``flexiq_worker`` of the namespace does the same by itself. Raises
    ``InvalidOptionError``.
    """
    unseen_ms = check.check_span("stale_secs", stale_secs)
    reclaimed = 0
    while batch := end_lost(db, settle.reap, unseen_ms=unseen_ms):
        reclaimed += batch
    return reclaimed


def requeue_interrupted(db: JobDatabase, worker_id: str) -> int:
    """Take back what runs under the name of a worker that has crashed; how many jobs.

    For an executor with a name that stays the same: call it when it starts, before its first claim,
    to have the jobs of its last life at once instead of after their leases. They fare as in
    :func:`reclaim_stale`. Only you know that nobody else runs under this name. Raises
    ``InvalidOptionError``, also for the name of a ``flexiq_worker`` that is alive.
    """
    name = check.check_name("worker_id", worker_id, longest=150)
    if any(worker.id == name for worker in workers.live(db.scope)):
        raise InvalidOptionError(
            f"worker_id is {name!r}, which is a flexiq_worker that is alive; it keeps its jobs"
        )
    return end_lost(db, takeover.take_back, name)
