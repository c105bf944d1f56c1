"""Trying again while other transactions are in the way, for a limited time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

#: Longest pause between two tries, in seconds.
_LONGEST_PAUSE = 0.02


def tries(seconds: float) -> Iterator[None]:
    """One turn after the other, with growing pauses in between, until ``seconds`` have gone by.

    A try may take long by itself, where the connection waits for another writer; a worker's
    connection to SQLite refuses at once.
    """
    deadline, pause = time.monotonic() + seconds, 0.0003
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(pause * (0.5 + random.random()))  # noqa: S311, TID251
        pause = min(pause * 1.5, _LONGEST_PAUSE)
