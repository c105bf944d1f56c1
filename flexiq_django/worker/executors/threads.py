"""Threads: the default. Fits tasks that wait for the network or the database.

A thread cannot be killed. A body that does not end when its time is up keeps its thread; the slot
goes to a new one, and the worker knows that it has a stray.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from uuid import UUID

from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about

logger = logging.getLogger(__name__)

Key = tuple[UUID, int]


class ThreadExecutor:
    """``concurrency`` threads that take jobs from one line.

    ``run`` is called in a thread with each job; ``on_low`` when the line has become as short as
    ``low_water`` and when a slot falls idle, so that the worker can fetch more in time.
    """

    def __init__(
        self,
        concurrency: int,
        run: Callable[[ClaimedJob], None],
        on_low: Callable[[], None],
    ) -> None:
        self.concurrency = concurrency
        self._run_job = run
        self._on_low = on_low
        self.low_water = 0
        self._line: deque[ClaimedJob] = deque()
        self._ready = threading.Condition(threading.Lock())
        self._sleeping = 0
        self._stopped = False
        # By attempt: a job may run again here while the thread of its last attempt still does not
        # end.
        self._running: set[Key] = set()
        self._strays: set[Key] = set()
        self._started = 0

    def start(self) -> None:
        for _ in range(self.concurrency):
            self._start_thread()

    def _start_thread(self) -> None:
        self._started += 1
        threading.Thread(
            target=self._serve, name=f"flexiq-job-{self._started}", daemon=True
        ).start()

    def submit(self, jobs: Sequence[ClaimedJob]) -> None:
        with self._ready:
            self._line.extend(jobs)
            self._ready.notify(min(len(jobs), self._sleeping))

    def waiting_jobs(self) -> list[ClaimedJob]:
        with self._ready:
            return list(self._line)

    def take_back(self) -> list[ClaimedJob]:
        with self._ready:
            jobs = list(self._line)
            self._line.clear()
        return jobs

    def replace_slot(self, job: ClaimedJob) -> None:
        with self._ready:
            key = _key(job)
            if key not in self._running:
                return
            self._running.discard(key)
            self._strays.add(key)
        self._start_thread()

    @property
    def waiting(self) -> int:
        return len(self._line)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def strays(self) -> int:
        """Threads whose body did not end in time."""
        return len(self._strays)

    def stop(self) -> None:
        with self._ready:
            self._stopped = True
            self._ready.notify_all()

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._run_job(job)
            except Exception:  # our own fault; the slot must not be lost with it
                logger.exception("running job %s failed outside its body", job.id, extra=about(job))
            with self._ready:
                key = _key(job)
                if key in self._strays:  # its slot was given away long ago
                    self._strays.discard(key)
                    return
                self._running.discard(key)
                is_idle = not self._line
            if is_idle:
                self._on_low()

    def _next(self) -> ClaimedJob | None:
        with self._ready:
            while not self._line:
                if self._stopped:
                    return None
                self._sleeping += 1
                self._ready.wait()
                self._sleeping -= 1
            if self._stopped:
                return None
            job = self._line.popleft()
            self._running.add(_key(job))
            is_low = len(self._line) == self.low_water
        if is_low:
            self._on_low()
        return job


def _key(job: ClaimedJob) -> Key:
    return job.id, job.token
