"""The chores that keep the tables small: sweep history, archive what has ended.

Each does one small batch at a time and then rests, longer than the batch took: the other chores go
on in between, and a busy worker hardly notices a million rows going.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from flexiq_django.core.retention import RetentionPolicy
from flexiq_django.scheduler.pauses import GrowingPause
from flexiq_django.store import archive, inspect, link, retention
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

R = TypeVar("R")
Call = Callable[[Callable[[], Any]], Any]

#: Seconds between two looks for something to delete, or to archive.
LOOK_SECONDS = 60.0
#: Longest and shortest rest between two batches, in seconds.
_LONGEST_REST, _SHORTEST_REST = 1.0, 0.01


class RetentionSweep:
    """Deletes what is older than the windows allow, or past a lifetime of its own.

    The tables take turns, so a huge one keeps no other waiting. Each round begins with a report of
    the windows.
    """

    def __init__(self, scope: Scope, call: Call, policy: RetentionPolicy) -> None:
        self._scope, self._call, self._policy = scope, call, policy
        self._waiting: deque[tuple[retention.Sweep, retention.Place]] = deque()
        self._as_of: retention.Moment = None
        self._is_announced = False

    def run(self) -> float:
        """Delete one batch; the seconds to rest until the next one, or the next round."""
        if not self._waiting:
            self._begin()
        while self._waiting:
            # Taken out first: a table that cannot be swept must not keep the others from it.
            sweep, after = self._waiting.popleft()
            swept, seconds = _timed(
                self._call,
                lambda sweep=sweep, after=after: retention.sweep_batch(  # type: ignore[misc]
                    self._scope, sweep, after=after, as_of=self._as_of, only_free=True
                ),
            )
            if not swept.removed and swept.after == after:
                # Nothing left, or a whole page that others hold, where the next batch would look
                # too: the rest of the table waits for the next round.
                continue
            if swept.after is not None:
                self._waiting.append((sweep, swept.after))
            if swept.removed or swept.after is not None:
                return _rest(self._scope, seconds)
        return LOOK_SECONDS

    def _begin(self) -> None:
        self._announce()
        self._call(lambda: retention.report(self._scope, self._policy))
        # One moment for the round: else rows that keep growing old would never let it end.
        self._as_of = self._call(lambda: inspect.read_clock(self._scope))
        self._waiting.extend((sweep, None) for sweep in retention.sweeps(self._policy.windows))

    def _announce(self) -> None:
        if self._policy.defaulted and not self._is_announced:
            windows = ", ".join(
                f"{table} {window / 86_400_000:g} d"
                for table, window in self._policy.windows.items()
                if window is not None
            )
            logger.info(
                "no retention is configured for namespace %s: history is deleted after the"
                " recommended times (%s); set RETENTION in FLEXIQ to choose others, or {} for none",
                self._scope.namespace,
                windows,
            )
        self._is_announced = True


class Archival:
    """Moves jobs that ended more than ``older_than_ms`` ago to the archive."""

    def __init__(self, scope: Scope, call: Call, older_than_ms: int) -> None:
        self._scope, self._call, self._older_than_ms = scope, call, older_than_ms
        self._pause = GrowingPause()

    def run(self) -> float:
        """Move one batch; the seconds to rest until the next."""
        moved, seconds = _timed(
            self._call,
            lambda: archive.archive_batch(self._scope, older_than_ms=self._older_than_ms),
        )
        if moved == 0:  # others have locked, or just taken, all of them
            return self._pause.longer()
        self._pause.reset()
        return LOOK_SECONDS if moved is None else _rest(self._scope, seconds)


def _timed(call: Call, verb: Callable[[], R]) -> tuple[R, float]:
    """The answer of a verb, and the seconds its last try took."""
    seconds = 0.0

    def timed() -> R:
        nonlocal seconds
        began = time.monotonic()
        answer = verb()
        seconds = time.monotonic() - began
        return answer

    answer: R = call(timed)
    return answer, seconds


def _rest(scope: Scope, seconds: float) -> float:
    return min(_LONGEST_REST, max(_SHORTEST_REST, link.rest_factor(scope) * seconds))
