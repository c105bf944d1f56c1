"""A worker without threads: it runs jobs one by one where it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from flexiq_django import signals
from flexiq_django.api import clock
from flexiq_django.api.auto_retry import auto_retry_for
from flexiq_django.api.context import Attempt
from flexiq_django.api.queue import Queue
from flexiq_django.api.registry import queues_of
from flexiq_django.api.result import JobResult
from flexiq_django.conf import get_settings
from flexiq_django.core.outcome import Outcome, decide
from flexiq_django.core.records import ClaimedJob, Settlement
from flexiq_django.core.status import JobStatus
from flexiq_django.exceptions import JobPaused
from flexiq_django.scheduler.chores import DeadLetterRetries
from flexiq_django.scheduler.periodic import Periodic
from flexiq_django.store import (
    claim,
    gates,
    journal,
    promote,
    revive,
    schedules,
    sessions,
    settle,
    verdicts,
)
from flexiq_django.store.scope import Scope
from flexiq_django.worker.attempt import Runner, cancelled_before, too_late
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.connections import Keeper, contained
from flexiq_django.worker.loop import RELANE_ROUNDS, announce_started
from flexiq_django.worker.notebook import Notebook, is_in_coroutine

#: The name under which jobs are claimed.
WORKER_ID = "flexiq_django.testing"

#: What ends the job only. The rest, such as ``KeyboardInterrupt`` and the outcomes of pytest, ends
#: the test too.
_OF_THE_JOB = (Exception, JobPaused, asyncio.CancelledError)


class InlineWorker:
    """Claims, runs and settles on the connection of the caller, at most ``limit`` attempts."""

    def __init__(self, queue: Queue, *, limit: int | None, retries: bool) -> None:
        self._queue = queue
        self._place = queue.place
        self._left = limit
        self._retries = retries
        self._catalogue = Catalogue(self._place)
        self._opens_in: float | None = None
        self._auto_retry = auto_retry_for(self._place)
        #: The jobs that ran, one entry for each attempt.
        self.ran: list[JobResult] = []

    # --- time -------------------------------------------------------------------------------------

    def live(self, since: datetime, until: datetime, *, is_there: bool) -> None:
        """Do what a worker does from one moment to another, each thing when it is due.

        ``is_there``: what is ready now is run now, else at the next moment something is due.
        """
        before = clock.moved_to()
        try:
            self._declare_schedules(since)
            now = since if is_there else self._next_moment(since, until)
            while True:
                clock.move_to(now)
                self._declare_schedules(now)  # or those not declared for minutes count as gone
                self.work(now)
                following = self._next_moment(now, until)
                if following <= now or self._is_spent:
                    return
                now = following
        finally:
            clock.move_to(before)

    def _next_moment(self, now: datetime, until: datetime) -> datetime:
        """When something is due next, at the latest ``until``."""
        scope = self._at(now)
        waits = [promote.promote_due(scope)[1], schedules.due(scope).wait, self._opens_in]
        if self._auto_retry is not None:
            waits.append(revive.seconds_until_due(scope))
        later = [now + timedelta(seconds=wait) for wait in waits if wait]
        return max(now, min([*later, until]))

    def _declare_schedules(self, now: datetime) -> None:
        for queue in queues_of(self._place):
            if queue.place == self._place:
                for each in queue.schedules.values():
                    schedules.declare(self._at(now), each.row(), each.cron.next_after(now))

    def _at(self, now: datetime | None) -> Scope:
        return replace(self._place, now=now)

    @property
    def _is_spent(self) -> bool:
        return self._left is not None and self._left <= 0

    # --- work -------------------------------------------------------------------------------------

    def work(self, now: datetime | None) -> None:
        """Fire and run what is due at a moment; ``None``: at the time of the database."""
        scope = self._at(now)
        if now is not None:
            periodic = Periodic(scope, _call, self._catalogue.build, lambda _count: None)
            while not periodic.run():
                pass
        while not self._is_spent:
            self._retry_dead(scope)
            while promote.promote_due(scope)[0]:
                pass
            promote.cancel_expired(scope)
            _look_at_sessions(scope)
            jobs = self._claim(scope)
            if not jobs:
                return
            for job in jobs:
                self._run(scope, job)

    def _retry_dead(self, scope: Scope) -> None:
        if self._auto_retry is None:
            return
        most, limited = self._auto_retry.most, self._catalogue.limited
        retries = DeadLetterRetries(scope, _call, most, limited, lambda _count: None)
        while not retries.run():
            pass

    def _claim(self, scope: Scope) -> list[ClaimedJob]:
        settings = get_settings()
        lanes = self._lanes(scope)
        known = gates.read_gates(scope)
        for _ in range(RELANE_ROUNDS if known.tasks else 0):
            if not gates.relane(scope, lanes, known):
                break
            lanes = self._lanes(scope)
        lease_ms = round(settings.LOCK_GRACE_SECONDS * 1000)
        jobs, self._opens_in = claim.claim(
            scope, lanes=lanes, limit=1, worker_id=WORKER_ID, lease_ms=lease_ms, gates=known
        )
        return jobs

    def _lanes(self, scope: Scope) -> list[str]:
        deployment = get_settings().DEPLOYMENT_ID
        return claim.discover_lanes(scope, queues=None, deployment_id=deployment)

    def _run(self, scope: Scope, job: ClaimedJob) -> None:
        self._left = None if self._left is None else self._left - 1
        if job.is_expired:
            self._settle(scope, too_late(job))
            return
        if job.is_cancel_requested:
            self._settle(scope, cancelled_before(job))
            return
        settings = get_settings()
        keeper = Keeper(scope, lambda: True, is_own=False)
        notebook = _Notes(scope)
        task = self._catalogue.find(job.task_name)
        attempt = Attempt(
            job,
            namespace=scope.namespace,
            journal=notebook,
            soft_timeout=task.options.soft_timeout if task else None,
        )
        errors: list[BaseException] = []
        runner = Runner(
            scope,
            keeper,
            self._catalogue.find,
            max_result_bytes=settings.MAX_PAYLOAD_BYTES,
            max_error_bytes=settings.MAX_ERROR_BYTES,
            on_error=errors.append,
        )
        announce_started(job, WORKER_ID)
        with contained():
            outcome = runner.run(attempt)
        notebook.write(keeper)
        self.ran.append(JobResult(self._queue, job.id))
        if attempt.is_settled and outcome is not None:
            self._tell(decide(outcome, self._catalogue.policy_of(job.task_name)))
        elif outcome is not None:
            self._settle(scope, outcome)
        for error in errors:
            if not isinstance(error, _OF_THE_JOB):
                raise error  # meant for whoever runs the test

    def _settle(self, scope: Scope, outcome: Outcome) -> None:
        settlement = decide(outcome, self._catalogue.policy_of(outcome.job.task_name))
        if self._retries and settlement.status == JobStatus.PENDING.value:
            settlement = settlement._replace(wait_ms=0)
        settled = settle.settle(scope, [settlement], self._auto_retry)
        for each in verdicts.as_written([settlement], settled.buried, settled.stopped):
            if each.job_id in settled.settled:
                self._tell(each)

    def _tell(self, settlement: Settlement) -> None:
        signals.send(
            signals.job_settled,
            job_id=str(settlement.job_id),
            task_name=settlement.task_name,
            status=settlement.status,
            error=settlement.error or settlement.attempt_error,
            worker_id=WORKER_ID,
            namespace=self._place.namespace,
            using=self._place.using,
        )


class _Notes(Notebook):
    """What a body says, and asks: here every look is at the database, in the same transaction."""

    def look(self, attempt: Attempt) -> None:
        """Bring the flags of an attempt up to date; in a coroutine nobody can have changed them."""
        if is_in_coroutine():
            return
        job = attempt.job
        seen = journal.look(self._scope, [(job.id, job.token)]).get(job.id)
        attempt.is_over = seen is None
        attempt.is_cancel_requested = bool(seen)
        attempt.is_watched = False  # there is no heartbeat: ask again the next time


def _look_at_sessions(scope: Scope) -> None:
    """What else happens after each commit, which a test's transaction never sees."""
    after, _ = sessions.sweep(scope, "")
    while after:
        after, _ = sessions.sweep(scope, after)


def _call(verb: Callable[[], Any]) -> Any:
    return verb()
