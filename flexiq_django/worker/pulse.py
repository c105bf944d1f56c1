"""How a worker process is: what its heartbeat publishes, and what a probe of it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.verdict import Verdict, judge_turn


class Pulse:
    """One worker process.

    ``keepers`` are those of the threads that ask the database by themselves, whatever there is to
    do. ``limit`` is the most seconds between two turns of the claim loop.
    """

    def __init__(
        self,
        turned_at: Callable[[], float],
        keepers: Sequence[Keeper],
        *,
        is_leaving: Callable[[], bool],
        limit: float,
        has_slots: Callable[[], bool] = lambda: True,
    ) -> None:
        self._turned_at = turned_at
        self._keepers = keepers
        self._is_leaving = is_leaving
        self._limit = limit
        self._has_slots = has_slots
        #: Whether the worker's row is in the database.
        self.is_registered = False

    @property
    def is_away(self) -> bool:
        """Whether the database could not be reached when it was last asked."""
        return any(keeper.is_away for keeper in self._keepers)

    @property
    def turn_age(self) -> float:
        """Seconds since the claim loop last turned.

        0 while it is not meant to: while the worker drains, or waits for its database. No restart
        brings a database back. Once that is back, the time of the outage does not count.
        """
        if self._is_leaving() or self.is_away:
            return 0.0
        since = max(self._turned_at(), *(keeper.back_at for keeper in self._keepers))
        return max(0.0, time.monotonic() - since)

    @property
    def is_ready(self) -> bool:
        """Whether the process takes new jobs."""
        return not self.ready().reasons

    def live(self) -> Verdict:
        """Not live when the claim loop hangs."""
        return judge_turn(self.turn_age, self._limit)

    def ready(self) -> Verdict:
        """Ready when registered, not draining, with slots and database within reach, and live."""
        reasons, turn_age, _ = self.live()
        found = list(reasons)
        if not self.is_registered:
            found.append("not registered yet")
        if self._is_leaving():
            found.append("draining")
        if self.is_away:
            found.append("the database is away")
        if not self._has_slots():
            found.append("no process for jobs is there yet")
        return Verdict(found, turn_age)
