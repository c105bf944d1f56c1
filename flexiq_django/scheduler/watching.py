"""Chores that only look, and say in the log what looks wrong: once, until it changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from flexiq_django.core import fleet
from flexiq_django.store import inspect, workers
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Seconds between two looks at the values the other workers have published.
FLEET_SECONDS = 15.0
#: Seconds between two looks for ready jobs that no live worker can claim.
LANE_SECONDS = 10.0

Call = Callable[[Callable[[], Any]], Any]


class FleetWatch:
    """Says which fleet-wide values are not the same in all live workers. Every worker does it."""

    def __init__(self, scope: Scope, call: Call) -> None:
        self._scope, self._call = scope, call
        # By the values alone: in a rollout the workers that have them change all the time.
        self._told: dict[str, frozenset[str]] = {}

    def run(self) -> float:
        """Look once."""
        found = fleet.differences(self._call(lambda: workers.live(self._scope)))
        for each in found:
            if self._told.get(each.name) != frozenset(each.workers):
                logger.warning("%s", each.text)
        now = {each.name: frozenset(each.workers) for each in found}
        for name in self._told.keys() - now:
            logger.info("workers agree in %s again", name)
        self._told = now
        return FLEET_SECONDS


class LaneWatch:
    """Says which ready jobs no live worker can claim. It reads one index entry per lane."""

    def __init__(self, scope: Scope, call: Call) -> None:
        self._scope, self._call = scope, call
        self._told: set[fleet.Unserved] = set()

    def run(self) -> float:
        """Look once."""
        found = self._call(lambda: find_unserved(self._scope))
        for each in found:
            if each not in self._told:
                logger.warning("%s", each.text)
        for each in sorted(self._told.difference(found), key=lambda each: each.text):
            logger.info("no longer: %s", each.text)
        self._told = set(found)
        return LANE_SECONDS


def find_unserved(scope: Scope) -> list[fleet.Unserved]:
    """The ready jobs of a namespace that no live worker can claim, by queue and deployment."""
    lanes = inspect.lane_names(scope)
    if not lanes:
        return []
    # The workers last: one that has begun to serve a lane meanwhile must not be missed.
    paused = inspect.paused_queues(scope)
    return fleet.unserved(lanes, paused=paused, live=workers.live(scope))
