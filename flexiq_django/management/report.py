"""What ``flexiq_info`` shows, as plain values in the shape of its JSON.

Its keys only ever become more: ``namespace``, ``database``, ``time`` (by the database's clock),
``stats`` (the six counts), ``oldest_ready_seconds``, ``queues`` (``name``, the counts, ``ready``,
``oldest_ready_seconds``, ``paused``, ``workers``), ``workers`` (``id``, ``hostname``, ``pid``,
``queues`` or ``null`` for all, ``executor``, ``concurrency``, ``deployment_id``, ``state``,
``version``, ``started_at``, ``heartbeat_at``, ``heartbeat_age_seconds``, ``turned_at``,
``turn_age_seconds``, ``clock_skew_ms``, ``config``), ``schedules`` (``name``, ``task_name``,
``cron``, ``timezone``, ``queue``, ``enabled``, ``next_run_at``, ``last_run_at``, ``missed``) and
``warnings`` (``code``, ``text``). A ``time`` or ``*_at`` is in Unix milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from flexiq_django.api.result import to_ms
from flexiq_django.conf import get_settings
from flexiq_django.core import fleet
from flexiq_django.core.ages import as_age
from flexiq_django.core.lanes import Lane, parse_lane
from flexiq_django.core.records import LiveWorker
from flexiq_django.core.status import COUNT_KEYS
from flexiq_django.store import figures, inspect, schedules, workers
from flexiq_django.store.scope import Scope

#: A schedule that has been due for longer than this, in seconds, is fired by nobody.
OVERDUE_SECONDS = 60
#: A claim loop that has not turned for longer than this, in seconds, hangs.
TURN_SECONDS = 60.0


def longest_turn() -> float:
    """Seconds between two turns of a claim loop that are no reason to worry.

    A loop that finds nothing turns at least every five seconds, or every ``POLL_SECONDS``.
    """
    return max(TURN_SECONDS, 3 * get_settings().POLL_SECONDS)


def collect(scope: Scope) -> dict[str, Any]:
    """Everything the command shows, in the shape of its JSON."""
    now = inspect.read_clock(scope)
    counts = figures.stats_by_queue(scope)
    lanes = [(parse_lane(each.name), each) for each in inspect.ready_lanes(scope)]
    paused = inspect.paused_queues(scope)
    live = workers.live(scope)
    due = schedules.listing(scope)
    names = {*counts, *paused, *(name for each in live for name in each.queues or ())}
    oldest = [each.oldest for _lane, each in lanes]
    return {
        "namespace": scope.namespace,
        "database": scope.using,
        "time": to_ms(now),
        "stats": {key: sum(each[key] for each in counts.values()) for key in COUNT_KEYS},
        "oldest_ready_seconds": _age(now, min(oldest)) if oldest else None,
        "queues": [
            _queue(name, counts.get(name), lanes, paused, live, now) for name in sorted(names)
        ],
        "workers": [_worker(each, now) for each in live],
        "schedules": [_schedule(each) for each in due],
        "warnings": [
            {"code": code, "text": text}
            for code, text in (
                *_unserved(lanes, paused, live),
                *_fleet(live),
                *_overdue(due, now),
            )
        ],
    }


def _age(now: datetime, then: datetime) -> float:
    return round(max(0.0, (now - then).total_seconds()), 3)


def _queue(
    name: str,
    counts: Mapping[str, int] | None,
    lanes: Sequence[tuple[Lane, inspect.ReadyLane]],
    paused: Sequence[str],
    live: Sequence[LiveWorker],
    now: datetime,
) -> dict[str, Any]:
    ready = [each for lane, each in lanes if lane.queue == name]
    return {
        "name": name,
        **(counts or dict.fromkeys(COUNT_KEYS, 0)),
        "ready": sum(each.jobs for each in ready),
        "oldest_ready_seconds": _age(now, min(each.oldest for each in ready)) if ready else None,
        "paused": name in paused,
        "workers": sum(each.is_running and each.serves(name) for each in live),
    }


def _worker(worker: LiveWorker, now: datetime) -> dict[str, Any]:
    return {
        "id": worker.id,
        "hostname": worker.hostname,
        "pid": worker.pid,
        "queues": None if worker.queues is None else list(worker.queues),
        "executor": worker.executor,
        "concurrency": worker.concurrency,
        "deployment_id": worker.deployment_id,
        "state": worker.state,
        "version": worker.version,
        "started_at": to_ms(worker.started_at),
        "heartbeat_at": to_ms(worker.heartbeat_at),
        "heartbeat_age_seconds": _age(now, worker.heartbeat_at),
        "turned_at": to_ms(worker.turned_at),
        "turn_age_seconds": round(worker.turn_age, 3),
        "clock_skew_ms": worker.clock_skew_ms,
        "config": worker.config,
    }


def _schedule(row: schedules.ScheduleRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "task_name": row.task_name,
        "cron": row.cron,
        "timezone": row.timezone,
        "queue": row.queue,
        "enabled": row.enabled,
        "next_run_at": to_ms(row.next_run_at),
        "last_run_at": to_ms(row.last_run_at),
        "missed": row.missed_count,
    }


# --- what looks wrong -----------------------------------------------------------------------------


def _unserved(
    lanes: Sequence[tuple[Lane, inspect.ReadyLane]],
    paused: Sequence[str],
    live: Sequence[LiveWorker],
) -> Iterable[tuple[str, str]]:
    names = [each.name for _lane, each in lanes]
    for found in fleet.unserved(names, paused=paused, live=live):
        jobs = sum(each.jobs for lane, each in lanes if lane[:2] == found.place)
        waiting = "1 job waits" if jobs == 1 else f"{jobs} jobs wait"
        yield found.code, f"{waiting} in queue {found.queue}{found.why}"


def _fleet(live: Sequence[LiveWorker]) -> Iterable[tuple[str, str]]:
    for worker in live:
        if worker.turn_age > longest_turn():
            hung = f"had not turned for {as_age(worker.turn_age)} at its last heartbeat"
            yield "claim-loop-hangs", f"the claim loop of worker {worker.id} {hung}"
    yield from fleet.disagreements(live)


def _overdue(due: Sequence[schedules.ScheduleRow], now: datetime) -> Iterable[tuple[str, str]]:
    for row in due:
        late = (now - row.next_run_at).total_seconds()
        if row.enabled and late > OVERDUE_SECONDS:
            told = f"schedule {row.name} has been due for {as_age(late)}"
            yield "schedule-overdue", f"{told}; is a worker alive whose code declares it?"
