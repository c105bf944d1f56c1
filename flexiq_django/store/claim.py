"""Hand out ready jobs, each with a lease and a fresh token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.core.lanes import Lane, parse_lane
from flexiq_django.core.records import ClaimedJob
from flexiq_django.store.gates import NO_GATES, Gates, guard
from flexiq_django.store.ids import new_token
from flexiq_django.store.meter import Meter
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Database


class Claimed(NamedTuple):
    """What a claim gave. ``opens_in``: seconds until a rate limit lets more jobs start."""

    jobs: list[ClaimedJob]
    opens_in: float | None = None


_Taken = list[tuple[str, tuple[Any, ...]]]


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
    scope: Scope,
    *,
    lanes: Sequence[str],
    limit: int,
    worker_id: str,
    lease_ms: int,
    gates: Gates = NO_GATES,
    limited: int | None = None,
    only: UUID | None = None,
) -> Claimed:
    """Claim up to ``limit`` ready jobs, best first: higher priority, then due earlier, then older.

    Each becomes running, its attempt goes up by one, and it carries a new token and a lease of
    ``lease_ms`` from now. Jobs of paused queues stay, and jobs under a limit as far as it does not
    let them through; ``gates`` is what the worker knows of both. At most ``limited`` jobs are under
    a limit. No job is ever handed to two callers. Fewer than ``limit`` come back when there are no
    more, when others took them at the same moment, or when ``gates`` is out of date. With
    ``only``, the id of a job in the one lane that is given, no other is taken.
    """
    names = [name for name in lanes if parse_lane(name).queue not in gates.paused]
    if not names or limit < 1:
        return Claimed([])
    database = open_database(scope)
    claim = _Claim(database, gates, {"worker_id": worker_id, "lease_ms": lease_ms}, only)
    behind = [name for name in names if gates.is_limited(parse_lane(name))]
    if not behind:
        return Claimed(claim.jobs(claim.take(names, limit)))
    with database.transaction():
        taken, opens_in = claim.take_metered(names, behind, limit, limited)
    return Claimed(claim.jobs(taken), opens_in)


class _Claim:
    """One claim: one token, taken lane by lane."""

    def __init__(
        self, database: Database, gates: Gates, params: dict[str, Any], only: UUID | None
    ) -> None:
        self._database = database
        self._gates = gates
        self._token = new_token()
        self._params = {**params, "token": self._token}
        self._paid_to: dict[str, tuple[str, ...]] = {}  # by lane, where a job costs a token
        self._condition = ""
        if only is not None:
            self._condition = " AND id = %(only)s"
            self._params["only"] = database.id_text(only)

    def take(self, lanes: Sequence[str], limit: int) -> _Taken:
        """From lanes without limits."""
        if len(lanes) == 1:
            return self._take(lanes[0], limit)
        planned = Counter(self._heads(lanes, limit))
        if len(planned) == 1:
            lane, count = planned.popitem()
            return self._take(lane, count)
        taken: _Taken = []
        with self._database.transaction():
            for lane, count in sorted(planned.items()):
                taken += self._take(lane, count)
        return taken

    def take_metered(
        self, lanes: Sequence[str], behind: Sequence[str], limit: int, limited: int | None
    ) -> tuple[_Taken, float | None]:
        """From lanes of which some are ``behind`` a limit; the seconds until one of these opens."""
        parsed = {name: parse_lane(name) for name in behind}
        meter = Meter(self._database, list(parsed.values()), self._gates)
        left = limit if limited is None else limited
        taken: _Taken = []
        spent: set[str] = set()  # lanes that gave all they have
        while len(taken) < limit:
            before = len(taken)
            heads = self._heads(
                [
                    name
                    for name in lanes
                    if name not in spent
                    and (name not in parsed or (left >= 1 and meter.room(parsed[name]) >= 1))
                ],
                limit - before,
            )
            planned: Counter[str] = Counter()
            for name in heads:  # the best first, so that it gets the room there is
                if name in parsed:
                    if left < 1 or meter.room(parsed[name]) < 1:
                        continue
                    meter.use(parsed[name], 1)
                    left -= 1
                planned[name] += 1
            for name, count in sorted(planned.items()):
                got = self._take(name, count, meter)
                taken += got
                if len(got) < count:
                    spent.add(name)
                    if name in parsed:
                        meter.use(parsed[name], len(got) - count)
                        left += count - len(got)
            if len(taken) == before:
                break
        meter.write()
        self._paid_to = {name: meter.payees(lane) for name, lane in parsed.items()}
        waits = [meter.opens_in(lane) for lane in parsed.values() if meter.room(lane) < 1]
        return taken, min((wait for wait in waits if wait is not None), default=None)

    def jobs(self, taken: _Taken) -> list[ClaimedJob]:
        """Records in claim order: by rank and due time, the last two columns, then by id."""
        taken.sort(key=lambda pair: (pair[1][-2], pair[1][-1], pair[1][0]))
        read_id, paid_to = Database.read_id, self._paid_to
        return [
            # The time itself and no condition on it: in RETURNING, SQLite 3.40 takes IS NOT NULL of
            # this column for true.
            ClaimedJob._make(
                (
                    read_id(row[0]),
                    *row[1:11],
                    bool(row[11]),
                    self._token,
                    lane,
                    row[12] is not None,
                    paid_to.get(lane, ()),
                )
            )
            for lane, row in taken
        ]

    def _heads(self, lanes: Sequence[str], limit: int) -> list[str]:
        """The lanes of the best ``limit`` jobs, best first.

        Without locks: one statement that locked the heads of every lane would hide the rows it
        gives back from the other workers.
        """
        if len(lanes) < 2:
            return [*lanes] * limit
        return self._database.heads(lanes, limit)

    def _take(self, name: str, limit: int, meter: Meter | None = None) -> _Taken:
        lane: Lane = parse_lane(name)
        condition, params = guard(
            lane,
            self._gates,
            is_queue_locked=meter is not None and meter.holds("queue", lane.queue),
            is_task_locked=meter is not None and meter.holds("task", lane.task_name),
        )
        rows = self._database.take(
            name, limit, condition + self._condition, {**self._params, **params}
        )
        return [(name, row) for row in rows]
