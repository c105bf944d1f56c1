"""Free slots -> claim -> submit -> wait or be woken."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

from flexiq_django import signals
from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about
from flexiq_django.store import claim, gates, lease, link
from flexiq_django.worker.buffer import MOST, Buffer
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.executors.base import Executor
from flexiq_django.worker.heartbeat import Holdings
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.waking import Waker

logger = logging.getLogger(__name__)

#: First pause after work was found, in seconds, a little longer than a producer may hold a
#: notification back; each empty look makes it longer.
SHORTEST_PAUSE = 0.015
#: Seconds after which the lanes are looked up anew even though claims still find work.
LANES_SECONDS = 1.0
#: Unstarted jobs held longer than this, in seconds, go back to where others can take them.
LONGEST_HELD = 0.5
#: Seconds a worker in burst mode waits at most for a rate limit to let the next job start.
LONGEST_BURST_WAIT = 60.0
#: Most looks at the heads of the lanes for jobs of limited tasks, in a row.
RELANE_ROUNDS = 20
#: Attempts that may wait to be settled before the worker stops claiming.
MOST_UNSETTLED = 1000


class ClaimLoop:
    """Keeps the executor supplied. Runs in the main thread."""

    def __init__(
        self,
        options: WorkerOptions,
        *,
        worker_id: str,
        keeper: Keeper,
        waker: Waker,
        executor: Executor,
        buffer: Buffer,
        holdings: Holdings,
        unsettled: Callable[[], int],
        on_empty: Callable[[], None],
    ) -> None:
        self._options = options
        self._scope = options.scope
        self._worker_id = worker_id
        self._keeper = keeper
        self._waker = waker
        self._executor = executor
        self._buffer = buffer
        self._holdings = holdings
        self._unsettled = unsettled
        self._on_empty = on_empty
        self._lanes: list[str] = []
        self._gates = gates.NO_GATES
        self._opens_in: float | None = None
        self._lanes_at = float("-inf")
        self._submitted_at = 0.0
        self._pause = SHORTEST_PAUSE
        self._is_woken = True
        self._refused: deque[ClaimedJob] = deque()
        self._outages = 0
        #: When the last claim began, in monotonic seconds.
        self._asked_at = time.monotonic()
        self.claimed = 0
        #: Whether the loop has stopped claiming until more attempts are settled.
        self.awaits_settler = False
        #: Whether the loop waits for the executor to have room for more.
        self.awaits_room = False
        #: When the loop last came round, in monotonic seconds: what a health check judges.
        self.turned_at = time.monotonic()

    def turn(self) -> bool:
        """Claim what there is room for, then wait. False when nothing at all was found to do."""
        self.turned_at = time.monotonic()
        self._give_back_stale()
        # Raised before the look: room that appears right after it must not go unnoticed.
        self.awaits_room = True
        room = self._room()
        if room == 0:
            self._waker.wait(1.0)
            return True
        # Jobs behind a limit are fetched for free slots only, so then each of these is news.
        self.awaits_room = self._gates.has_limits
        was_woken = self._is_woken
        jobs = self._claim(room)
        self._is_woken = False
        if jobs:
            self._pause = SHORTEST_PAUSE
            if len(jobs) == room:
                return True
        else:
            if was_woken:
                self._on_empty()
            if self._options.burst and not self._opens_soon:
                return False
        self._is_woken = self._waker.wait(self._rest())
        self._pause = min(self._pause * self._waker.growth, self._waker.longest_pause)
        return True

    def woken(self) -> None:
        """Work has come: look again soon, and often for a while."""
        self._pause = SHORTEST_PAUSE
        self._waker.wake()

    def _rest(self) -> float:
        if self._opens_in is None:
            return self._pause
        return min(self._pause, max(0.001, self._opens_in))

    @property
    def _opens_soon(self) -> bool:
        """Whether jobs are ready that a rate holds back for less than a minute."""
        return self._opens_in is not None and self._opens_in < LONGEST_BURST_WAIT

    def makes_room(self, jobs: Sequence[ClaimedJob]) -> bool:
        """Whether the end of any of these jobs lets others start that a limit holds back."""
        known = self._gates
        return bool(known.shared) and any(
            known.makes_room(job.queue, job.task_name) for job in jobs
        )

    def give_back(self, jobs: Sequence[ClaimedJob]) -> None:
        """Return jobs whose body has not begun to where any worker can claim them.

        Others are told of ``jobs``, as these wait for a slot; not of those that were refused here.
        """
        held = [*jobs, *(self._refused.popleft() for _ in range(len(self._refused)))]
        if held:
            self._release(held, told=jobs)
            self._holdings.drop(held)
            self.claimed -= len(held)

    def _release(
        self, held: Sequence[ClaimedJob], told: Sequence[ClaimedJob] | None = None
    ) -> None:
        """Make jobs ready again, and tell other workers of ``told``, or of all."""
        released = self._keeper.call(lambda: lease.release(self._scope, held))
        if self._options.listen and any(
            job.id in released for job in (held if told is None else told)
        ):
            self._keeper.call(lambda: link.notify(self._scope))

    def _room(self) -> int:
        """How many jobs to claim now; 0 while enough are at hand or the settler lags behind."""
        executor = self._executor
        self.awaits_settler = self._unsettled() > MOST_UNSETTLED
        if self.awaits_settler:
            return 0
        wanted = executor.concurrency + self._buffer.size
        at_hand = executor.running + executor.waiting
        room = min(wanted - at_hand, MOST)
        # Fetch in few large batches: refill when half is used up, or when a slot would go idle.
        executor.low_water = max(0, int(wanted / 2) - executor.concurrency)
        if at_hand >= executor.concurrency and room < wanted / 2:
            return 0
        limit = self._options.most_claims
        return max(0, room if limit is None else min(room, limit - self.claimed))

    def _claim(self, limit: int) -> list[ClaimedJob]:
        """Take from the lanes known last; look for lanes when that gave nothing, or is old news."""
        if self._keeper.outages != self._outages:
            self._give_back_unknown()
        self._asked_at = asked = time.monotonic()
        self._opens_in, known = None, self._gates
        is_fresh = asked - self._lanes_at < LANES_SECONDS
        tried = self._lanes if is_fresh or self._is_woken else []
        jobs = self._take(tried, limit) if tried else []
        if not jobs:
            found = self._discover()
            # Lanes that were just found empty need no second look: others were faster.
            if found and (found != tried or self._gates != known):
                jobs = self._take(found, limit)
        if jobs:
            self.claimed += len(jobs)
            self._holdings.add(jobs, asked + self._options.lease_ms / 1000)
            self._submitted_at = time.monotonic()
            self._executor.submit(jobs)
        return jobs

    def _discover(self) -> list[str]:
        found = self._keeper.call(
            lambda: claim.discover_lanes(
                self._scope,
                queues=self._options.queues,
                deployment_id=self._options.deployment_id,
            )
        )
        self._lanes_at = time.monotonic()
        if found:  # else remember where work was last: it will come back there
            self._lanes = found
            self._read_gates()
        return found

    def _read_gates(self) -> None:
        """Learn which queues and tasks are paused or limited now, and act on it."""
        self._gates = known = self._keeper.call(lambda: gates.read_gates(self._scope))
        for _ in range(RELANE_ROUNDS if known.tasks else 0):
            if not self._keeper.call(lambda: gates.relane(self._scope, self._lanes, known)):
                break
        if known.paused and any(job.queue in known.paused for job in self._executor.waiting_jobs()):
            self.give_back(self._executor.take_back())

    def _take(self, lanes: list[str], limit: int) -> list[ClaimedJob]:
        executor = self._executor
        jobs, self._opens_in = self._keeper.call(
            lambda: claim.claim(
                self._scope,
                lanes=lanes,
                limit=limit,
                worker_id=self._worker_id,
                lease_ms=self._options.lease_ms,
                gates=self._gates,
                # What a limit lets through should start now, here or in another worker.
                limited=executor.concurrency - executor.running - executor.waiting,
            )
        )
        return jobs

    def may_begin(self, job: ClaimedJob) -> bool:
        """Whether the body of a job may begin; else it goes back. Any thread may ask.

        A process that was frozen, or starved, may hold jobs that others run by now.
        """
        if self._holdings.is_surely_ours(job):
            return True
        logger.warning(
            "job %s (%s) is given back: its lease may have run out",
            job.id,
            job.task_name,
            extra=about(job),
        )
        self.refuse(job)
        return False

    def refuse(self, job: ClaimedJob) -> None:
        """The body of a job does not begin here: give it back soon. Any thread may say so."""
        self._refused.append(job)
        self._waker.wake()

    def _give_back_unknown(self) -> None:
        """The answer to a claim was lost with the connection, but the claim may have been made."""
        outages = self._keeper.outages
        known = set(self._holdings.fences())
        # Only what was claimed since: what is older, such as a job that could not be settled, has
        # run, and is seen to by its lease.
        ago_ms = round((time.monotonic() - self._asked_at) * 1000) + 1
        jobs = self._keeper.call(
            lambda: lease.unknown(self._scope, self._worker_id, known, within_ms=ago_ms)
        )
        if jobs:
            logger.warning("%s jobs are given back: the answer to their claim was lost", len(jobs))
            self._release(jobs)
        self._outages = outages

    def _give_back_stale(self) -> None:
        """Long bodies have taken every slot: jobs held in advance must not wait behind them."""
        if self._refused:
            self.give_back([])
        if self._executor.waiting and time.monotonic() - self._submitted_at > LONGEST_HELD:
            self._buffer.forget()  # or the next claim would fetch them all again
            self.give_back(self._executor.take_back())


def announce_started(job: ClaimedJob, worker_id: str) -> None:
    """Send ``job_started``."""
    if signals.job_started.receivers:
        signals.send(signals.job_started, job=job, worker_id=worker_id)
