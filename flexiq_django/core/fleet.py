"""What looks wrong in a fleet: workers that differ, clocks that are off, lanes nobody serves."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from flexiq_django.core.lanes import Lane, parse_lane
from flexiq_django.core.records import LiveWorker

#: A clock that is further off the database's than this, in milliseconds, is worth a warning.
SKEW_MS = 5_000
#: Workers named for one value; of more only the number is told.
MOST_NAMED = 5


class Difference(NamedTuple):
    """A fleet-wide value that is not the same in all live workers.

    ``workers`` has the ids of the workers by the value they published, written as JSON.
    """

    name: str
    workers: dict[str, list[str]]

    @property
    def text(self) -> str:
        """A sentence without its full stop."""
        told = "; ".join(f"{value} on {_some(ids)}" for value, ids in self.workers.items())
        return f"workers differ in {self.name}: {told}"


def differences(live: Iterable[LiveWorker]) -> list[Difference]:
    """The values that should be the same in the whole fleet and are not, by name.

    A worker of a build that does not publish a value has no part in it.
    """
    values: dict[str, dict[str, list[str]]] = {}
    for worker in live:
        for name, value in {**worker.config, "version": worker.version}.items():
            text = json.dumps(_plain(value), sort_keys=True)
            values.setdefault(name, {}).setdefault(text, []).append(worker.id)
    return [Difference(name, found) for name, found in sorted(values.items()) if len(found) > 1]


def _plain(value: Any) -> Any:
    """The value with whole numbers for floats that are whole: 30.0 seconds are no other than 30."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def skews(live: Iterable[LiveWorker]) -> Iterator[tuple[LiveWorker, str]]:
    """The workers whose clock is off, each with a sentence that says by how much."""
    for worker in live:
        if abs(worker.clock_skew_ms) > SKEW_MS:
            off = f"{worker.clock_skew_ms / 1000:+.1f} s"
            yield worker, f"the clock of worker {worker.id} is {off} off the database's"


def disagreements(live: Sequence[LiveWorker]) -> Iterator[tuple[str, str]]:
    """What workers do not agree in, clocks and values: a code, and a sentence, for each."""
    for _worker, text in skews(live):
        yield "clock-skew", text
    for each in differences(live):
        yield "fleet-differs", each.text


class Unserved(NamedTuple):
    """Ready jobs that no live worker claims. ``code`` says which kind, ``why`` the rest."""

    code: str
    queue: str
    deployment_id: str | None
    why: str

    @property
    def place(self) -> tuple[str, str | None]:
        """Which jobs: their queue and deployment."""
        return (self.queue, self.deployment_id)

    @property
    def text(self) -> str:
        """A sentence without its full stop."""
        return f"jobs wait in queue {self.queue}{self.why}"


def unserved(
    lanes: Iterable[str], *, paused: Collection[str], live: Sequence[LiveWorker]
) -> list[Unserved]:
    """The lanes, by their stored names, in which jobs wait for a worker that is not there.

    A worker that drains serves nobody any more. Lanes of paused queues wait for a person instead.
    Lanes that differ only in their task are one.
    """
    found: dict[Unserved, None] = {}
    for name in lanes:
        lane = parse_lane(name)
        if lane.queue in paused:
            continue
        reason = _why_unserved(lane, live)
        if reason is not None:
            code, why = reason
            found[Unserved(code, lane.queue, lane.deployment_id, why)] = None
    return list(found)


def _why_unserved(lane: Lane, live: Sequence[LiveWorker]) -> tuple[str, str] | None:
    claiming = [one for one in live if one.is_running]
    if not claiming:
        return "no-worker", f", and {'every live worker drains' if live else 'no worker is alive'}"
    servers = [one for one in claiming if one.serves(lane.queue)]
    if not servers:
        return "unserved-queue", ", which no live worker serves"
    if lane.deployment_id not in (None, *(one.deployment_id for one in servers)):
        wanted = f" for deployment {lane.deployment_id}"
        return "unserved-deployment", f"{wanted}, which no live worker there has"
    return None


def _some(ids: Sequence[str]) -> str:
    named = ", ".join(ids[:MOST_NAMED])
    return named if len(ids) <= MOST_NAMED else f"{named} and {len(ids) - MOST_NAMED} more"
