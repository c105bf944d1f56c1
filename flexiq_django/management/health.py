"""What ``flexiq_health`` judges, as plain values in the shape of its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flexiq_django.api.result import to_ms
from flexiq_django.core.ages import as_age
from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.records import LiveWorker
from flexiq_django.store import inspect, workers
from flexiq_django.store.scope import Scope

Problem = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a healthy state looks like. Times are seconds; ``None`` does not judge."""

    queues: tuple[str, ...] | None = None
    worker: str | None = None
    host: str | None = None
    min_workers: int = 1
    max_age: float | None = None
    max_turn_age: float = 60.0

    @property
    def is_local(self) -> bool:
        """Whether one worker or host is judged, not the fleet."""
        return self.worker is not None or self.host is not None


def judge(scope: Scope, expected: Expected) -> dict[str, Any]:
    """Whether the state is as expected, and why not. Raises ``DatabaseError``."""
    now = inspect.read_clock(scope)
    # Counting a long backlog takes time, which a probe of one host need not spend.
    ages = {} if expected.max_age is None else _ages(scope, now, expected.queues)
    meant = [each for each in workers.live(scope) if _is_meant(each, expected)]
    problems = [*_of_workers(meant, expected), *_of_jobs(ages, expected)]
    return {
        **answer(scope, problems),
        "time": to_ms(now),
        "workers": len(meant),
        "oldest_ready_seconds": round(max(ages.values()), 3) if ages else None,
    }


def answer(scope: Scope, problems: Sequence[Problem]) -> dict[str, Any]:
    """The shape of every answer; what needs the database is ``None``."""
    return {
        "healthy": not problems,
        "namespace": scope.namespace,
        "database": scope.using,
        "time": None,
        "workers": None,
        "oldest_ready_seconds": None,
        "reasons": [{"code": code, "text": text} for code, text in problems],
    }


def count_of(number: int, thing: str) -> str:
    """A number of things in words."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _ages(scope: Scope, now: datetime, queues: Sequence[str] | None) -> dict[str, float]:
    """How long the job has been ready in each queue that waits longest there, in seconds."""
    paused = inspect.paused_queues(scope)
    ages: dict[str, float] = {}
    for each in inspect.ready_lanes(scope):
        queue = parse_lane(each.name).queue
        if queue not in paused and (queues is None or queue in queues):
            age = max(0.0, (now - each.oldest).total_seconds())
            ages[queue] = max(age, ages.get(queue, 0.0))
    return ages


def _is_meant(worker: LiveWorker, expected: Expected) -> bool:
    return expected.worker in (None, worker.id) and expected.host in (None, worker.hostname)


def _of_workers(meant: Sequence[LiveWorker], expected: Expected) -> Iterable[Problem]:
    for worker in meant:
        if worker.turn_age > expected.max_turn_age:
            since = f"had not turned for {as_age(worker.turn_age)} at its last heartbeat"
            yield "claim-loop-hangs", f"the claim loop of worker {worker.id} {since}"
    where = f" on host {expected.host}" if expected.host else ""
    if expected.worker is not None and not meant:
        yield "too-few-workers", f"worker {expected.worker} is not alive{where}"
        return
    well = [each for each in meant if each.turn_age <= expected.max_turn_age]
    for queue in expected.queues or (None,):
        there = [each for each in well if queue is None or each.serves(queue)]
        # A fleet that only drains does no work. One worker that drains is alive, and no probe of
        # its life may end it for that.
        able = there if expected.is_local else [each for each in there if each.is_running]
        if len(able) < expected.min_workers:
            served = f" and serving queue {queue}" if queue else ""
            wanted = f"{expected.min_workers} expected"
            draining = len(there) - len(able)
            leaving = f"; {draining} draining" if draining else ""
            found = f"{count_of(len(able), 'worker')} well{where}{served}"
            yield "too-few-workers", f"{found}, {wanted}{leaving}"


def _of_jobs(ages: dict[str, float], expected: Expected) -> Iterable[Problem]:
    for queue, age in sorted(ages.items()):
        if expected.max_age is not None and age > expected.max_age:
            limit = f"more than {as_age(expected.max_age)}"
            yield "old-job", f"a job of queue {queue} has been ready for {as_age(age)}, {limit}"
