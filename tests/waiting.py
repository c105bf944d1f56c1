"""Waiting for something to become true, never for time to pass."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONGEST_PAUSE = 0.1


def wait_until(
    condition: Callable[[], T | None], deadline: float = 10.0, description: str = ""
) -> T:
    """Ask `condition` until it answers something true, and return that answer.

    After `deadline` seconds raises AssertionError with the description and the last answer.
    Pauses start short and grow to a tenth of a second, so a quick condition costs no wait.
    """
    what = description or getattr(condition, "__name__", "the condition")
    ends_at = time.monotonic() + deadline
    pause = 0.005
    nothing = threading.Event()
    while True:
        answer = condition()
        if answer:
            return answer
        left = ends_at - time.monotonic()
        if left <= 0:
            raise AssertionError(f"not within {deadline:g} s: {what}; last answer: {answer!r}")
        nothing.wait(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
