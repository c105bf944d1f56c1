"""Lanes: the lines that ready jobs wait in.

A lane holds jobs that are claimable under the same conditions: the same queue and the same
deployment. A worker reads only lanes it may serve, so a paused queue, a queue nobody serves or a
foreign deployment costs a claim nothing, however many jobs wait there. The name of a lane is a
single column because SQLite can stop early inside ``IN`` only for one.
"""

from __future__ import annotations

from typing import NamedTuple

#: Stands between the parts of a lane; refused in queue names and deployment ids.
SEPARATOR = "\x1f"


class Lane(NamedTuple):
    """The parts of a lane. ``deployment_id`` is ``None`` where any worker may serve it."""

    queue: str
    deployment_id: str | None = None


def lane_name(queue: str, deployment_id: str | None = None) -> str:
    """The stored name of the lane in which a ready job of this queue and deployment waits."""
    return queue if deployment_id is None else f"{queue}{SEPARATOR}{deployment_id}"


def parse_lane(name: str) -> Lane:
    """The parts of a stored lane name."""
    queue, _, deployment_id = name.partition(SEPARATOR)
    return Lane(queue, deployment_id or None)
