"""Take back jobs whose worker is lost."""

from __future__ import annotations

import time

from flexiq_django.api import options as check
from flexiq_django.api.announce import wake_workers
from flexiq_django.db.database import JobDatabase
from flexiq_django.db.ending import end_lost
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.scheduler.chores import NET_SECONDS
from flexiq_django.store import dependencies, link, sessions, settle, takeover, workers


def reclaim_stale(db: JobDatabase, stale_secs: float = 0) -> int:
    """Take back running jobs whose lease has run out; how many.

    The attempt counts as failed: the job is pending again at once, or has failed when no retry is
    left. Its late writes are refused. With ``stale_secs`` only jobs that have been silent for so
    many seconds as well. It can make this call more patient, never less: what has a lease that
    runs is healthy, however long its worker chose it. Any number of processes may call this at any
    time; a ``flexiq_worker`` of the namespace does the same by itself. Raises
    ``InvalidOptionError``.

    Besides, it looks for jobs that wait for others or in the line of a session without need, as a
    process died right after its commit: a bounded step at each call, from beginning to end about
    every 30 seconds.
    """
    unseen_ms = check.check_span("stale_secs", stale_secs)
    reclaimed = 0
    while batch := end_lost(db, settle.reap, unseen_ms=unseen_ms):
        reclaimed += batch
    _find_forgotten(db)
    return reclaimed


def _find_forgotten(db: JobDatabase) -> None:
    """Walk on over the open edges and over the lines, unless that has been done lately."""
    walk, now = db.walk, time.monotonic()
    if now < walk.rests_until:
        return
    edge, line = walk.edge, walk.line
    walk.edge, moved = link.call(db.scope, lambda: dependencies.sweep_ended(db.scope, edge))
    walk.line, went = link.call(db.scope, lambda: sessions.sweep(db.scope, line))
    if not (walk.edge or walk.line):
        walk.rests_until = now + NET_SECONDS
    if moved.released or went:
        wake_workers(db.scope)


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
