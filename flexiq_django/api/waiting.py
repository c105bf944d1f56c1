"""Waiting for a job up to a deadline."""

from __future__ import annotations

import math
import time

from flexiq_django.api.options import check_pace


class Patience:
    """Waits for one job for at most ``timeout`` seconds from now on. Refuses 0 and less."""

    def __init__(self, timeout: float, job_id: str) -> None:
        self._timeout = timeout if timeout == math.inf else check_pace("timeout", timeout)
        self._job_id = job_id
        self._deadline = time.monotonic() + timeout

    def rest(self, interval: float) -> float:
        """How long to rest before the next look. Raises ``TimeoutError`` once the time is up."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"job {self._job_id} did not end within {self._timeout:g} s")
        return min(interval, left)
