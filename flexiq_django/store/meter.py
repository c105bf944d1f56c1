"""The meter: how many jobs the limits of queues and tasks let through, exactly.

The row of a limit is locked while jobs are taken under it, so all workers together never start too
many. A running job counts while its lease lasts: a crash frees the slot with the lease, and no
counter can drift. Tokens move in the same transaction as the jobs they pay for.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flexiq_django.core.lanes import Lane
from flexiq_django.core.rates import RateLimit, parse_rate_limit, whole_tokens
from flexiq_django.core.records import ClaimedJob
from flexiq_django.exceptions import InvalidLimitError
from flexiq_django.store.gates import QUEUES, TASKS, Gates
from flexiq_django.store.vendors.base import JOBS, Database

logger = logging.getLogger(__name__)

_TABLES = {"queue": QUEUES, "task": TASKS}
_COLUMNS = {"queue": "queue", "task": "task_name"}
#: The columns of a bucket: what flows into it, and when it is full.
_STARTS = ("rate_limit", "rate_full_at")
_RETRIES = ("retry_budget", "retry_full_at")


@dataclass(slots=True)
class _Limit:
    """A locked row: what it allows now, and what of that this transaction has used."""

    now: datetime
    full_at: datetime | None
    rate: RateLimit | None
    slots: float
    used: int = 0

    @property
    def room(self) -> float:
        tokens = math.inf
        if self.rate is not None:
            tokens = whole_tokens(self.rate.tokens(self.full_at, self.now))
        return max(0.0, min(self.slots, tokens) - self.used)

    @property
    def opens_in(self) -> float | None:
        """Seconds until there is room; ``None`` when only the end of a job makes room."""
        if self.slots - self.used < 1:
            return None
        return 0.0 if self.rate is None else self.rate.opens_in(self.bucket(self.used), self.now)

    def bucket(self, tokens: int) -> datetime | None:
        """When the bucket is full again after so many tokens were taken."""
        return None if self.rate is None else self.rate.spend(self.full_at, self.now, tokens)


class Meter:
    """The limits of some lanes, locked until the end of the transaction."""

    def __init__(self, database: Database, lanes: Sequence[Lane], gates: Gates) -> None:
        self._database = database
        self._limits: dict[tuple[str, str], _Limit] = {}
        # In one order everywhere, so that two claims cannot deadlock.
        self._read("queue", {lane.queue for lane in lanes} & gates.queues)
        self._read("task", {lane.task_name for lane in lanes if lane.task_name} & gates.tasks)

    def holds(self, kind: str, name: str | None) -> bool:
        """Whether the row of this queue or task is locked."""
        return (kind, name) in self._limits

    def room(self, lane: Lane) -> float:
        """How many jobs of the lane may start now; infinite without a limit."""
        return min((limit.room for _, limit in self._of(lane)), default=math.inf)

    def opens_in(self, lane: Lane) -> float | None:
        """Seconds until the next job of the lane may start.

        ``None`` when only the end of another job makes room.
        """
        waits = [limit.opens_in for _, limit in self._of(lane)]
        known = [wait for wait in waits if wait is not None]
        return None if len(known) < len(waits) else max(known, default=0.0)

    def use(self, lane: Lane, jobs: int) -> None:
        """Jobs of the lane have been taken."""
        for _, limit in self._of(lane):
            limit.used += jobs

    def payees(self, lane: Lane) -> tuple[str, ...]:
        """Which of the limits of the lane take a token for each job: queue, task, both or none."""
        return tuple(kind for kind, limit in self._of(lane) if limit.rate is not None)

    def write(self) -> None:
        """Store the tokens that are left."""
        for (kind, name), limit in self._limits.items():
            if limit.rate is not None and limit.used:
                _store_bucket(self._database, kind, name, limit.bucket(limit.used))

    def _of(self, lane: Lane) -> list[tuple[str, _Limit]]:
        keys = [("queue", lane.queue), ("task", lane.task_name or "")]
        return [(key[0], self._limits[key]) for key in keys if key in self._limits]

    def _read(self, kind: str, names: Collection[str]) -> None:
        for name, rate_text, full_at, most, paused_at, now in _lock(self._database, kind, names):
            rate, slots = _rate(kind, name, rate_text), math.inf
            if paused_at is not None or (rate is None and rate_text is not None):
                slots = 0
            elif most is not None:
                slots = most - _running(self._database, kind, name)
            self._limits[kind, name] = _Limit(now, full_at, rate, slots)


def spend_retries(database: Database, tasks: Mapping[str, int]) -> dict[str, int]:
    """Take tokens from the retry budgets of tasks; for each how many of its retries they pay for.

    In the transaction that settles. A task without a stored budget retries freely.
    """
    paid = dict(tasks)
    for name, text, full_at, _, _, now in _lock(database, "task", tasks, _RETRIES):
        budget = _rate("task", name, text)
        if budget is not None:
            paid[name] = min(tasks[name], whole_tokens(budget.tokens(full_at, now)))
            full_at = budget.spend(full_at, now, paid[name])
            _store_bucket(database, "task", name, full_at, _RETRIES)
    return paid


def held_budgets(database: Database, tasks: Collection[str]) -> set[str]:
    """Those of the tasks whose retry budget somebody else has locked; the others are ours now."""
    named = {f"name{number}": name for number, name in enumerate(sorted(tasks))}
    sql = (
        f"SELECT name FROM {_by_name(database, TASKS)} WHERE namespace = %(namespace)s"  # noqa: S608
        f" AND name IN ({', '.join(f'%({name})s' for name in named)})"
    )
    free = database.fetch(f"{sql} ORDER BY name{database.for_update_of_free}", named)
    return {name for (name,) in database.fetch(sql, named)} - {name for (name,) in free}


def return_retries(database: Database, tasks: Mapping[str, int]) -> None:
    """Put tokens back that ``spend_retries`` has taken in this transaction, for naught."""
    _put_back(database, "task", tasks, _RETRIES)


def refund(database: Database, jobs: Collection[ClaimedJob]) -> None:
    """Give tokens back that were taken for jobs which never began.

    In the transaction that gives the jobs back. A limit that came after their claims has taken none
    for them.
    """
    for kind, names in (
        ("queue", Counter(job.queue for job in jobs if "queue" in job.paid_to)),
        ("task", Counter(job.task_name for job in jobs if "task" in job.paid_to)),
    ):
        _put_back(database, kind, names, _STARTS)


def _put_back(
    database: Database, kind: str, tokens: Mapping[str, int], bucket: tuple[str, str]
) -> None:
    for name, rate_text, full_at, _, _, now in _lock(database, kind, tokens, bucket):
        rate = _rate(kind, name, rate_text)
        if rate is not None:
            full_at = rate.spend(full_at, now, -tokens[name])
            _store_bucket(database, kind, name, full_at, bucket)


def _lock(
    database: Database, kind: str, names: Collection[str], bucket: tuple[str, str] = _STARTS
) -> list[tuple[Any, ...]]:
    """Name, rate, when its bucket is full, max_concurrent, paused_at, now; locked by name."""
    if not names:
        return []
    named = {f"name{number}": name for number, name in enumerate(sorted(names))}
    places = ", ".join(f"%({name})s" for name in named)
    paused = "paused_at" if kind == "queue" else "NULL"
    rate, full_at = bucket
    rows = database.fetch(
        f"SELECT name, {rate}, {full_at}, max_concurrent, {paused}, {{now}}"  # noqa: S608
        f" FROM {_by_name(database, _TABLES[kind])}"
        f" WHERE namespace = %(namespace)s AND name IN ({places})"
        f" ORDER BY name{database.for_update}",
        named,
    )
    read = database.read
    return [
        (name, text, read(full_at), most, read(paused_at), read(now))
        for name, text, full_at, most, paused_at, now in rows
    ]


def _rate(kind: str, name: str, text: str | None) -> RateLimit | None:
    if text is None:
        return None
    try:
        return parse_rate_limit("rate_limit", text)
    except InvalidLimitError as error:  # not written by us; better to start none than too many
        logger.error("%s %s: %s", kind, name, error)
        return None


def _running(database: Database, kind: str, name: str) -> int:
    # A statement of its own, after the lock: one that locked and counted would count what was there
    # before it had to wait for the lock.
    rows = database.fetch(
        f"SELECT COUNT(*) FROM {JOBS} WHERE namespace = %(namespace)s"  # noqa: S608
        f" AND lease_at > {{now}} AND {_COLUMNS[kind]} = %(name)s",
        {"name": name},
    )
    return int(rows[0][0])


def _store_bucket(
    database: Database,
    kind: str,
    name: str,
    full_at: datetime | None,
    bucket: tuple[str, str] = _STARTS,
) -> None:
    database.change(
        f"UPDATE {_by_name(database, _TABLES[kind])} SET {bucket[1]} = %(full_at)s"  # noqa: S608
        " WHERE namespace = %(namespace)s AND name = %(name)s",
        {"name": name, "full_at": None if full_at is None else database.moment(full_at)},
    )


def _by_name(database: Database, table: str) -> str:
    return f"{table}{database.by_index(f'{table}_name')}"
