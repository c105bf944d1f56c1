"""Figures: how many jobs stand where, and how long executions took. The database counts them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.status import COUNT_KEYS, JobStatus, count_key
from flexiq_django.models import PeriodicTask, QueueState, TaskMetric
from flexiq_django.store import inspect
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS

METRICS = TaskMetric._meta.db_table

#: Percentiles that are reported, in percent.
PERCENTILES = (50, 95, 99)


def stats(scope: Scope) -> dict[str, int]:
    """How many jobs of the namespace are in each state."""
    counts = dict.fromkeys(COUNT_KEYS, 0)
    for by_status in stats_by_queue(scope).values():
        for key, count in by_status.items():
            counts[key] += count
    return counts


#: Where jobs are counted: status, queue, and what holds. Each part reads one sparse index and no
#: rows, and a job is in exactly one part.
_PARTS = (
    ("idle_status", "queue", "idle_status IS NOT NULL"),
    ("'running'", "queue", "lease_at IS NOT NULL"),
    ("'pending'", "queue", "promote_at IS NOT NULL"),
    ("'pending'", "ready_lane", "ready_lane IS NOT NULL"),
)
_COUNT = " UNION ALL ".join(
    f"SELECT {status}, {queue}, COUNT(*) FROM {JOBS}"  # noqa: S608 - names are our own
    f" WHERE namespace = %(namespace)s AND {condition} GROUP BY 1, 2"
    for status, queue, condition in _PARTS
)


def stats_by_queue(scope: Scope) -> dict[str, dict[str, int]]:
    """The counts of every queue that has a job, all at one moment."""
    counts: dict[str, dict[str, int]] = {}
    for status, name, number in open_database(scope).fetch(_COUNT):
        queue = parse_lane(name).queue  # what is ready is counted by lane
        by_status = counts.setdefault(queue, dict.fromkeys(COUNT_KEYS, 0))
        # A paused job waits, for a person: the seven states fold into six counts.
        key = "pending" if status == JobStatus.PAUSED.value else count_key(status)
        by_status[key] += int(number)
    return counts


def by_status(scope: Scope, statuses: Collection[JobStatus]) -> dict[str, int]:
    """How many jobs have each of these statuses, in the words they are stored in."""
    names = {f"s{number}": status.value for number, status in enumerate(sorted(statuses))}
    places = ", ".join(f"%({name})s" for name in names)
    idle = f"idle_status IS NOT NULL AND idle_status IN ({places})"
    parts = [
        f"SELECT {status}, COUNT(*) FROM {JOBS}"  # noqa: S608 - names are our own
        f" WHERE namespace = %(namespace)s AND {idle if is_idle else condition} GROUP BY 1"
        for status, _queue, condition in _PARTS
        if (is_idle := status == "idle_status") or status.strip("'") in names.values()
    ]
    counts = dict.fromkeys(sorted(names.values()), 0)
    for status, number in open_database(scope).fetch(" UNION ALL ".join(parts), names):
        counts[status] += int(number)
    return counts


class Live(NamedTuple):
    """How many jobs of a queue have not ended, by what they do or wait for."""

    ready: int = 0
    #: For their time.
    later: int = 0
    #: For other jobs, or for their turn in a session.
    waiting: int = 0
    running: int = 0
    paused: int = 0


_LIVE = " UNION ALL ".join(
    f"SELECT {word}, {queue}, COUNT(*) FROM {JOBS}"  # noqa: S608 - names are our own
    f" WHERE namespace = %(namespace)s AND {condition} GROUP BY 1, 2"
    for word, queue, condition in (
        ("'ready'", "ready_lane", "ready_lane IS NOT NULL"),
        ("'later'", "queue", "promote_at IS NOT NULL"),
        ("'waiting'", "queue", "idle_status IS NOT NULL AND idle_status = 'pending'"),
        ("'running'", "queue", "lease_at IS NOT NULL"),
        ("'paused'", "queue", "idle_status IS NOT NULL AND idle_status = 'paused'"),
    )
)


def live_by_queue(scope: Scope) -> dict[str, Live]:
    """The jobs that have not ended, by queue; those that have are not even looked at."""
    counts: dict[str, dict[str, int]] = {}
    for word, name, number in open_database(scope).fetch(_LIVE):
        by_word = counts.setdefault(parse_lane(name).queue, {})
        by_word[word] = by_word.get(word, 0) + int(number)
    return {queue: Live(**by_word) for queue, by_word in counts.items()}


def known_queues(scope: Scope) -> tuple[set[str], list[tuple[str | None, str]]]:
    """Queues that are named in the tables that steer: of states, and of schedules.

    Schedules come as queue and task, as one without a queue of its own uses that of its task.
    """
    names = QueueState.objects.using(scope.using).filter(namespace=scope.namespace)
    schedules = PeriodicTask.objects.using(scope.using).filter(namespace=scope.namespace)
    return (
        set(names.values_list("name", flat=True)),
        list(schedules.order_by("name").values_list("queue", "task_name")),
    )


class Figures(NamedTuple):
    """What is known of a group of executions. Times in milliseconds."""

    group: Any
    total: int
    succeeded: int
    mean: float
    least: float
    most: float
    #: One for each of ``PERCENTILES``.
    percentiles: Sequence[float]


def since_when(scope: Scope, *, longest: timedelta, most: int) -> datetime:
    """The start of a span that reaches until now and holds at most about so many executions.

    ``longest`` ago where there were fewer. Reads at most so many entries of an index.
    """
    database = open_database(scope)
    rows = database.fetch(
        f"SELECT recorded_at FROM {METRICS} WHERE namespace = %(namespace)s"  # noqa: S608
        " ORDER BY recorded_at DESC LIMIT 1 OFFSET %(most)s",
        {"most": most},
    )
    start = inspect.read_clock(scope) - longest
    nearest = database.read(rows[0][0]) if rows else None
    return start if nearest is None else max(start, nearest)


def by_task(
    scope: Scope, *, since: datetime, task_name: str | None, before: datetime | None = None
) -> list[Figures]:
    """The executions recorded from ``since`` on, by task; with ``before`` only those until then."""
    return _grouped(scope, "task_name", since, before, task_name)


def by_bucket(
    scope: Scope,
    *,
    since: datetime,
    task_name: str | None,
    bucket_ms: int,
    before: datetime | None = None,
) -> list[Figures]:
    """The same by span of time: ``group`` is the number of the span, counted from ``since``."""
    spans = open_database(scope).spans_between("%(since)s", "recorded_at", "%(bucket_ms)s")
    return _grouped(scope, spans, since, before, task_name, bucket_ms=bucket_ms)


def _grouped(
    scope: Scope,
    group: str,
    since: datetime,
    before: datetime | None,
    task_name: str | None,
    **params: Any,
) -> list[Figures]:
    """Exact figures by ``group``, which is SQL; nothing but the figures leaves the database.

    The p-th percentile of n durations is the one with p * n // 100 smaller ones before it. In whole
    numbers, as databases divide differently: place is that when it is the last one with
    place * 100 <= p * n.
    """
    database = open_database(scope)
    places = ", ".join(
        f"MAX(CASE WHEN place * 100 <= total * {each} AND place * 100 + 100 > total * {each}"
        " THEN duration_ms END)"
        for each in PERCENTILES
    )
    narrowed = "" if task_name is None else " AND task_name = %(task_name)s"
    if before is not None:
        narrowed += " AND recorded_at < %(before)s"
        params["before"] = database.moment(before)
    rows = database.fetch(
        f"""
        WITH grouped AS (
            SELECT {group} AS who, duration_ms, succeeded FROM {METRICS}
            WHERE namespace = %(namespace)s AND recorded_at >= %(since)s{narrowed}),
        ranked AS (
            SELECT who, duration_ms, succeeded,
                   ROW_NUMBER() OVER (PARTITION BY who ORDER BY duration_ms) - 1 AS place,
                   COUNT(*) OVER (PARTITION BY who) AS total
            FROM grouped)
        SELECT who, COUNT(*), SUM(CASE WHEN succeeded THEN 1 ELSE 0 END), AVG(duration_ms),
               MIN(duration_ms), MAX(duration_ms), {places}
        FROM ranked GROUP BY who ORDER BY who
        """,  # noqa: S608 - names are our own
        {"since": database.moment(since), "task_name": task_name, **params},
    )
    return [
        Figures(group, int(total), int(succeeded), mean, least, most, percentiles)
        for group, total, succeeded, mean, least, most, *percentiles in rows
    ]
