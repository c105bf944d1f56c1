"""The signals that tell a worker to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from flexiq_django.worker.connections import close_all


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


def within(seconds: float, action: Callable[[], None]) -> None:
    """Run an action on a thread of its own; go on after ``seconds`` even if it has not ended.

    A statement that waits for a lock cannot be called back, and must not hold the process.
    """

    def run() -> None:
        try:
            action()
        finally:
            close_all()

    thread = threading.Thread(target=run, name="flexiq-last", daemon=True)
    thread.start()
    thread.join(seconds)
