"""A real worker beside the demo: `manage.py flexiq_worker` in a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from django.conf import settings

#: Seconds a worker gets to finish what it is doing before it is killed.
PATIENCE = 40.0


class Worker:
    """The worker runs inside the `with` block, and on no account after it."""

    def __init__(self, log_path: Path, *, processes: int) -> None:
        self.log_path = log_path
        self._processes = processes
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, str(settings.BASE_DIR / "manage.py"), *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal goes to the demo alone, which then stops the worker once.
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def arguments(self) -> list[str]:
        """What follows manage.py on its command line."""
        several = ["--processes", str(self._processes)] if self._processes > 1 else []
        return ["flexiq_worker", *several]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._started.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._started.poll()

    def stop(self) -> int:
        """Let it finish what it is doing and leave; its exit code. Kills it if it stays."""
        process = self._started
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return self._kill()
        except BaseException:  # a second Ctrl-C: no more patience
            self._kill()
            raise

    def log_tail(self, lines: int = 30) -> str:
        """The end of what it printed."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the worker is used inside a with block")
        return self._process

    def _kill(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self._started.wait()
