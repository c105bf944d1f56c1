"""The worker of a developer: it starts anew when code changes.

Two processes, as Django's own server has: one that starts the other as often as needed, and one
that works and watches the files. Django's first half is not used: it kills the second when it is
told to stop, and running jobs would stay where they are until their leases end.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from django.utils import autoreload

from flexiq_django.exceptions import FlexiQError
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.process import LAST_WRITES, WorkerProcess
from flexiq_django.worker.shutdown import handled_signals
from flexiq_django.worker.verdict import Judge

logger = logging.getLogger(__name__)

#: The exit code by which Django's reloader asks to be started again.
CHANGED = 3
#: Seconds running jobs get to finish when code has changed.
RELOAD_PATIENCE = 1.0
#: The environment variable that tells the process that works who has started it.
STARTER = "FLEXIQ_STARTER"
#: Seconds between two looks whether that one is still there.
STARTER_SECONDS = 1.0

Answering = Callable[[Judge], AbstractContextManager[None]]


def run_reloading(options: WorkerOptions, answering: Answering) -> int:
    """Work until told to stop, with new code whenever there is some; the exit code.

    ``answering`` answers probes of the worker meanwhile. Raises ``FlexiQError`` if the worker
    cannot work.
    """
    if os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) == "true":
        return _Watched(options).run(answering)
    return _Starter().run()


class _Starter:
    """Starts the process that works; waits for a change where new code does not even start."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._stops = 0
        self._passed_on = 0

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._on_signal())
        environment = {
            **os.environ,
            autoreload.DJANGO_AUTORELOAD_ENV: "true",
            STARTER: str(os.getpid()),
        }
        starts = 0
        while not self._is_told():
            before, starts = _files(), starts + 1
            # A group of its own: Ctrl-C in a terminal then reaches this process alone, which passes
            # it on once, as it does with a signal that it is sent by itself. From such a group
            # nobody reads the terminal: who tried would be stopped where it stands.
            self._child = subprocess.Popen(  # noqa: S603 - our own command line
                autoreload.get_child_arguments(),
                env=environment,
                process_group=0,
                stdin=subprocess.DEVNULL,
            )
            self._pass_on()  # what came just before it was there to be told
            code = self._child.wait()
            self._child = None
            if code == CHANGED:
                continue
            if self._is_told():
                # One that dies of the signal had not begun to work yet: it cut nothing off.
                return 0 if code == -signal.SIGTERM else abs(code)
            if starts == 1 or code != 1:
                return abs(code)
            logger.warning("the worker does not start any more; waiting for a change of the code")
            self._await_change(before)
        return 0

    def _is_told(self) -> bool:
        return self._stops > 0

    def _on_signal(self) -> None:
        self._stops += 1
        self._pass_on()

    def _pass_on(self) -> None:
        while self._child is not None and self._passed_on < self._stops:
            self._passed_on += 1
            self._child.terminate()

    def _await_change(self, before: dict[object, float]) -> None:
        nothing = threading.Event()
        while not self._is_told() and _files() == before:
            nothing.wait(0.3)


def _follow_starter() -> None:
    """Drain when the process that started this one is gone, as with its terminal."""
    starter, nothing = int(os.environ.get(STARTER, os.getppid())), threading.Event()
    while os.getppid() == starter:
        nothing.wait(STARTER_SECONDS)
    logger.warning("the process that watched over this worker is gone; draining")
    os.kill(os.getpid(), signal.SIGTERM)


def _files() -> dict[object, float]:
    return dict(autoreload.StatReloader().snapshot_files())


class _Watched:
    """Works in a thread, while Django's reloader watches the files in the main one."""

    def __init__(self, options: WorkerOptions) -> None:
        self._worker = WorkerProcess(options)
        self._reloader = autoreload.get_reloader()
        self._has_ended = threading.Event()
        self._code = 1
        self._error: FlexiQError | None = None

    def run(self, answering: Answering) -> int:
        threading.Thread(target=_follow_starter, daemon=True).start()
        with handled_signals(self._worker.request_stop), answering(self._worker.pulse):
            try:
                autoreload.start_django(self._reloader, self._work)
            except SystemExit as leaving:  # how the reloader says that a file has changed
                self._leave()
                return int(leaving.code or 0)
            self._has_ended.wait()
        if self._error is not None:
            raise self._error
        return self._code

    def _work(self) -> None:
        try:
            self._code = self._worker.run()
            if self._worker.is_tainted:
                self._code = CHANGED
        except FlexiQError as error:
            self._error = error
        finally:
            self._has_ended.set()
            self._reloader.stop()

    def _leave(self) -> None:
        """Drain in a hurry: the developer waits. What does not end goes back."""
        self._worker.request_stop()
        if not self._has_ended.wait(RELOAD_PATIENCE):
            self._worker.request_stop()
            self._has_ended.wait(3 * LAST_WRITES)
