"""Several worker processes under one parent that replaces those that die.

Children are spawned, never forked: they share no socket, no lock and no thread with the parent,
which keeps no database connection open.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import NoReturn

from flexiq_django.exceptions import FlexiQError
from flexiq_django.worker.board import Board, Places, report
from flexiq_django.worker.options import WorkerOptions

logger = logging.getLogger(__name__)

#: A child that lived shorter than this, in seconds, is replaced with a growing pause.
_HEALTHY_AFTER = 10.0
_LONGEST_PAUSE = 30.0
#: Longest wait in one go, in seconds: the system takes no such times as a project may set.
_LONGEST_WAIT = 3_600.0
#: Seconds a child gets beyond its own stop timeout before it is killed.
_BEYOND = 20.0
#: Exit code of a child that has run its share: not the end of the work, as 0 is in burst mode.
RECYCLED = 76
#: Exit code of a child that has to be replaced, as bodies in it do not end (EX_TEMPFAIL).
TAINTED = 75
#: Exit code of a child that cannot work until somebody changes something (EX_CONFIG).
MISCONFIGURED = 78


class Supervisor:
    """Runs ``processes`` children with the same options until told to stop."""

    def __init__(self, options: WorkerOptions, processes: int) -> None:
        self._options = options
        self._processes = processes
        self._stops = 0
        self._children: dict[int, SpawnProcess] = {}
        self._born: dict[int, float] = {}
        self._due: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._worst = 0
        self._told = 0
        self._patience_ends = math.inf
        self._reader, self._writer = multiprocessing.Pipe(duplex=False)
        self.board = Board(
            processes,
            at_work=lambda: list(self._children),
            is_stopping=lambda: self._stops > 0,
            limit=options.max_turn_age,
        )

    def run(self) -> int:
        """Supervise; the worst exit code of the children that were told to leave."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._on_signal())
        self._due = dict.fromkeys(range(self._processes), time.monotonic())
        for _ in range(2):
            try:
                self._supervise()
                break
            except Exception:
                # The parent stays until they have drained: as the first process of a container, or
                # of a unit, it takes them with it when it goes.
                logger.exception("supervising failed; the worker processes are stopped")
                self._worst = 1
                self._stops = max(1, self._stops)
        return self._worst

    def _supervise(self) -> None:
        while self._children or (self._due and not self._stops):
            while self._told < self._stops:
                self._told += 1
                self._due.clear()
                self._signal_children()
            if time.monotonic() > self._patience_ends:
                self._kill_all()
            self._start_due()
            self._wait()
            self._collect()

    def _on_signal(self) -> None:
        self._stops += 1
        # Only a write: a signal handler must not take locks.
        os.write(self._writer.fileno(), b"\0")

    def _signal_children(self) -> None:
        logger.info("stopping %s worker processes", len(self._children))
        if self._patience_ends == math.inf:
            self._patience_ends = time.monotonic() + self._options.stop_timeout + _BEYOND
        for child in self._children.values():
            child.terminate()

    def _kill_all(self) -> None:
        self._patience_ends = math.inf
        for child in self._children.values():
            logger.error("worker process %s does not leave; killing it", child.pid)
            child.kill()

    def _start_due(self) -> None:
        now = time.monotonic()
        for slot in [slot for slot, due in self._due.items() if due <= now]:
            self.board.clear(slot)
            child = multiprocessing.get_context("spawn").Process(
                target=run_child,
                args=(self._options, self.board.places, slot),
                name=f"flexiq-worker-{slot}",
            )
            try:
                child.start()
            except OSError as error:  # no memory, no file handle, no process to be had just now
                pause = self._lengthen_pause(slot)
                told = "a worker process cannot be started: %s; next try in %.1f s"
                logger.warning(told, error, pause)
                self._due[slot] = now + pause
                continue
            del self._due[slot]
            self._children[slot] = child
            self._born[slot] = now

    def _wait(self) -> None:
        now = time.monotonic()
        rest = min([*self._due.values(), self._patience_ends, now + _LONGEST_WAIT]) - now
        sentinels = [child.sentinel for child in self._children.values()]
        ready = wait([*sentinels, self._reader], max(0.0, rest))
        if self._reader in ready:
            os.read(self._reader.fileno(), 4096)

    def _collect(self) -> None:
        for slot, child in list(self._children.items()):
            if child.exitcode is None:
                continue
            del self._children[slot]
            code = child.exitcode
            if code == MISCONFIGURED and not self._stops:
                self._worst = 1
                self._on_signal()
            elif self._stops:
                # One that dies of the signal had not begun to work yet: it cut nothing off.
                # Ctrl-C reaches those that have not left the terminal's process group yet.
                is_clean = code in (-signal.SIGTERM, -signal.SIGINT, RECYCLED)
                self._worst = max(self._worst, 0 if is_clean else abs(code))
            elif self._options.burst and code == 0:
                continue
            else:
                self._replace(slot, child.pid, code)

    def _replace(self, slot: int, pid: int | None, code: int) -> None:
        lived = time.monotonic() - self._born[slot]
        if code in (0, RECYCLED) or lived > _HEALTHY_AFTER:
            self._pauses[slot] = 0.0
        elif code < 0:  # killed from outside, which says nothing about the next one
            self._pauses[slot] = 0.5
        else:
            self._lengthen_pause(slot)
        pause = self._pauses[slot]
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        reason = "recycled" if code == RECYCLED else reason
        logger.warning("worker process %s ended (%s); replaced in %.1f s", pid, reason, pause)
        self._due[slot] = time.monotonic() + pause

    def _lengthen_pause(self, slot: int) -> float:
        self._pauses[slot] = min(_LONGEST_PAUSE, max(0.5, self._pauses.get(slot, 0.0) * 2))
        return self._pauses[slot]


def run_child(options: WorkerOptions, places: Places, slot: int) -> None:
    """What a spawned child does: set Django up, work, leave with the worker's exit code."""
    # A group of its own: Ctrl-C in a terminal then reaches the parent alone, which passes it on
    # once.
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    import django

    django.setup()
    from flexiq_django.logging import log_to_stderr
    from flexiq_django.worker.process import WorkerProcess

    log_to_stderr(options.verbosity, options.log_format)
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        worker = WorkerProcess(options)
        report(places, slot, worker.pulse)
        code = worker.run()
        if worker.is_tainted:
            code = TAINTED
        elif worker.is_recycled and code == 0:
            code = RECYCLED
    except FlexiQError as error:
        logger.error("%s", error)
        code = MISCONFIGURED
    leave(code)


def leave(code: int) -> None:
    """End the process at once: threads of bodies that do not end must not hold it."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def start_again() -> NoReturn:
    """Replace this process by a new one of the same command line."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        logger.warning("the supervisor is gone; draining")
        os.kill(os.getpid(), signal.SIGTERM)
