"""Real worker processes: `manage.py flexiq_worker` against the database of the running test.

A test that uses these needs committed data and the mark `flows`. Its processes never outlive it:
take them from the `start_worker` fixture, or use WorkerProcess as a context manager.
"""

import atexit
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from django.db import connection

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
TAIL_LINES = 60


class WorkerProcess:
    """One worker, with all the children it starts, in a session of its own.

    `arguments` follow the command's name on its command line; `settings` is the worker's FLEXIQ
    dict; `environment` is added to ours; `program` is what Python runs instead of the command;
    `prefix` is a program that runs the rest of its command line in its own place. All it prints
    goes to `log_path`.
    """

    def __init__(
        self,
        *arguments: str,
        log_path: Path,
        command: str = "flexiq_worker",
        program: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self.log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, *(program or ("-m", "django", command)), *arguments],
                cwd=ROOT,
                env=_environment(settings or {}, environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _alive.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The process id, which is also the id of the session."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number if a signal ended it."""
        return self._process.poll()

    @property
    def log(self) -> str:
        """All that it and its children printed so far."""
        return self.log_path.read_text(errors="replace")

    def children(self) -> list[int]:
        """The ids of its living child processes (under `--processes N`, the workers)."""
        return [row.pid for row in _living() if row.parent == self.pid and not row.is_tracker]

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process alone, as an init system or a person would. No-op once it ended."""
        self._process.send_signal(number)

    def send_signal_to_group(self, number: signal.Signals) -> None:
        """Signal the process and those children that are in its group, as a terminal does."""
        os.killpg(self.pid, number)

    def limit_handles(self, most: int | None) -> None:
        """Let the process open nothing beyond so many handles; ``None``: as many as it may."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (hard if most is None else most, hard))

    def send_signal_to_all(self, number: signal.Signals) -> None:
        """Signal the process and all its children, which have process groups of their own."""
        for row in _living():
            if row.session == self.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(row.pid, number)

    def freeze(self) -> None:
        """Stop the process and its children where they stand."""
        self.send_signal_to_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self.send_signal_to_all(signal.SIGCONT)

    def terminate(self, deadline: float = 30.0) -> int:
        """Ask it to stop, and return its exit code."""
        self.send_signal(signal.SIGTERM)
        return self.wait(deadline)

    def wait(self, deadline: float = 30.0) -> int:
        """Its exit code; after `deadline` seconds an AssertionError with the end of its log."""
        try:
            return self._process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the worker still runs after {deadline:g} s; its log ends:\n{self.log_tail()}"
            ) from None

    def wait_for_log(self, pattern: str, deadline: float = 30.0) -> re.Match[str]:
        """The first match of the regular expression in its log, which may end the wait by ending.

        AssertionError at the deadline, or at once when it ended without printing it.
        """

        def found_or_ended() -> tuple[re.Match[str] | None] | None:
            ended = self.exit_code is not None
            match = re.search(pattern, self.log)
            return (match,) if match or ended else None

        (match,) = wait_until(found_or_ended, deadline, f"{pattern!r} in {self.log_path}")
        if match is None:
            raise AssertionError(
                f"the worker ended with {self.exit_code} before {pattern!r}; its log ends:\n"
                f"{self.log_tail()}"
            )
        return match

    def kill(self) -> None:
        """SIGKILL to it and to all its children; returns when the process is gone. Idempotent."""
        if self not in _alive:
            return
        self._process.kill()  # first, so that it replaces none of its children
        self._process.wait()
        self.send_signal_to_all(signal.SIGKILL)
        _alive.discard(self)

    def log_tail(self) -> str:
        """The last lines of its log, for a failing test's report."""
        return "\n".join(self.log.splitlines()[-TAIL_LINES:])


def is_alive(pid: int) -> bool:
    """Whether a process with this id is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class _Row(NamedTuple):
    pid: int
    parent: int
    session: int
    is_tracker: bool


def _living() -> list[_Row]:
    """Every process of the machine that has not ended."""
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,sess=,stat=,args="],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = (line.split(maxsplit=4) for line in listing.splitlines())
    return [
        _Row(int(pid), int(parent), int(session), "resource_tracker" in "".join(command))
        for pid, parent, session, state, *command in rows
        if not state.startswith("Z")
    ]


def _environment(settings: Mapping[str, Any], extra: Mapping[str, str]) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "FLEXIQ_TEST_DATABASE_NAME": str(connection.settings_dict["NAME"]),
        "FLEXIQ_TEST_SETTINGS": json.dumps(settings),
        "FLEXIQ_TEST_WITHOUT_ADMIN": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        **extra,
    }


_alive: set[WorkerProcess] = set()


@atexit.register
def _kill_all() -> None:
    """The net under the fixtures: an interrupted test run leaves no worker behind."""
    for process in tuple(_alive):
        process.kill()
