"""What the body of a job notes down: the machine's clock, in files the measuring process reads."""

import itertools
import os
import time
from pathlib import Path

#: Lines with the nanosecond at which a process ran its first no-op job.
BEGAN = "began"
#: The same of the last one, so that nobody has to ask the database while there is work.
LAST = "last"
#: Lines with the number of a job and the nanosecond at which its body began.
RAN = "ran"

_numbers = itertools.count()
_last = int(os.environ.get("BENCH_JOBS") or 1) - 1
_ran_file: int | None = None


def folder() -> Path:
    """Where the notes of this run go."""
    return Path(os.environ["BENCH_FOLDER"])


def began() -> None:
    """The whole body of a no-op job. Only the first and the last of a process write."""
    number = next(_numbers)
    if number == 0:
        _append(_open(BEGAN), f"{time.monotonic_ns()}\n")
    if number == _last:
        _append(_open(LAST), f"{time.monotonic_ns()}\n")


def ran(number: int) -> None:
    """The whole body of a job whose start is to be timed."""
    global _ran_file
    now = time.monotonic_ns()  # the monotonic clock is one for all processes of a machine
    if _ran_file is None:
        _ran_file = _open(RAN)
    _append(_ran_file, f"{number} {now}\n")


def read(name: str) -> list[list[int]]:
    """The numbers of each complete line that has been noted so far."""
    try:
        text = (folder() / name).read_text()
    except FileNotFoundError:
        return []
    lines = text.split("\n")[:-1]
    return [[int(word) for word in line.split()] for line in lines]


def _open(name: str) -> int:
    return os.open(folder() / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def _append(file: int, line: str) -> None:
    os.write(file, line.encode())
