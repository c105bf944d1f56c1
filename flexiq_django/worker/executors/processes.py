"""Child processes: for work that computes, or that may crash or hang in foreign code.

Each slot is a thread that feeds one child. What a child says about its job (progress, log lines,
the outcome) comes through a pipe; the worker writes it down. A body whose time is up is killed with
its child and whatever that has started; so is every child when its worker dies.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from flexiq_django.api.context import Attempt
from flexiq_django.core.outcome import Ending, Outcome
from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about
from flexiq_django.worker.executors.base import Line, NotBegunError

logger = logging.getLogger(__name__)

#: Seconds between two looks at what the worker has to tell a child.
TICK_SECONDS = 0.25
#: Seconds a child that is retired, or that does not start, gets to leave by itself.
LEAVE_SECONDS = 5.0
#: Longest pause between two tries to start a child, in seconds.
LONGEST_PAUSE = 30.0

#: What a child does: serve jobs that come through the pipe.
Target = Callable[..., None]


class ProcessExecutor(Line):
    """``concurrency`` threads with a child process each.

    ``run`` is called in one of the threads with each job, and there calls ``run_body``. A child is
    started by calling ``target`` with its end of a pipe and ``arguments``. After ``max_jobs`` jobs,
    or with more than ``max_rss`` bytes of memory, it is replaced by a new one.
    """

    def __init__(
        self,
        concurrency: int,
        run: Callable[[ClaimedJob], None],
        on_low: Callable[[], None],
        *,
        target: Target,
        arguments: tuple[Any, ...] = (),
        max_jobs: int | None = None,
        max_rss: int | None = None,
    ) -> None:
        super().__init__(on_low)
        self._slots = concurrency
        self._run_job = run
        self._target, self._arguments = target, arguments
        self._max_jobs = max_jobs
        self._max_rss = max_rss
        self._children: dict[int, Child] = {}
        self._own = threading.local()
        self._closing = threading.Event()

    @property
    def concurrency(self) -> int:
        """Children that are ready, or at work."""
        return len(self._children)

    def start(self) -> None:
        """See ``Executor``. Returns before the children are ready."""
        for slot in range(self._slots):
            threading.Thread(
                target=self._serve, args=(slot,), name=f"flexiq-job-{slot + 1}", daemon=True
            ).start()

    def replace_slot(self, job: ClaimedJob) -> None:
        """Nothing: the child of a body whose time is up is killed, and its slot gets a new one."""

    def stop(self) -> None:
        """See ``Executor``."""
        self._closing.set()
        super().stop()

    def close(self) -> None:
        """Kill every child."""
        for child in list(self._children.values()):
            child.kill()

    def run_body(self, attempt: Attempt) -> Outcome | None:
        """Run the body in the child of this slot; see ``Runner.run``."""
        child: Child = self._own.child
        return child.run(attempt)

    # --- the slots --------------------------------------------------------------------------------

    def _serve(self, slot: int) -> None:
        while self._prepare(slot):
            job = self.next()
            if job is None:
                break
            # An idle child may have been killed, by a machine short of memory, since it was made.
            if not self._children[slot].is_alive:
                self.put_back(job)  # another slot, or another worker, may be quicker than a new one
                continue
            try:
                self._run_job(job)
            except Exception:  # our own fault; the slot must not be lost with it
                logger.exception("running job %s failed outside its body", job.id, extra=about(job))
            self.ended(job)
        child = self._children.pop(slot, None)
        if child is not None:
            child.retire()

    def _prepare(self, slot: int) -> bool:
        """See to it that the slot has a child that is fit to run a job; False when we leave."""
        child = self._children.get(slot)
        if child is not None and not self._is_used_up(child):
            return True
        if child is not None:
            del self._children[slot]
            child.retire()
        pause = 0.5
        while not self._closing.is_set():
            child = self._start_child()
            if child is not None and child.is_ready(self._closing):
                self._own.child = self._children[slot] = child
                self._on_low()
                return True
            if child is not None:
                child.kill()
            if not self._closing.is_set():
                logger.error("a process for jobs does not start; next try in %.1f s", pause)
            self._closing.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        return False

    def _start_child(self) -> Child | None:
        try:
            return Child(self._target, self._arguments)
        except OSError as error:  # no memory, no file handle, no process to be had just now
            logger.warning("a process cannot be started: %s", error)
            return None

    def _is_used_up(self, child: Child) -> bool:
        if not child.is_alive:
            return True
        if self._max_jobs is not None and child.jobs >= self._max_jobs:
            return True
        if self._max_rss is not None and child.rss > self._max_rss:
            logger.info("process %s is recycled: it has %s MiB", child.pid, child.rss >> 20)
            return True
        return False


class Child:
    """One child process, as the thread of its slot sees it."""

    def __init__(self, target: Target, arguments: tuple[Any, ...]) -> None:
        # Spawned, never forked: a copy of our threads' locks and sockets would be of no use to it.
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=target, args=(theirs, *arguments), name="flexiq-job")
        self._process.start()
        theirs.close()
        self._is_doomed = self._has_begun = False
        self.jobs = 0
        self.rss = 0

    @property
    def pid(self) -> int | None:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can run another job: it has not ended, and has not been killed."""
        return not self._is_doomed and self._process.is_alive()

    def is_ready(self, gives_up: threading.Event) -> bool:
        """Wait until it says so. False if it ends instead, or ``gives_up`` is set."""
        try:
            while not self._pipe.poll(TICK_SECONDS):
                if gives_up.is_set() or not self.is_alive:
                    return False
            return bool(self._pipe.recv()[0] == "ready")
        except (EOFError, OSError):
            return False

    def run(self, attempt: Attempt) -> Outcome | None:
        """Run a body in it. If it ends before the body does, that is how the attempt ended.

        Raises ``NotBegunError`` if it ends before the body has begun: a process that is killed
        while it is idle seems alive for a moment.
        """
        self.jobs += 1
        self._has_begun = False
        attempt.began = time.monotonic()
        try:
            with attempt.stoppable(self.kill):
                if attempt.is_over:  # its time was up before it could be stopped
                    return None
                self._pipe.send(("run", attempt.job))
                return self._follow(attempt)
        except (EOFError, OSError):
            self._is_doomed = True
            if not self._has_begun:
                raise NotBegunError("its process ended before its body began") from None
            return Outcome(
                job=attempt.job,
                ending=Ending.FAILED,
                error=self._epitaph(),
                duration_ms=(time.monotonic() - attempt.began) * 1000,
            )

    def _follow(self, attempt: Attempt) -> Outcome | None:
        told: set[str] = set()
        while True:
            self._pass_on(attempt, told)
            if not self._pipe.poll(TICK_SECONDS):
                # What somebody forked in there may keep the pipe open: look for the child itself.
                if not self._process.is_alive() and not self._pipe.poll():
                    raise EOFError
                continue
            kind, value = self._pipe.recv()
            if kind == "begins":
                self._has_begun = True
            elif kind == "progress":
                attempt.journal.progress(attempt.job, value)
            elif kind == "log":
                attempt.journal.log(attempt.job, *value)
            elif kind == "watched":
                attempt.is_watched = True
            elif kind == "settling":
                attempt.is_settling = True
            else:
                outcome, attempt.is_settled, self.rss = value
                return None if outcome is None else outcome._replace(job=attempt.job)

    def _pass_on(self, attempt: Attempt, told: set[str]) -> None:
        """Tell the child what has become known about the attempt since."""
        for word, is_so in (("over", attempt.is_over), ("cancel", attempt.is_cancel_requested)):
            if is_so and word not in told:
                told.add(word)
                self._pipe.send((word, None))

    def _epitaph(self) -> str:
        self._process.join(LEAVE_SECONDS)
        code = self._process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"the process of the job ended before its body did ({how})"

    def retire(self) -> None:
        """Let it leave."""
        with contextlib.suppress(OSError):
            self._pipe.send(("leave", None))
        self._process.join(LEAVE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End it now, and what it has started. It leads a process group of its own."""
        self._is_doomed = True
        pid = self._process.pid
        if pid is None or not self._process.is_alive():
            return
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                if os.getpgid(pid) == pid:  # else it is still on its way there
                    os.killpg(pid, signal.SIGKILL)
        self._process.kill()
