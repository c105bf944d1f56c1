"""Hand out ready jobs, each with a lease and a fresh token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.records import ClaimedJob
from flexiq_django.models import QueueState
from flexiq_django.store.ids import new_token
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Database


def discover_lanes(
    scope: Scope, *, queues: Collection[str] | None, deployment_id: str | None
) -> list[str]:
    """The lanes in which jobs wait that this worker may serve.

    ``queues=None`` serves every queue. A worker with a deployment serves its own jobs and those
    without one; a worker without a deployment only the latter.
    """
    lanes = []
    for name in open_database(scope).lanes():
        lane = parse_lane(name)
        if queues is not None and lane.queue not in queues:
            continue
        if lane.deployment_id in (None, deployment_id):
            lanes.append(name)
    return lanes


def claim(
    scope: Scope, *, lanes: Sequence[str], limit: int, worker_id: str, lease_ms: int
) -> list[ClaimedJob]:
    """Claim up to ``limit`` ready jobs, best first: higher priority, then due earlier, then older.

    Each becomes running, its attempt goes up by one, and it carries a new token and a lease of
    ``lease_ms`` from now. Jobs of paused queues stay. No job is ever handed to two callers. Fewer
    than ``limit`` come back when there are no more, or when others took them at the same moment.
    """
    if not lanes or limit < 1:
        return []
    database = open_database(scope)
    token = new_token()
    params = {"token": token, "worker_id": worker_id, "lease_ms": lease_ms}
    if len(lanes) == 1:
        return _claimed(_take(database, lanes[0], limit, params), token)
    # Plan without locks, then take: one statement that locked the heads of every lane would hide
    # the rows it gives back from the other workers.
    planned = Counter(database.heads(_open(database, lanes), limit))
    if len(planned) == 1:
        lane, count = planned.popitem()
        return _claimed(_take(database, lane, count, params), token)
    taken: list[tuple[str, tuple[Any, ...]]] = []
    with database.transaction():
        for lane, count in sorted(planned.items()):
            taken += _take(database, lane, count, params)
    return _claimed(taken, token)


def _open(database: Database, lanes: Sequence[str]) -> list[str]:
    paused = set(
        QueueState.objects.using(database.scope.using)
        .filter(namespace=database.scope.namespace, paused_at__isnull=False)
        .values_list("name", flat=True)
    )
    return [lane for lane in lanes if parse_lane(lane).queue not in paused] if paused else [*lanes]


def _take(
    database: Database, lane: str, limit: int, params: dict[str, Any]
) -> list[tuple[str, tuple[Any, ...]]]:
    queue = parse_lane(lane).queue
    return [(lane, row) for row in database.take(lane, limit, {**params, "queue": queue})]


def _claimed(taken: list[tuple[str, tuple[Any, ...]]], token: int) -> list[ClaimedJob]:
    """Records in claim order: (rank, scheduled_at, id) are the last two columns and the first."""
    if not taken:
        return []
    taken.sort(key=lambda pair: (pair[1][-2], pair[1][-1], pair[1][0]))
    read_id = Database.read_id
    return [
        ClaimedJob._make((read_id(row[0]), *row[1:10], bool(row[10]), token, lane))
        for lane, row in taken
    ]
