"""How much memory this process takes, and whether that is too much."""

from __future__ import annotations

import logging
import os
import resource
import sys
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

#: Seconds between two looks.
LOOK_SECONDS = 1.0
MIB = 1 << 20

_STATM = "/proc/self/statm"


def resident_bytes() -> int:
    """The resident memory of this process, without its children.

    Where the system has no ``/proc``, the most it ever took.
    """
    try:
        with open(_STATM, "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


class MemoryLimit:
    """Says when the process has grown beyond ``limit`` bytes; ``None`` is no limit."""

    def __init__(self, limit: int | None, measure: Callable[[], int] = resident_bytes) -> None:
        self._limit = limit
        self._measure = measure
        self._next_look = 0.0

    def is_exceeded(self) -> bool:
        """Whether it is time to leave. Looks at most once a second."""
        if self._limit is None or time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + LOOK_SECONDS
        taken = self._measure()
        if taken <= self._limit:
            return False
        logger.warning(
            "resident memory is %d MiB, more than the %d MiB allowed: the process is recycled",
            taken / MIB,
            self._limit / MIB,
        )
        return True
