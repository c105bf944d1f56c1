"""The signals that tell a worker to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def handled_signals(on_signal: Callable[[], None]) -> Iterator[None]:
    """Call ``on_signal`` for each SIGTERM and SIGINT, and put the old handlers back at the end.

    Only the main thread can be told by signals; elsewhere nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: on_signal()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
