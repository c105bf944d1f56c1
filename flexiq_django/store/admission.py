"""Admission: how many jobs may be pending. Asked before an enqueue writes anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.records import NewJob
from flexiq_django.exceptions import QueueFull
from flexiq_django.store.keys import active_key
from flexiq_django.store.vendors.base import JOBS, Database

#: The name under which the limit of a whole namespace stands.
NAMESPACE = "*"

#: Most jobs of each queue, and of the namespace.
Depths = Mapping[str, int]


@contextlib.contextmanager
def admitted(database: Database, jobs: Sequence[NewJob], depths: Depths) -> Iterator[None]:
    """Insert these jobs inside; raises ``QueueFull`` where that would be too many.

    Outside a transaction one caller at a time counts and inserts, so the limit is exact. In a
    transaction of the caller nobody may wait for its end: there only committed jobs count, and its
    own.
    """
    if not depths:
        yield
        return
    if database.connection.in_atomic_block:
        _refuse_if_full(database, jobs, depths)
        yield
        return
    with database.alone(f"depth {database.scope.namespace}"), database.transaction():
        _refuse_if_full(database, jobs, depths)
        yield


def _refuse_if_full(database: Database, jobs: Sequence[NewJob], depths: Depths) -> None:
    for name, limit in sorted(depths.items()):
        mine = [job for job in jobs if name in (NAMESPACE, job.queue)]
        if not mine:
            continue
        depth = _count(database, None if name == NAMESPACE else name, limit + 1)
        if depth + len(mine) > limit:
            added = _added(database, mine)  # asked only now: usually all of them are
            if added and depth + added > limit:
                raise QueueFull(
                    queue=None if name == NAMESPACE else name, depth=depth, limit=limit, added=added
                )


def _added(database: Database, jobs: Sequence[NewJob]) -> int:
    """How many of the jobs are new: a key that is held, or comes twice, adds none."""
    keys = {active_key(job.unique_key) for job in jobs if job.unique_key is not None}
    plain = sum(job.unique_key is None for job in jobs)
    return plain + sum(database.active_holder(key) is None for key in keys)


def _count(database: Database, queue: str | None, most: int) -> int:
    """How many jobs are pending, counted up to ``most``, by the indexes that hold them."""
    parts: list[tuple[str, dict[str, object]]] = []
    mine = "" if queue is None else " AND queue = %(queue)s"
    named = {} if queue is None else {"queue": queue}
    if queue is None:
        parts.append(("ready_lane IS NOT NULL", {}))
    else:
        lanes = [lane for lane in database.lanes() if parse_lane(lane).queue == queue]
        parts += [("ready_lane = %(lane)s AND ready_lane IS NOT NULL", {"lane": x}) for x in lanes]
    parts.append((f"idle_status = 'pending'{mine}", dict(named)))
    parts.append((f"promote_at IS NOT NULL{mine}", dict(named)))
    found = 0
    for condition, params in parts:
        if found >= most:
            break
        rows = database.fetch(
            f"SELECT COUNT(*) FROM (SELECT 1 FROM {JOBS}"  # noqa: S608 - names are our own
            f" WHERE namespace = %(namespace)s AND {condition} LIMIT %(left)s) AS counted",
            {**params, "left": most - found},
        )
        found += int(rows[0][0])
    return found
