"""Write down how attempts ended, many in one transaction, and tell whoever listens.

Nothing waits for company when the worker is otherwise idle; while more results are about to come,
the first waits a few milliseconds for them. While one batch is being written the next one gathers;
when that is a crowd, a second thread writes it at the same time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from flexiq_django import signals
from flexiq_django.core.outcome import Outcome, decide
from flexiq_django.core.records import AutoRetry, ClaimedJob
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.core.status import JobStatus
from flexiq_django.logging import about
from flexiq_django.store import link, settle, verdicts
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import GaveUp, Keeper
from flexiq_django.worker.notebook import Notebook

logger = logging.getLogger(__name__)

#: Most attempts settled in one transaction.
BATCH = 200
#: Attempts waiting to be settled at which a further thread helps.
CROWD = 100
#: Longest time a result waits for company, in seconds.
COMPANY_SECONDS = 0.003


class Settler:
    """The threads that settle; they also write what attempts have put into ``notebook``.

    There is one thread for each of ``keepers``; all but the first only help with crowds.
    """

    def __init__(
        self,
        scope: Scope,
        keepers: Sequence[Keeper],
        notebook: Notebook,
        *,
        worker_id: str,
        policy_of: Callable[[str], RetryPolicy],
        expects_more: Callable[[], bool],
        on_settled: Callable[[Sequence[ClaimedJob]], None],
        on_ready: Callable[[], None],
        makes_room: Callable[[Sequence[ClaimedJob]], bool],
        notifies: bool,
        auto_retry: AutoRetry | None = None,
    ) -> None:
        self._scope = scope
        self._keepers = keepers
        self._worker_id = worker_id
        self._policy_of = policy_of
        self._expects_more = expects_more
        self._on_settled = on_settled
        self._on_ready = on_ready
        self._makes_room = makes_room
        self._notifies = notifies
        self._auto_retry = auto_retry
        self._has_readied = False
        self._outcomes: deque[Outcome] = deque()
        self._notebook = notebook
        notebook.on_note = self._wake
        self._ready, self._crowd = threading.Event(), threading.Event()
        self._in_hand = [0] * len(keepers)
        self._stop = False
        self._threads = [
            threading.Thread(
                target=self._run, args=(number,), name=f"flexiq-settler-{number}", daemon=True
            )
            for number in range(len(keepers))
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    @property
    def pending(self) -> int:
        """Attempts that have ended but are not settled yet."""
        return len(self._outcomes) + sum(self._in_hand)

    def add(self, outcome: Outcome) -> None:
        """Settle this attempt soon."""
        self._outcomes.append(outcome)
        if not self._ready.is_set():
            self._ready.set()
        if len(self._outcomes) >= CROWD and not self._crowd.is_set():
            self._crowd.set()

    def stop(self, timeout: float) -> bool:
        """Settle what is there, then end. False if that took longer than ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        self._stop = True
        self._ready.set()
        self._crowd.set()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def note_ready(self) -> None:
        """Settling made other jobs ready or due: look for them, and wake the other workers."""
        self._on_ready()
        self._has_readied = self._notifies
        self._wake()

    def _wake(self) -> None:
        self._ready.set()

    # --- the threads ------------------------------------------------------------------------------

    def _run(self, number: int) -> None:
        keeper, bell = self._keepers[number], self._crowd if number else self._ready
        while not (self._stop and (number or not (self._outcomes or self._notebook))):
            bell.wait(1.0)
            bell.clear()
            try:
                self._write(number, keeper)
            except GaveUp:
                logger.error("stopping with %s attempts not settled", self.pending)
                break
            except Exception:
                logger.exception("settling failed; the leases of the jobs will run out")
                self._in_hand[number] = 0
        keeper.close()

    def _write(self, number: int, keeper: Keeper) -> None:
        least = CROWD if number else 1
        while len(self._outcomes) >= least or (self._notebook and not number):
            if self._outcomes and not number:
                self._wait_for_company()
            batch = self._next_batch(number)
            # Notes first: what an attempt said before it ended still carries a valid token.
            self._notebook.write(keeper)
            if batch:
                self._settle(batch, keeper)
            self._in_hand[number] = 0
        if self._has_readied:
            self._has_readied = False
            keeper.call(lambda: link.notify(self._scope))

    def _next_batch(self, number: int) -> list[Outcome]:
        # One outcome of each job: the fence tells attempts apart, not what follows from their end.
        batch: dict[UUID, Outcome] = {}
        with contextlib.suppress(IndexError):  # the other thread was faster
            while self._outcomes and len(batch) < BATCH:
                self._in_hand[number] = len(batch) + 1  # first, so that none is out of sight
                outcome = self._outcomes.popleft()
                if batch.setdefault(outcome.job.id, outcome) is not outcome:
                    self._outcomes.appendleft(outcome)
                    break
        self._in_hand[number] = len(batch)
        return list(batch.values())

    def _wait_for_company(self) -> None:
        deadline = time.monotonic() + COMPANY_SECONDS
        while len(self._outcomes) < BATCH and not self._stop and self._expects_more():
            rest = deadline - time.monotonic()
            if rest <= 0:
                return
            self._ready.wait(min(rest, 0.001))
            self._ready.clear()

    def _settle(self, batch: Sequence[Outcome], keeper: Keeper) -> None:
        try:
            settlements = [decide(each, self._policy_of(each.job.task_name)) for each in batch]
            outcome = keeper.call(lambda: settle.settle(self._scope, settlements, self._auto_retry))
        except GaveUp:
            raise
        except Exception as error:
            self._settle_apart(batch, error, keeper)
            return
        jobs = [each.job for each in batch]
        if outcome.buried or outcome.lost:
            _warn(jobs, outcome)
        settlements = verdicts.as_written(settlements, outcome.buried, outcome.stopped)
        self._on_settled(jobs)
        if (
            outcome.released
            or any(each.status == JobStatus.PENDING.value for each in settlements)
            or self._makes_room(jobs)
        ):
            self.note_ready()
        if signals.job_settled.receivers:
            self.tell(each for each in settlements if each.job_id in outcome.settled)

    def _settle_apart(self, batch: Sequence[Outcome], error: Exception, keeper: Keeper) -> None:
        """One bad row must not take the others with it: settle them one by one."""
        if len(batch) > 1:
            logger.warning("settling %s attempts together failed", len(batch), exc_info=error)
            for each in batch:
                self._settle([each], keeper)
            return
        # Let go of it: its lease is no longer renewed, and the reaper will say what happened.
        logger.error(
            "job %s cannot be settled; its lease will run out",
            batch[0].job.id,
            exc_info=error,
            extra=about(batch[0].job),
        )
        self._on_settled([batch[0].job])

    def tell(self, settlements: Any) -> None:
        """Send ``job_settled`` for settlements that were written."""
        for each in settlements:
            signals.send(
                signals.job_settled,
                job_id=str(each.job_id),
                task_name=each.task_name,
                status=each.status,
                error=each.error or each.attempt_error,
                worker_id=self._worker_id,
                namespace=self._scope.namespace,
                using=self._scope.using,
            )


def _warn(jobs: Sequence[ClaimedJob], outcome: settle.Settled) -> None:
    for job in jobs:
        if job.id in outcome.buried:
            logger.warning(
                "job %s (%s) is dead: the retry budget of its task is used up",
                job.id,
                job.task_name,
                extra=about(job),
            )
        if job.id in outcome.lost:
            logger.warning(
                "late result of job %s (%s) dropped: the attempt no longer owns the job",
                job.id,
                job.task_name,
                extra=about(job),
            )
