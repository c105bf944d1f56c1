"""What the worker asks of an executor, and the line of jobs that all executors have."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from flexiq_django.core.records import ClaimedJob

#: The digits of a job's id, which are much cheaper to look up than the id, and its token.
Key = tuple[int, int]


class NotBegunError(Exception):
    """A body has not begun, and will not: what was to run it is gone. The job can go back."""


class Executor(Protocol):
    """Runs claimed jobs, at most ``concurrency`` at a time."""

    #: How short the line may become before the executor asks for more.
    low_water: int

    @property
    def concurrency(self) -> int:
        """Slots there are: fewer than asked for while some are being made."""

    def start(self) -> None:
        """Be ready to run."""

    def submit(self, jobs: Sequence[ClaimedJob]) -> None:
        """Run the jobs in this order as slots become free."""

    def waiting_jobs(self) -> list[ClaimedJob]:
        """The jobs submitted whose body has not begun."""

    def take_back(self) -> list[ClaimedJob]:
        """Hand back the jobs whose body has not begun."""

    def replace_slot(self, job: ClaimedJob) -> None:
        """The body of ``job`` has had its time: its slot is for others now."""

    @property
    def waiting(self) -> int:
        """Jobs submitted whose body has not begun."""

    @property
    def running(self) -> int:
        """Slots in use."""

    @property
    def strays(self) -> int:
        """Bodies that still run though their slot was given away."""

    @property
    def oldest_stray(self) -> float:
        """For how many seconds the oldest of these has been one; 0 without any."""

    def stop(self) -> None:
        """Begin no more bodies. Those that still run are left to themselves."""

    def close(self) -> None:
        """End what still runs, where that can be done."""


class Line:
    """The jobs submitted, in order, and the bodies that run. Any thread may ask.

    ``on_low`` is called when the line has become as short as ``low_water`` and when a slot falls
    idle, so that the worker can fetch more in time.
    """

    def __init__(self, on_low: Callable[[], None]) -> None:
        self._on_low = on_low
        self.low_water = 0
        self._ready = threading.Condition(threading.Lock())
        self._jobs: deque[ClaimedJob] = deque()
        self._sleeping = 0
        self._stopped = False
        # By attempt: a job may run again here while the body of its last attempt still does not
        # end.
        self._running: set[Key] = set()
        self._strays: dict[Key, float] = {}

    def submit(self, jobs: Sequence[ClaimedJob]) -> None:
        """See ``Executor``."""
        with self._ready:
            self._jobs.extend(jobs)
            self._ready.notify(min(len(jobs), self._sleeping))

    def waiting_jobs(self) -> list[ClaimedJob]:
        """See ``Executor``."""
        with self._ready:
            return list(self._jobs)

    def take_back(self) -> list[ClaimedJob]:
        """See ``Executor``."""
        with self._ready:
            jobs = list(self._jobs)
            self._jobs.clear()
        return jobs

    def stop(self) -> None:
        """See ``Executor``."""
        with self._ready:
            self._stopped = True
            self._ready.notify_all()

    @property
    def waiting(self) -> int:
        """See ``Executor``."""
        return len(self._jobs)

    @property
    def running(self) -> int:
        """See ``Executor``."""
        return len(self._running)

    @property
    def strays(self) -> int:
        """See ``Executor``."""
        return len(self._strays)

    @property
    def oldest_stray(self) -> float:
        """See ``Executor``."""
        with self._ready:
            since = min(self._strays.values(), default=None)
        return 0.0 if since is None else time.monotonic() - since

    # --- for the slots ----------------------------------------------------------------------------

    def next(self, *, waits: bool = True) -> ClaimedJob | None:
        """The first job, whose body begins now. ``None`` after the stop, or with nothing there."""
        with self._ready:
            while waits and not self._jobs and not self._stopped:
                self._sleeping += 1
                self._ready.wait()
                self._sleeping -= 1
            if self._stopped or not self._jobs:
                return None
            job = self._jobs.popleft()
            self._running.add(_key(job))
            is_low = len(self._jobs) == self.low_water
        if is_low:
            self._on_low()
        return job

    def put_back(self, job: ClaimedJob) -> None:
        """A job whose body did not begin after all: it is the first in line again."""
        with self._ready:
            self._running.discard(_key(job))
            self._jobs.appendleft(job)
            self._ready.notify()

    def ended(self, job: ClaimedJob) -> bool:
        """A body has ended; whether its slot is still its own."""
        key = _key(job)
        with self._ready:
            if self._strays.pop(key, None) is not None:
                return False
            self._running.discard(key)
            is_idle = not self._jobs
        if is_idle:
            self._on_low()
        return True

    def disown(self, job: ClaimedJob) -> bool:
        """Take the slot of a body away; False when it has none."""
        key = _key(job)
        with self._ready:
            if key not in self._running:
                return False
            self._running.discard(key)
            self._strays[key] = time.monotonic()
        return True


def _key(job: ClaimedJob) -> Key:
    return job.id.int, job.token
