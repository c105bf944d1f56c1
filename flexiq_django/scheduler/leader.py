"""Election: one process of a namespace does the chores that must not be done by all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

#: Seconds the role is held without renewal: how long the namespace may be without chores after a
#: crash.
TTL_SECONDS = 15.0


class Leader:
    """Holds the role of leader, or waits for it.

    ``acquire`` takes or keeps the role for ``ttl`` seconds and says whether it is ours; ``release``
    gives it back. The role is renewed, or asked for, three times in that span.
    """

    def __init__(
        self, acquire: Callable[[], bool], release: Callable[[], None], *, ttl: float = TTL_SECONDS
    ) -> None:
        self._ttl = ttl
        self._acquire = acquire
        self._release = release
        self._is_held = False
        self._until = 0.0
        #: When to ask next, in monotonic seconds.
        self.due = 0.0

    def hold(self, now: float) -> bool:
        """Whether this process may act as leader now."""
        if now >= self.due:
            asked = time.monotonic()  # before the answer, so that we never overestimate our time
            held = self._acquire()
            if held != self._is_held:
                logger.info("leadership %s", "taken" if held else "lost")
            self._is_held, self._until = held, asked + self._ttl
            self.due = asked + self._ttl / 3
        return self._is_held and time.monotonic() < self._until

    def resign(self) -> None:
        """Give the role back."""
        if self._is_held:
            self._is_held = False
            self._release()
