"""How many jobs a worker may hold in advance: as many as start within a tenth of a second."""

from __future__ import annotations

#: Seconds within which a claimed job should start.
START_WITHIN = 0.1
#: Most jobs held beyond the free slots: one claim is at most this large.
MOST = 400


class Buffer:
    """Follows how long bodies take, quick to believe in slow ones.

    Until the first body has ended nothing is known, and nothing is held in advance.
    """

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._seconds: float | None = None

    def note(self, seconds: float) -> None:
        """A body has taken this long."""
        known = self._seconds
        if known is None:
            self._seconds = seconds
            return
        weight = 0.5 if seconds > known else 0.05
        self._seconds = known + weight * (seconds - known)

    def forget(self) -> None:
        """Bodies take longer than they used to: hold nothing until one has ended."""
        self._seconds = None

    @property
    def size(self) -> int:
        """Jobs to hold beyond the free slots."""
        if self._seconds is None:
            return 0
        return min(MOST, int(self._concurrency * START_WITHIN / max(self._seconds, 1e-6)))
