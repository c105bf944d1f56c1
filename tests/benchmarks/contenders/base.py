"""What a contender must be able to do, and how the measuring process calls it.

A contender is a program: ``python -m tests.benchmarks.contenders.NAME VERB [ARGUMENTS]``, run by
the interpreter that has its packages. The database's URL, the folder for notes and the variant come
in the environment; what a verb has found out goes into the file ``answer.json``.

``prepare``              create the tables
``load COUNT``           the same, and store that many no-op jobs; answers the seconds
``work``                 be a worker until SIGTERM
``send COUNT SECONDS``   enqueue jobs at that interval; answers the time of each
``enqueue COUNT``        create the tables and enqueue one job after the other; answers the seconds
"""

import json
import os
import random
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from tests.benchmarks.contenders import marks

#: Jobs sent, and run, before the clock counts.
WARM_UP = 10
#: Jobs of one bulk call.
CHUNK = 5000

Send = Callable[[int], None]


class Contender(ABC):
    """One queue, used through its public interface with its defaults."""

    def __init__(self) -> None:
        self.url = os.environ["BENCH_URL"]
        self.variant = os.environ.get("BENCH_VARIANT", "")

    @abstractmethod
    def prepare(self) -> None:
        """Create the tables in an empty database."""

    @abstractmethod
    def preload(self, count: int) -> float | None:
        """Store ``count`` no-op jobs.

        Returns the seconds it took, or None if that was not the public interface.
        """

    @abstractmethod
    def work(self) -> None:
        """Be one worker process until SIGTERM."""

    @abstractmethod
    def sender(self) -> AbstractContextManager[Send]:
        """Yield the function that enqueues a job which notes ``number`` and the time."""


def main(contender: Contender) -> None:
    """Do what the command line says."""
    verb, *arguments = sys.argv[1:]
    if verb == "prepare":
        contender.prepare()
    elif verb == "load":
        contender.prepare()
        _answer(contender.preload(int(arguments[0])))
    elif verb == "work":
        contender.work()
    elif verb == "send":
        _answer(_send(contender, int(arguments[0]), float(arguments[1])))
    elif verb == "enqueue":
        contender.prepare()
        _answer(_enqueue(contender, int(arguments[0])))
    else:
        raise SystemExit(f"unknown verb {verb}")


def chunks(count: int) -> Iterator[int]:
    """``count`` in parts of at most ``CHUNK``."""
    while count > 0:
        yield min(CHUNK, count)
        count -= CHUNK


def _send(contender: Contender, count: int, seconds: float) -> list[list[int]]:
    """Send a job about every so many seconds; the number and the clock just before each."""
    draw = random.Random(7)
    sent = []
    with contender.sender() as send:
        for number in range(-WARM_UP, 0):
            send(number)
            _wait_for(number)
        _pause(1.0)
        for number in range(count):
            # Drawn, so that no worker's polling interval is in step with it.
            _pause(seconds * draw.uniform(0.5, 1.5))
            before = time.monotonic_ns()
            send(number)
            sent.append([number, before])
    return sent


def _enqueue(contender: Contender, count: int) -> float:
    """The seconds that ``count`` single enqueues take, one after the other."""
    with contender.sender() as send:
        for number in range(WARM_UP):
            send(number)
        began = time.monotonic()
        for number in range(count):
            send(number)
        return time.monotonic() - began


def _wait_for(number: int) -> None:
    deadline = time.monotonic() + 60
    while [number] not in [line[:1] for line in marks.read(marks.RAN)]:
        if time.monotonic() > deadline:
            raise SystemExit("the worker did not run a job within a minute")
        _pause(0.02)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _answer(value: Any) -> None:
    (marks.folder() / "answer.json").write_text(json.dumps(value))
