"""Chores that only look, and say in the log what looks wrong: once, until it changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flexiq_django.core import fleet
from flexiq_django.core.records import LiveWorker
from flexiq_django.store import inspect, workers
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Seconds between two looks at the values the other workers have published.
FLEET_SECONDS = 15.0
#: Seconds between two looks for ready jobs that no live worker can claim.
LANE_SECONDS = 10.0
#: Seconds within which a worker that leaves should have been replaced: by default it has 30 to
#: drain, and the new one has to start.
RESTART_SECONDS = 60.0

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
    """Says which ready jobs no live worker can claim. It reads one index entry per lane.

    A lane whose last worker leaves is given time: at each restart it would be in the log else.
    """

    def __init__(
        self, scope: Scope, call: Call, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._scope, self._call, self._clock = scope, call, clock
        self._told: set[fleet.Unserved] = set()
        #: By id: a worker as it claims or did lately, and when it was last seen to.
        self._claiming: dict[str, tuple[LiveWorker, float]] = {}

    def run(self) -> float:
        """Look once."""
        lanes, paused, live = self._call(lambda: _look(self._scope))
        lately = self._seen_claiming(live)
        for_long = {each.place for each in fleet.unserved(lanes, paused=paused, live=lately)}
        now = fleet.unserved(lanes, paused=paused, live=live)
        found = [each for each in now if each.place in for_long]
        for each in found:
            if each not in self._told:
                logger.warning("%s", each.text)
        for each in sorted(self._told.difference(found), key=lambda each: each.text):
            logger.info("no longer: %s", each.text)
        self._told = set(found)
        return LANE_SECONDS

    def _seen_claiming(self, live: Sequence[LiveWorker]) -> list[LiveWorker]:
        """The workers that claim, or did less than ``RESTART_SECONDS`` ago."""
        now = self._clock()
        for worker in live:
            # One that drains when it is first seen has claimed until lately.
            if worker.is_running or worker.id not in self._claiming:
                self._claiming[worker.id] = (replace(worker, state="running"), now)
        alive = {worker.id for worker in live}
        lately = {key for key, (_, at) in self._claiming.items() if now - at < RESTART_SECONDS}
        self._claiming = {key: self._claiming[key] for key in alive | lately}
        return [self._claiming[key][0] for key in lately]


def find_unserved(scope: Scope) -> list[fleet.Unserved]:
    """The ready jobs of a namespace that no live worker can claim, by queue and deployment."""
    lanes, paused, live = _look(scope)
    return fleet.unserved(lanes, paused=paused, live=live)


def _look(scope: Scope) -> tuple[list[str], list[str], list[LiveWorker]]:
    """The lanes in which jobs wait, the paused queues, and the live workers."""
    lanes = inspect.lane_names(scope)
    paused = inspect.paused_queues(scope) if lanes else []
    # The workers last: one that has begun to serve a lane meanwhile must not be missed.
    return lanes, paused, workers.live(scope)
