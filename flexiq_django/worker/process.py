"""One worker process: compose the parts, run, drain, leave."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flexiq_django import signals
from flexiq_django.api.context import Attempt
from flexiq_django.core.records import ClaimedJob
from flexiq_django.store import link, promote, workers
from flexiq_django.worker import identity
from flexiq_django.worker.bodies import Bodies
from flexiq_django.worker.buffer import Buffer
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.chores import build_chores
from flexiq_django.worker.connections import GaveUp, Keeper
from flexiq_django.worker.executors.threads import ThreadExecutor
from flexiq_django.worker.heartbeat import Heartbeat, Holdings
from flexiq_django.worker.loop import ClaimLoop
from flexiq_django.worker.notebook import Notebook
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.readiness import require_ready
from flexiq_django.worker.settler import Settler
from flexiq_django.worker.shutdown import handled_signals, within
from flexiq_django.worker.waking import make_waker

logger = logging.getLogger(__name__)

#: Threads that settle, each with a connection, where writers need not wait for each other.
SETTLERS = 2
#: Seconds a body has to end by itself after it has been interrupted.
LAST_CHANCE = 2.0
#: Seconds for the last writes when the worker is told to leave at once.
LAST_WRITES = 2.0


class WorkerProcess:
    """Claims and runs jobs until it is told to stop, or in burst mode until there are none."""

    def __init__(self, options: WorkerOptions) -> None:
        self.options = options
        self.worker_id = identity.new_worker_id()
        self._stops, self._drain_until, self._last_call = 0, math.inf, math.inf
        scope = options.scope
        self._catalogue = Catalogue(scope)
        self._keeper = self._make_keeper(self._must_give_up)
        self._waker = make_waker(
            scope, self._keeper, poll_seconds=options.poll, listen=options.listen
        )
        self._holdings = Holdings()
        self._buffer = Buffer(options.concurrency)
        self._notebook = Notebook(scope)
        self._executor = ThreadExecutor(
            options.concurrency, lambda job: self._bodies.run(job), self._on_low
        )
        self._settler = self._make_settler()
        self._heartbeat = Heartbeat(
            scope,
            self._make_keeper(self._must_give_up),
            self._holdings,
            worker_id=self.worker_id,
            lease_ms=options.lease_ms,
            seconds=options.heartbeat,
            state=lambda: "draining" if self._stops else "running",
            on_timeout=lambda attempt: self._bodies.time_out(attempt),
        )
        self._chores = build_chores(
            options,
            self._make_keeper(lambda: self._stops > 0),
            self._catalogue,
            holder=self.worker_id,
            on_ready=lambda _count: self._loop.woken(),
            on_reaped=self._settler.tell,
            on_refused=lambda: None if self._stops else self.request_stop(),
        )
        self._loop = ClaimLoop(
            options,
            worker_id=self.worker_id,
            keeper=self._keeper,
            waker=self._waker,
            executor=self._executor,
            buffer=self._buffer,
            holdings=self._holdings,
            unsettled=lambda: self._settler.pending,
            on_empty=self._chores.nudge,
        )
        self._bodies = self._make_bodies()

    def _make_keeper(self, must_give_up: Callable[[], bool]) -> Keeper:
        return Keeper(self.options.scope, must_give_up, silence=self.options.silence)

    def _make_settler(self) -> Settler:
        scope = self.options.scope
        writers = 1 if link.has_one_writer(scope) else SETTLERS
        return Settler(
            scope,
            [self._make_keeper(self._must_give_up) for _ in range(writers)],
            self._notebook,
            worker_id=self.worker_id,
            policy_of=self._catalogue.policy_of,
            expects_more=lambda: self._executor.waiting > 0,
            on_settled=self._on_settled,
            on_ready=self._on_ready,
            makes_room=lambda jobs: self._loop.makes_room(jobs),
            notifies=self.options.listen,
            auto_retry=self.options.auto_retry,
        )

    def _make_bodies(self) -> Bodies:
        return Bodies(
            self.options,
            worker_id=self.worker_id,
            keeper=Keeper(self.options.scope, self._must_give_up, is_own=False),
            catalogue=self._catalogue,
            holdings=self._holdings,
            buffer=self._buffer,
            notebook=self._notebook,
            settler=self._settler,
            executor=self._executor,
            may_begin=self._loop.may_begin,
            on_settled=self._on_settled,
        )

    # --- life -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Work until told to stop; the exit code: 0 after a clean drain, 1 if jobs were cut off.

        Raises ``ConfigurationError`` if the database has not been migrated, and ``ContractError``
        if it asks for a newer build.
        """
        with handled_signals(self.request_stop):
            return self._run()

    @property
    def has_strays(self) -> bool:
        """Whether a body still runs that nothing can stop but the end of the process."""
        return self._executor.running > 0 or self._executor.strays > 0

    def _run(self) -> int:
        try:
            require_ready(self.options.scope, self._keeper.call)
            self._register()
        except GaveUp:
            return 0
        signals.job_enqueued.connect(self._on_enqueued)
        self._catalogue.declare_limits(self._keeper.call)
        self._catalogue.declare_schedules(self._keeper.call)
        for part in (self._executor, self._settler, self._heartbeat, self._chores):
            part.start()
        logger.info("worker %s started: %s", self.worker_id, identity.describe(self.options))
        signals.send(
            signals.worker_started, worker_id=self.worker_id, namespace=self.options.scope.namespace
        )
        try:
            self._work()
        except GaveUp:
            logger.warning("stopping while the database is away")
        return self._drain()

    def request_stop(self) -> None:
        """Drain; a second call leaves at once. Safe in a signal handler."""
        self._stops += 1
        if self._stops == 1:
            self._limit_drain()
        else:
            self._last_call = time.monotonic() + LAST_WRITES
        self._waker.wake()

    def _limit_drain(self) -> float:
        """Until when running jobs may finish. Also limits the patience with a lost database."""
        if self._drain_until == math.inf:
            self._drain_until = time.monotonic() + self.options.stop_timeout
            self._last_call = self._drain_until + 10.0
        return self._drain_until

    def _work(self) -> None:
        limit = self.options.max_jobs
        while not self._stops:
            found = self._loop.turn()
            if limit is not None and self._loop.claimed >= limit:
                logger.info("claimed %s jobs, which is the most for one process", limit)
                return
            if not found and self._is_done():
                return

    def _is_done(self) -> bool:
        """In burst mode: nothing is claimed, running or waiting to be settled, nothing is due."""
        if len(self._holdings) or self._settler.pending or self._executor.running:
            self._waker.wait(0.005)
            return False
        moved, _ = self._keeper.call(lambda: promote.promote_due(self.options.scope))
        return moved == 0 and not self._loop.turn()

    def _drain(self) -> int:
        options = self.options
        logger.info("worker %s drains: %s jobs in hand", self.worker_id, len(self._holdings))
        deadline = self._limit_drain()
        self._attempt_call(lambda: self._loop.give_back(self._executor.take_back()))
        self._await_bodies(deadline, lambda: self._stops >= 2)
        self._executor.stop()
        self._attempt_call(lambda: self._loop.give_back(self._executor.take_back()))
        stragglers = [each for each in self._holdings.attempts() if each.end()]
        if stragglers:
            self._interrupt(stragglers)
        settled = self._settler.stop(max(LAST_WRITES, self._last_call - time.monotonic()))
        self._chores.stop(LAST_WRITES)
        self._heartbeat.stop(LAST_WRITES)
        sign_off = partial(workers.remove, options.scope, self.worker_id)
        within(LAST_WRITES, partial(self._attempt_call, sign_off))
        signals.send(
            signals.worker_stopped, worker_id=self.worker_id, namespace=options.scope.namespace
        )
        signals.job_enqueued.disconnect(self._on_enqueued)
        logger.info("worker %s stopped; %s jobs interrupted", self.worker_id, len(stragglers))
        self._keeper.close()
        self._waker.close()
        return 0 if settled and not self._settler.pending and not stragglers else 1

    def _await_bodies(self, deadline: float, must_hurry: Callable[[], bool]) -> None:
        while self._executor.running and not must_hurry() and time.monotonic() < deadline:
            self._waker.wait(min(0.1, max(0.0, deadline - time.monotonic())))

    def _interrupt(self, stragglers: Sequence[Attempt]) -> None:
        """Ask the bodies to end, once; settle the attempts when they have, or soon."""
        for attempt in stragglers:
            self._bodies.interrupt(attempt)
        now = time.monotonic()
        # Until it is settled nobody else can run the job: the next attempt seldom meets this one.
        grace = min(LAST_CHANCE, max(0.0, self._last_call - now) / 4)
        self._await_bodies(now + grace, lambda: False)
        for attempt in stragglers:
            self._bodies.cut_off(attempt)

    def _attempt_call(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as error:  # leaving must go on: the leases see to the rest
            logger.warning("on the way out: %s: %s", type(error).__name__, error)

    def _must_give_up(self) -> bool:
        return time.monotonic() > self._last_call

    # --- what the parts tell each other -----------------------------------------------------------

    def _on_low(self) -> None:
        if self._loop.awaits_room:
            self._waker.wake()

    def _on_settled(self, jobs: Sequence[ClaimedJob]) -> None:
        self._holdings.drop(list(jobs))
        if self._loop.awaits_settler:
            self._waker.wake()

    def _on_ready(self) -> None:
        """Jobs have become ready or due: run them, or learn when that will be."""
        self._chores.nudge()
        self._loop.woken()

    # --- around it --------------------------------------------------------------------------------

    def _on_enqueued(self, *, namespace: str, using: str, **_: Any) -> None:
        scope = self.options.scope
        if namespace == scope.namespace and using == scope.using:
            self._loop.woken()

    def _register(self) -> None:
        options = self.options
        row = identity.describe_row(options, self.worker_id)
        self._keeper.call(lambda: workers.register(options.scope, row, lease_ms=options.lease_ms))
