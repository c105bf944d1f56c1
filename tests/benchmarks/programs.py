"""Start contenders as processes, and end them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.contenders.registry import Entry

ROOT = Path(__file__).resolve().parent.parent.parent
TAIL_LINES = 15


class ContenderFailedError(Exception):
    """A contender's process ended in an error, or never did what it was started for."""


@dataclass(frozen=True, kw_only=True)
class Interpreters:
    """Which Python runs our code, and which one the peers."""

    peers: str = sys.executable

    def of(self, entry: Entry) -> str:
        """The interpreter of a contender."""
        return self.peers if entry.is_peer else sys.executable

    def version_of(self, entry: Entry) -> str | None:
        """The version of the contender's package there; None if it, or a need, is not installed."""
        code = (
            "import importlib.metadata as m, sys\n"
            "try: print([m.version(name) for name in sys.argv[1:]][0])\n"
            "except m.PackageNotFoundError: pass"
        )
        command = [self.of(entry), "-c", code, entry.package, *entry.needs]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip() or None


class Program:
    """A contender on one database, with a folder for what its processes note."""

    def __init__(self, entry: Entry, url: str, interpreters: Interpreters, folder: Path) -> None:
        self.entry = entry
        self.url = url
        self.folder = folder
        #: How many no-op jobs a worker will find.
        self.jobs = 1
        self._python = interpreters.of(entry)

    def run(self, verb: str, *arguments: object, deadline: float = 300.0) -> Any:
        """Run a verb to its end; its answer."""
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        log = self.folder / f"{verb}.log"
        with log.open("wb") as file:
            process = self._start(verb, *arguments, output=file)
            try:
                process.wait(deadline)
            except subprocess.TimeoutExpired:
                raise ContenderFailedError(f"{self._name(verb)} took over {deadline:g} s") from None
            finally:
                _end(process)
        if process.returncode:
            raise ContenderFailedError(f"{self._name(verb)} failed:\n{_tail(log)}")
        return json.loads(answer.read_text()) if answer.exists() else None

    @contextlib.contextmanager
    def worker(self, url: str | None = None) -> Iterator["Worker"]:
        """A worker process, stopped in the end. ``url`` is another way to the same database."""
        log = self.folder / "work.log"
        with log.open("wb") as file:
            process = self._start("work", output=file, url=url)
            try:
                yield Worker(process, log, self._name("work"))
            finally:
                _end(process)

    def notes(self, name: str) -> list[list[int]]:
        """What bodies of jobs have noted so far (see ``contenders.marks``)."""
        path = self.folder / name
        if not path.exists():
            return []
        lines = path.read_text().split("\n")[:-1]
        return [[int(word) for word in line.split()] for line in lines]

    def _name(self, verb: str) -> str:
        return f"{self.entry.title}: {verb}"

    def _start(
        self, verb: str, *arguments: object, output: Any, url: str | None = None
    ) -> subprocess.Popen[bytes]:
        module = f"tests.benchmarks.contenders.{self.entry.module}"
        return subprocess.Popen(
            [self._python, "-m", module, verb, *map(str, arguments)],
            cwd=ROOT,
            env={
                **os.environ,
                "BENCH_URL": url or self.url,
                "BENCH_FOLDER": str(self.folder),
                "BENCH_VARIANT": self.entry.variant,
                "BENCH_JOBS": str(self.jobs),
                "PYTHONPATH": str(ROOT),
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class Worker:
    """A running worker process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, name: str) -> None:
        self._process = process
        self._log = log
        self._name = name

    def wait_until(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """The first true answer of ``condition``; ContenderFailedError if it does not come."""
        deadline = time.monotonic() + seconds
        while not (answer := condition()):
            if self._process.poll() is not None:
                raise ContenderFailedError(f"{self._name} ended by itself:\n{_tail(self._log)}")
            if time.monotonic() > deadline:
                raise ContenderFailedError(f"{self._name}: not within {seconds:g} s: {what}")
            pause(0.01)
        return answer

    def cpu_seconds(self) -> float:
        """Processor time it has used so far, where the system tells."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return float("nan")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Resident memory in megabytes, of it and its children, where the system tells."""
        try:
            return sum(_resident_kb(pid) for pid in self._family()) / 1024
        except OSError:
            return float("nan")

    def _family(self) -> Iterator[int]:
        """Itself, and those of its session, of which it is the leader."""
        yield self._process.pid
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # of a process that has just ended
                session = int(stat.read_text().rpartition(")")[2].split()[3])
                pid = int(stat.parent.name)
                if session == self._process.pid != pid:
                    yield pid


def _resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) if lines else 0  # a zombie has none


@contextlib.contextmanager
def program_on(entry: Entry, url: str, interpreters: Interpreters) -> Iterator[Program]:
    """A contender on an empty database."""
    with tempfile.TemporaryDirectory(prefix="flexiq-bench-") as folder:
        yield Program(entry, url, interpreters, Path(folder))


def pause(seconds: float) -> None:
    """Let time pass."""
    threading.Event().wait(seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to stop, then make it, and those it has started."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
