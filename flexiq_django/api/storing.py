"""The last step of every enqueue call: store the jobs and say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flexiq_django.api.announce import announce, may_notify_with_insert
from flexiq_django.api.result import JobResult
from flexiq_django.store.enqueue import insert_jobs

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue
    from flexiq_django.core.records import NewJob

Watcher = Callable[["Queue", Sequence[JobResult]], None]

#: Called with the handles of jobs right after their insert, in the caller's transaction: how
#: ``flexiq_django.testing`` follows what a test enqueues.
watchers: list[Watcher] = []
#: Those of ``watchers`` that run the jobs.
runners: list[Watcher] = []


def store_jobs(queue: Queue, jobs: Sequence[NewJob]) -> list[JobResult]:
    """Store checked jobs, in the transaction the caller is in; their handles in order."""
    if not jobs:
        return []
    scope = queue.scope
    # Then a look after the commit may make them ready.
    waits = any(job.parents or job.session_id is not None for job in jobs)
    is_notified = not waits and may_notify_with_insert(scope)
    ids = insert_jobs(scope, jobs, notify=is_notified, depths=queue.max_depths)
    announce(scope, ids, jobs, is_notified=is_notified)
    handles = [JobResult(queue, key) for key in ids]
    for watch in (*watchers, *runners):
        watch(queue, handles)
    return handles


def runs_at_once() -> bool:
    """Whether a job has been run by the time its enqueue call returns."""
    return bool(runners)
