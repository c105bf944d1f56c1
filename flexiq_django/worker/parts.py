"""The parts of a worker process, put together. They know each other by what is said here only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from flexiq_django.core.records import ClaimedJob
from flexiq_django.scheduler.loop import ChoreLoop
from flexiq_django.store import link
from flexiq_django.worker.bodies import Bodies
from flexiq_django.worker.buffer import Buffer
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.chores import build_chores
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.executors import make_executor
from flexiq_django.worker.heartbeat import Heartbeat, Holdings
from flexiq_django.worker.loop import ClaimLoop
from flexiq_django.worker.notebook import Notebook
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.pulse import Pulse
from flexiq_django.worker.settler import Settler
from flexiq_django.worker.spawned import run_bodies
from flexiq_django.worker.timekeeper import Timekeeper
from flexiq_django.worker.waking import make_waker

#: Seconds a chore waits for rows that others have locked, where it cannot pass over them: the other
#: chores, on the same thread, wait with it.
CHORE_PATIENCE = 1.0

#: Threads that settle, each with a connection, where writers need not wait for each other.
SETTLERS = 2


class Startable(Protocol):
    """A part that begins to act when told."""

    def start(self) -> None:
        """Begin."""


class Parts:
    """What a worker process consists of.

    ``must_give_up``: whether there is no time left to wait for a lost database; ``is_stopping``:
    whether the worker was told to stop; ``is_leaving``: whether it leaves, told or not;
    ``on_refused`` is called when the database asks for a newer build.
    """

    def __init__(
        self,
        options: WorkerOptions,
        worker_id: str,
        *,
        must_give_up: Callable[[], bool],
        is_stopping: Callable[[], bool],
        is_leaving: Callable[[], bool],
        on_refused: Callable[[], None],
    ) -> None:
        self._options = options
        self._worker_id = worker_id
        self._must_give_up = must_give_up
        #: Whether any job has been settled.
        self.has_settled = False
        self.catalogue = Catalogue(options.scope)
        self.holdings = Holdings()
        self.keeper = self._make_keeper(must_give_up)
        self.waker = make_waker(
            options.scope, self.keeper, poll_seconds=options.poll, listen=options.listen
        )
        self._buffer = Buffer(options.concurrency)
        self._notebook = Notebook(options.scope)
        self.executor = make_executor(
            options.executor,
            options.concurrency,
            run=lambda job: self.bodies.run(job),
            run_async=lambda job: self.bodies.run_async(job),
            on_low=self._on_low,
            child=(run_bodies, (options, worker_id)),
            max_jobs=options.max_jobs,
            max_rss=options.max_rss,
        )
        self.settler = self._make_settler()
        beating = self._make_keeper(must_give_up)
        self.pulse = Pulse(
            lambda: self.loop.turned_at,
            [self.keeper, beating],
            is_leaving=is_leaving,
            has_slots=lambda: self.executor.concurrency > 0,
            limit=options.max_turn_age,
        )
        self.heartbeat = self._make_heartbeat(beating, is_leaving)
        self.timekeeper = Timekeeper(self.holdings, lambda attempt: self.bodies.time_out(attempt))
        self.chores = self._make_chores(is_stopping, on_refused)
        self.loop = self._make_loop()
        self.bodies = self._make_bodies()

    @property
    def to_start(self) -> list[Startable]:
        """What has threads, or processes, of its own."""
        return [self.executor, self.settler, self.heartbeat, self.timekeeper, self.chores]

    # --- making them ------------------------------------------------------------------------------

    def _make_keeper(
        self, must_give_up: Callable[[], bool], *, patience: float | None = None
    ) -> Keeper:
        options = self._options
        return Keeper(options.scope, must_give_up, silence=options.silence, patience=patience)

    def _make_settler(self) -> Settler:
        scope = self._options.scope
        writers = 1 if link.has_one_writer(scope) else SETTLERS
        return Settler(
            scope,
            [self._make_keeper(self._must_give_up) for _ in range(writers)],
            self._notebook,
            worker_id=self._worker_id,
            policy_of=self.catalogue.policy_of,
            expects_more=lambda: self.executor.waiting > 0,
            on_settled=self._on_settled,
            on_ready=self._on_ready,
            makes_room=lambda jobs: self.loop.makes_room(jobs),
            notifies=self._options.listen,
            auto_retry=self._options.auto_retry,
        )

    def _make_heartbeat(self, keeper: Keeper, is_leaving: Callable[[], bool]) -> Heartbeat:
        return Heartbeat(
            self._options.scope,
            keeper,
            self.holdings,
            worker_id=self._worker_id,
            lease_ms=self._options.lease_ms,
            seconds=self._options.heartbeat,
            state=lambda: "draining" if is_leaving() else "running",
            turn_age=lambda: self.pulse.turn_age,
        )

    def _make_chores(
        self, is_stopping: Callable[[], bool], on_refused: Callable[[], None]
    ) -> ChoreLoop:
        # With but one writer whoever waits, waits for everything: no chore could go on before it.
        patience = None if link.has_one_writer(self._options.scope) else CHORE_PATIENCE
        return build_chores(
            self._options,
            self._make_keeper(is_stopping, patience=patience),
            self.catalogue,
            holder=self._worker_id,
            on_ready=lambda _count: self.loop.woken(),
            on_reaped=self.settler.tell,
            on_refused=on_refused,
        )

    def _make_loop(self) -> ClaimLoop:
        return ClaimLoop(
            self._options,
            worker_id=self._worker_id,
            keeper=self.keeper,
            waker=self.waker,
            executor=self.executor,
            buffer=self._buffer,
            holdings=self.holdings,
            unsettled=lambda: self.settler.pending,
            on_empty=self.chores.nudge,
        )

    def _make_bodies(self) -> Bodies:
        scope = self._options.scope
        return Bodies(
            self._options,
            worker_id=self._worker_id,
            keeper=Keeper(scope, self._must_give_up, is_own=False),
            catalogue=self.catalogue,
            holdings=self.holdings,
            buffer=self._buffer,
            notebook=self._notebook,
            settler=self.settler,
            executor=self.executor,
            may_begin=self.loop.may_begin,
            refuse=self.loop.refuse,
            on_settled=self._on_settled,
            run_elsewhere=getattr(self.executor, "run_body", None),
        )

    # --- what they tell each other ----------------------------------------------------------------

    def _on_low(self) -> None:
        if self.loop.awaits_room:
            self.waker.wake()

    def _on_settled(self, jobs: Sequence[ClaimedJob]) -> None:
        self.has_settled = True
        self.holdings.drop(list(jobs))
        if self.loop.awaits_settler:
            self.waker.wake()

    def _on_ready(self) -> None:
        """Jobs have become ready or due: run them, or learn when that will be."""
        self.chores.nudge()
        self.loop.woken()
