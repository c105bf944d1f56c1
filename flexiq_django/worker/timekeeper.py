"""Enforce hard timeouts, whatever the database does: on a thread that never asks it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from flexiq_django.api.context import Attempt
from flexiq_django.worker.heartbeat import Holdings

logger = logging.getLogger(__name__)

#: Seconds between two looks.
TICK_SECONDS = 0.25


class Timekeeper:
    """The thread that says when the time of an attempt is up. Goes on while the worker drains."""

    def __init__(self, holdings: Holdings, on_timeout: Callable[[Attempt], None]) -> None:
        self._holdings = holdings
        self._on_timeout = on_timeout
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flexiq-timekeeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End within ``timeout`` seconds."""
        self._stop.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            now = time.monotonic()
            for attempt in self._holdings.attempts():
                timeout_ms = attempt.job.timeout_ms
                if timeout_ms is None or (now - attempt.began) * 1000 <= timeout_ms:
                    continue
                try:
                    self._on_timeout(attempt)
                except Exception:  # the others have their time too
                    logger.exception("job %s could not be timed out", attempt.job.id)
