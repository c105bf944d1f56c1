"""The methods of ``Queue`` that run work again: requeue, continue, replay, retry of the dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from flexiq_django.api import options as check
from flexiq_django.api.announce import announce, wake_workers
from flexiq_django.api.registry import tasks_of
from flexiq_django.api.result import JobResult
from flexiq_django.api.twins import async_twin
from flexiq_django.conf import get_settings
from flexiq_django.exceptions import (
    DeadLetterNotFoundError,
    JobNotFoundError,
    TaskRevokedError,
)
from flexiq_django.store import grant, revive
from flexiq_django.store.revive import Retried

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue
    from flexiq_django.store.scope import Scope


class Reviving:
    """What a person does after something went wrong."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

        @property
        def _queue(self) -> Queue: ...

    def requeue_job(self, job_id: str) -> bool:
        """Take a running job from its worker and put it back in line at once.

        For a job whose worker hangs. Retry count, budget and progress stay; a request to cancel is
        forgotten. Whatever the old attempt still reports is dropped, but its body may go on: then
        both run. False if the job is unknown or not running.
        """
        key = check.parse_id(job_id)
        if key is None or not revive.requeue(self.scope, key, limited=limited_here(self._queue)):
            return False
        wake_workers(self.scope)
        return True

    def continue_job(self, job_id: str) -> bool:
        """Put a paused job back in line: pending, and due now.

        It runs from its beginning, with the same arguments and its progress, and no attempt of its
        retry budget is used. False if the job is unknown or not paused, as after another caller
        has continued or cancelled it.
        """
        key = check.parse_id(job_id)
        if key is None or not revive.continue_paused(
            self.scope, key, limited=limited_here(self._queue)
        ):
            return False
        wake_workers(self.scope)
        return True

    def grant_attempt(
        self, job_id: str, *, clear_cancellation: bool = False, force: bool = False
    ) -> None:
        """Give a job that is dead or cancelled one more execution, at once: the same job goes on.

        ``max_retries`` rises so that at least one attempt is left; id, history and progress stay.
        An archived job comes back from the archive. Its dead letter goes and its unique key is
        taken again; jobs that were cancelled because of it stay cancelled. It runs without waiting
        for its parents, whatever becomes of those that have not ended. A recorded cancel is never
        forgotten by itself: without ``clear_cancellation`` the next attempt of a cancelled job is
        cancelled before its body begins. ``force`` is for a job that failed less than
        ``LOCK_GRACE_SECONDS`` ago: its worker may still be executing it, but can write nothing.

        Raises ``JobNotFoundError``, ``JobNotGrantableError`` for a job that neither failed nor was
        cancelled, ``JobMayStillRunError`` within that time, ``TaskRevokedError``, and
        ``UniqueKeyTakenError`` if another job has the key by now. All but the first are
        ``RuntimeError``.
        """
        is_forced = check.check_flag("force", force)
        is_cleared = bool(check.check_flag("clear_cancellation", clear_cancellation))
        key = check.parse_id(job_id)
        if key is None:
            raise JobNotFoundError(f"there is no job {job_id} in {self._queue!r}")
        grant.grant(
            self.scope,
            key,
            limited=limited_here(self._queue),
            clear_cancellation=is_cleared,
            grace_ms=0 if is_forced else round(get_settings().LOCK_GRACE_SECONDS * 1000),
        )
        wake_workers(self.scope)

    def replay(self, job_id: str, *, actor: str | None = None) -> JobResult:
        """Store a new job that does the same again; its handle.

        For a job in any state, archived ones too, which stays as it is. The copy has the arguments,
        queue, priority, retries, timeout, lifetime, metadata, notes and labels of the original; no
        attempt is used, it is due now, and it has no unique key, no dependencies and no expiry.
        The replay history keeps who asked (``actor``, a text) and what the original failed with.

        Raises ``JobNotFoundError`` (a ``ValueError``) for an unknown job, ``TaskRevokedError`` and
        ``InvalidOptionError``.
        """
        who = check.check_text("actor", actor, longest=200)
        key = check.parse_id(job_id)
        scope = self.scope
        job = key and revive.replay(scope, key, limited=limited_here(self._queue), actor=who)
        if not job:
            raise JobNotFoundError(f"there is no job {job_id} in {self._queue!r}")
        announce(scope, [job.id], [job])
        return JobResult(self._queue, job.id)

    def retry_dead(self, dead_id: str) -> str:
        """Put a new job in the place of a dead letter; the id of the job.

        Takes the id of the letter, which is gone afterwards: however many ask at once, one job
        comes of it. It has what a replay has; metadata that is a JSON object, or was empty, also
        says ``__dlq_retry_count`` and ``__origin_job_id``. The dead job stays as it is.

        Raises ``DeadLetterNotFoundError`` (a ``RuntimeError``) for a letter that is unknown or has
        been retried, and ``TaskRevokedError``.
        """
        key = check.parse_id(dead_id)
        retried = Retried({}, []) if key is None else retry_letters(self._queue, [key])
        if retried.revoked:
            raise TaskRevokedError(
                f"dead letter {dead_id}: its task is revoked; queue.unrevoke_task() allows new jobs"
                " of it again"
            )
        for job in retried.jobs.values():
            return str(job.id)
        raise DeadLetterNotFoundError(
            f"there is no dead letter {dead_id} in {self._queue!r}; it may have been retried or"
            " deleted, or this is the id of a job"
        )

    arequeue_job = async_twin(requeue_job)
    acontinue_job = async_twin(continue_job)
    agrant_attempt = async_twin(grant_attempt)
    areplay = async_twin(replay)
    aretry_dead = async_twin(retry_dead)


def retry_letters(queue: Queue, letter_ids: Sequence[UUID]) -> Retried:
    """Put a new job in the place of each of these dead letters, in one transaction.

    Letters that are not there, and those of revoked tasks, stay out of it.
    """
    scope = queue.scope
    retried = revive.retry_dead(scope, letter_ids, limited=limited_here(queue))
    jobs = list(retried.jobs.values())
    announce(scope, [job.id for job in jobs], jobs)
    return retried


def limited_here(queue: Queue) -> Mapping[str, bool]:
    """Of each task its workers run, whether its jobs wait in lanes of their own."""
    tasks = {**tasks_of(queue.place), **queue.tasks}
    return {name: task.options.is_limited for name, task in tasks.items()}
