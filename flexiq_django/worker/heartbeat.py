"""Keep what the worker holds: renew leases, notice lost ones, pass on cancels."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from flexiq_django.api.context import Attempt
from flexiq_django.core.fleet import SKEW_MS
from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about
from flexiq_django.store import inspect, journal, lease, workers
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import GaveUp, Keeper

logger = logging.getLogger(__name__)

#: Seconds between two looks at requested cancels.
TICK_SECONDS = 0.25


class _Held(NamedTuple):
    """A job of ours, and the monotonic second until which it surely is."""

    job: ClaimedJob
    until: float


class Holdings:
    """The jobs this worker owns: claimed, and not yet settled or given back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[UUID, _Held] = {}
        # Of one job there may be several: it can be ours again while its last body does not end.
        self._attempts: dict[UUID, list[Attempt]] = {}

    def add(self, jobs: list[ClaimedJob], until: float = math.inf) -> None:
        """These jobs are ours now, and surely until then (monotonic seconds)."""
        with self._lock:
            self._held.update((job.id, _Held(job, until)) for job in jobs)

    def extend(self, ids: Iterable[UUID], until: float) -> None:
        """The leases of these jobs of ours last until then."""
        with self._lock:
            for key in ids:
                held = self._held.get(key)
                if held is not None:
                    self._held[key] = held._replace(until=until)

    def is_surely_ours(self, job: ClaimedJob) -> bool:
        """Whether the lease of a job cannot have run out, whatever held this process up."""
        held = self._held.get(job.id)
        return held is not None and held.job.token == job.token and time.monotonic() < held.until

    def begin(self, attempt: Attempt) -> None:
        """The body of a job of ours begins."""
        with self._lock:
            others = self._attempts.get(attempt.job.id, [])
            self._attempts[attempt.job.id] = [*others, attempt]
        for other in others:  # we had lost the job: what the older one does is over
            other.note_over()

    def end(self, attempt: Attempt) -> None:
        """The body has ended, though the job may not be settled yet."""
        self._forget(attempt.job)

    def drop(self, jobs: list[ClaimedJob]) -> None:
        """These jobs are settled, or given back."""
        with self._lock:
            for job in jobs:
                held = self._held.get(job.id)
                if held is not None and held.job.token == job.token:
                    del self._held[job.id]

    def let_go(self, job: ClaimedJob) -> None:
        """Renew the lease of this job no more, and forget its attempt."""
        self._forget(job)
        self.drop([job])

    def _forget(self, job: ClaimedJob) -> None:
        with self._lock:
            attempts = self._attempts.pop(job.id, [])
            others = [each for each in attempts if each.job.token != job.token]
            if others:
                self._attempts[job.id] = others

    def fences(self) -> list[tuple[UUID, int]]:
        """(id, token) of every job we own."""
        with self._lock:
            return [(key, held.job.token) for key, held in self._held.items()]

    def attempts(self) -> list[Attempt]:
        """The attempts whose body is running."""
        with self._lock:
            return [each for attempts in self._attempts.values() for each in attempts]

    def __len__(self) -> int:
        return len(self._held)


class Heartbeat:
    """The thread that keeps the holdings alive, also while the worker drains."""

    def __init__(
        self,
        scope: Scope,
        keeper: Keeper,
        holdings: Holdings,
        *,
        worker_id: str,
        lease_ms: int,
        seconds: float,
        state: Callable[[], str],
        turn_age: Callable[[], float],
    ) -> None:
        self._scope = scope
        self._keeper = keeper
        self._holdings = holdings
        self._worker_id = worker_id
        self._lease_ms = lease_ms
        self._seconds = seconds
        self._state, self._published = state, "running"
        self._turn_age = turn_age
        self._stop = threading.Event()
        self._skew_ms, self._is_skewed = 0, False
        self._thread = threading.Thread(target=self._run, name="flexiq-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End within ``timeout`` seconds."""
        self._stop.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        next_beat = 0.0
        while not self._stop.wait(TICK_SECONDS):
            try:
                self._pass_on_cancels()
                # Whether it drains is for all to see at once: a drain may be over by the next beat.
                if time.monotonic() >= next_beat or self._state() != self._published:
                    began = time.monotonic()
                    self._beat()
                    next_beat = began + self._seconds
            except GaveUp:
                break
            except Exception:
                logger.exception("heartbeat failed; next try in %s s", TICK_SECONDS)
        self._keeper.close()

    def _pass_on_cancels(self) -> None:
        watched = [each for each in self._holdings.attempts() if each.is_watched]
        if not watched:
            return
        held = [(each.job.id, each.job.token) for each in watched]
        seen = self._keeper.call(lambda: journal.look(self._scope, held))
        for attempt in watched:
            if attempt.job.id not in seen:
                if not attempt.is_settling:
                    attempt.note_over()
            elif seen[attempt.job.id]:
                attempt.note_cancel_requested()

    def _beat(self) -> None:
        held, asked = self._holdings.fences(), time.monotonic()
        if held:
            renewed = self._keeper.call(
                lambda: lease.renew(self._scope, held, lease_ms=self._lease_ms)
            )
            self._holdings.extend(renewed.extended, asked + self._lease_ms / 1000)
            self._note_lost({(key, token) for key, token in held if key not in renewed.owned})
        self._measure_skew()
        state = self._state()
        self._keeper.call(
            lambda: workers.beat(
                self._scope,
                self._worker_id,
                lease_ms=self._lease_ms,
                state=state,
                clock_skew_ms=self._skew_ms,
                turn_age_ms=round(self._turn_age() * 1000),
            )
        )
        self._published = state

    def _note_lost(self, lost: set[tuple[UUID, int]]) -> None:
        for attempt in self._holdings.attempts():
            fence = (attempt.job.id, attempt.job.token)  # a newer attempt may be ours meanwhile
            if fence in lost and not (attempt.is_over or attempt.is_settling):
                attempt.note_over()
                logger.warning(
                    "lost the lease of job %s (%s): what it writes from now on is dropped",
                    attempt.job.id,
                    attempt.job.task_name,
                    extra=about(attempt.job),
                )

    def _measure_skew(self) -> None:
        before = datetime.now(UTC)
        there = self._keeper.call(lambda: inspect.read_clock(self._scope))
        here = before + (datetime.now(UTC) - before) / 2
        self._skew_ms = round((here - there).total_seconds() * 1000)
        was_skewed, self._is_skewed = self._is_skewed, abs(self._skew_ms) > SKEW_MS
        if self._is_skewed and not was_skewed:
            logger.warning(
                "this machine's clock is %.1f s %s the database's; due times follow the database",
                abs(self._skew_ms) / 1000,
                "ahead of" if self._skew_ms > 0 else "behind",
            )
