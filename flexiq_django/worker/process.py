"""One worker process: run, drain, leave. Its parts are put together in ``parts.py``."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flexiq_django import signals
from flexiq_django.api.context import Attempt
from flexiq_django.logging import set_worker
from flexiq_django.store import promote, workers
from flexiq_django.worker import identity
from flexiq_django.worker.connections import GaveUp
from flexiq_django.worker.memory import MemoryLimit
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.parts import Parts
from flexiq_django.worker.pulse import Pulse
from flexiq_django.worker.readiness import require_ready
from flexiq_django.worker.shutdown import handled_signals, within

logger = logging.getLogger(__name__)

#: Seconds a body has to end by itself after it has been interrupted.
LAST_CHANCE = 2.0
#: Seconds for the last writes when the worker is told to leave at once.
LAST_WRITES = 2.0


class WorkerProcess:
    """Claims and runs jobs until it is told to stop, or in burst mode until there are none."""

    def __init__(self, options: WorkerOptions) -> None:
        self.options = options
        self.worker_id = identity.new_worker_id()
        #: Whether the worker left because it has run its share of jobs, or has grown too large.
        self.is_recycled = False
        self._has_strays_to_leave = False
        self._stops, self._drain_until, self._last_call = 0, math.inf, math.inf
        self._is_leaving = False
        self._memory = MemoryLimit(options.most_rss)
        self._parts = Parts(
            options,
            self.worker_id,
            must_give_up=lambda: time.monotonic() > self._last_call,
            is_stopping=lambda: self._stops > 0,
            is_leaving=lambda: self._stops > 0 or self._is_leaving,
            on_refused=lambda: None if self._stops else self.request_stop(),
        )

    # --- from outside -----------------------------------------------------------------------------

    def run(self) -> int:
        """Work until told to stop; the exit code: 0 after a clean drain, 1 if jobs were cut off.

        Raises ``ConfigurationError`` if the database has not been migrated, and ``ContractError``
        if it asks for a newer build.
        """
        set_worker(self.worker_id)
        try:
            with handled_signals(self.request_stop):
                return self._run()
        finally:
            set_worker(None)

    def request_stop(self) -> None:
        """Drain; a second call leaves at once. Safe in a signal handler."""
        self._stops += 1
        if self._stops == 1:
            self._limit_drain()
        else:
            self._last_call = time.monotonic() + LAST_WRITES
        self._parts.waker.wake()

    def close(self) -> None:
        """Let go of what even a worker holds that has not run."""
        self._parts.waker.close()

    @property
    def pulse(self) -> Pulse:
        """What probes may know of this worker."""
        return self._parts.pulse

    @property
    def is_tainted(self) -> bool:
        """Whether it left for bodies that only its end can stop, and nobody told it to stop."""
        return self._has_strays_to_leave and not self._stops

    @property
    def has_strays(self) -> bool:
        """Whether a body still runs that nothing can stop but the end of the process."""
        return self._parts.executor.running > 0 or self._parts.executor.strays > 0

    # --- work -------------------------------------------------------------------------------------

    def _run(self) -> int:
        parts = self._parts
        try:
            require_ready(self.options.scope, parts.keeper.call)
            self._register()
            parts.catalogue.declare_limits(parts.keeper.call)
            parts.catalogue.declare_schedules(parts.keeper.call)
        except GaveUp:
            return 0
        signals.job_enqueued.connect(self._on_enqueued)
        for part in parts.to_start:
            part.start()
        logger.info("worker %s started: %s", self.worker_id, identity.describe(self.options))
        self._announce(signals.worker_started)
        has_failed = False
        try:
            self._work()
        except GaveUp:
            logger.warning("stopping while the database is away")
        except Exception:  # running jobs must not go down with it
            logger.exception("claiming failed; the worker drains")
            has_failed = True
        try:
            return max(self._drain(), int(has_failed))
        finally:
            parts.executor.close()  # or the end of the process would wait for its children

    def _register(self) -> None:
        options = self.options
        row = identity.describe_row(options, self.worker_id)
        self._parts.keeper.call(
            lambda: workers.register(options.scope, row, lease_ms=options.lease_ms)
        )
        self.pulse.is_registered = True

    def _on_enqueued(self, *, namespace: str, using: str, **_: Any) -> None:
        scope = self.options.scope
        if namespace == scope.namespace and using == scope.using:
            self._parts.loop.woken()

    def _work(self) -> None:
        loop, executor = self._parts.loop, self._parts.executor
        limit = self.options.most_claims
        while not self._stops:
            found = loop.turn()
            if executor.oldest_stray > self.options.stray_grace:
                logger.warning(
                    "%s bodies still run long after their time was up; the worker drains, to be"
                    " started anew",
                    executor.strays,
                )
                self._has_strays_to_leave = True
                return
            if limit is not None and loop.claimed >= limit:
                logger.info("claimed %s jobs, which is the most for one process", limit)
                return self._let_finish()
            # After a job, or a process that is born too large would be replaced for ever in vain.
            if self._parts.has_settled and self._memory.is_exceeded():
                return self._let_finish()
            if not found and self._is_done():
                return

    def _let_finish(self) -> None:
        """Claim no more and let running jobs end, however long: nobody waits for the process."""
        parts = self._parts
        self._is_leaving = self.is_recycled = True
        parts.loop.awaits_room = True  # be woken when a slot falls idle
        self._attempt_call(lambda: parts.loop.give_back(parts.executor.take_back()))
        while parts.executor.running and not self._stops:
            parts.waker.rest(1.0)

    def _is_done(self) -> bool:
        """In burst mode: nothing is claimed, running or waiting to be settled, nothing is due."""
        parts = self._parts
        if len(parts.holdings) or parts.settler.pending or parts.executor.running:
            parts.waker.wait(0.005)
            return False
        moved, _ = parts.keeper.call(lambda: promote.promote_due(self.options.scope))
        return moved == 0 and not parts.loop.turn()

    # --- leave ------------------------------------------------------------------------------------

    def _limit_drain(self) -> float:
        """Until when running jobs may finish. Also limits the patience with a lost database."""
        if self._drain_until == math.inf:
            self._drain_until = time.monotonic() + self.options.stop_timeout
            self._last_call = self._drain_until + 10.0
        return self._drain_until

    def _drain(self) -> int:
        parts, scope = self._parts, self.options.scope
        self._is_leaving = True
        logger.info("worker %s drains: %s jobs in hand", self.worker_id, len(parts.holdings))
        deadline = self._limit_drain()
        self._attempt_call(lambda: parts.loop.give_back(parts.executor.take_back()))
        self._await_bodies(deadline, lambda: self._stops >= 2)
        parts.executor.stop()
        self._attempt_call(lambda: parts.loop.give_back(parts.executor.take_back()))
        stragglers = [each for each in parts.holdings.attempts() if each.end()]
        if stragglers:
            self._interrupt(stragglers)
        parts.executor.close()
        self._attempt_call(lambda: parts.loop.give_back([]))  # what was about to begin
        for attempt in stragglers:
            parts.bodies.cut_off(attempt)
        settled = parts.settler.stop(max(LAST_WRITES, self._last_call - time.monotonic()))
        parts.chores.stop(LAST_WRITES)
        parts.timekeeper.stop(LAST_WRITES)
        parts.heartbeat.stop(LAST_WRITES)
        sign_off = partial(workers.remove, scope, self.worker_id)
        within(LAST_WRITES, partial(self._attempt_call, sign_off))
        self._announce(signals.worker_stopped)
        signals.job_enqueued.disconnect(self._on_enqueued)
        logger.info("worker %s stopped; %s jobs interrupted", self.worker_id, len(stragglers))
        parts.keeper.close()
        self.close()
        return 0 if settled and not parts.settler.pending and not stragglers else 1

    def _await_bodies(self, deadline: float, must_hurry: Callable[[], bool]) -> None:
        parts = self._parts
        while parts.executor.running and not must_hurry() and time.monotonic() < deadline:
            parts.waker.rest(min(0.1, max(0.0, deadline - time.monotonic())))

    def _interrupt(self, stragglers: Sequence[Attempt]) -> None:
        """Ask the bodies to end, once, and give them a moment to do so.

        Until an attempt is settled nobody else can run its job: so the next attempt seldom meets
        this one.
        """
        for attempt in stragglers:
            self._parts.bodies.interrupt(attempt)
        now = time.monotonic()
        grace = min(LAST_CHANCE, max(0.0, self._last_call - now) / 4)
        self._await_bodies(now + grace, lambda: False)

    def _attempt_call(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as error:  # leaving must go on: the leases see to the rest
            logger.warning("on the way out: %s: %s", type(error).__name__, error)

    def _announce(self, signal: Any) -> None:
        namespace = self.options.scope.namespace
        signals.send(signal, worker_id=self.worker_id, namespace=namespace)
