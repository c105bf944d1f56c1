"""Waiting for a job up to a deadline."""

from __future__ import annotations

import time

from flexiq_django.exceptions import InvalidOptionError


class Patience:
    """Waits for one job for at most ``timeout`` seconds from now on. Refuses 0 and less."""

    def __init__(self, timeout: float, job_id: str) -> None:
        if not timeout > 0:
            raise InvalidOptionError(
                f"timeout is {timeout!r}; allowed is a number of seconds above 0"
            )
        self._timeout = timeout
        self._job_id = job_id
        self._deadline = time.monotonic() + timeout

    def rest(self, interval: float) -> float:
        """How long to rest before the next look. Raises ``TimeoutError`` once the time is up."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"job {self._job_id} did not end within {self._timeout:g} s")
        return min(interval, left)
