"""Pauses of chores that others are in the way of: short ones at first."""

from __future__ import annotations

#: The first pause and the longest, in seconds, before a look at what somebody else has locked.
SHORTEST, LONGEST = 0.05, 1.0


class GrowingPause:
    """Each pause is twice as long as the one before, until there was no need for one."""

    def __init__(self, shortest: float = SHORTEST, longest: float = LONGEST) -> None:
        self._shortest, self._longest = shortest, longest
        self._next = shortest

    def longer(self) -> float:
        """The seconds to rest this time."""
        now, self._next = self._next, min(self._next * 2, self._longest)
        return now

    def reset(self) -> None:
        """There was no need this time."""
        self._next = self._shortest
