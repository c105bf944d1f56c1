"""Lanes: the lines that ready jobs wait in.

A lane holds jobs that are claimable under the same conditions: the same queue, the same deployment
and, where their task has a limit of its own, the same task. A worker reads only lanes it may serve
now, so a paused queue, a queue nobody serves, a foreign deployment or a used-up limit costs a claim
nothing, however many jobs wait there. The name of a lane is a single column because SQLite can stop
early inside ``IN`` only for one.
"""

from __future__ import annotations

from typing import NamedTuple

#: Stands between the parts of a lane; refused in queue names, deployment ids and task names.
SEPARATOR = "\x1f"


class Lane(NamedTuple):
    """The parts of a lane.

    ``deployment_id`` is ``None`` where any worker may serve it, ``task_name`` where its jobs are of
    any task without limits.
    """

    queue: str
    deployment_id: str | None = None
    task_name: str | None = None


def lane_name(queue: str, deployment_id: str | None = None, task_name: str | None = None) -> str:
    """The stored name of the lane in which such a job waits when it is ready.

    ``task_name`` only if the task has a limit of its own.
    """
    if task_name is not None:
        return f"{queue}{SEPARATOR}{deployment_id or ''}{SEPARATOR}{task_name}"
    return queue if deployment_id is None else f"{queue}{SEPARATOR}{deployment_id}"


def parse_lane(name: str) -> Lane:
    """The parts of a stored lane name."""
    queue, *rest = name.split(SEPARATOR, 2)
    deployment_id, task_name = (*rest, "", "")[:2]
    return Lane(queue, deployment_id or None, task_name or None)
