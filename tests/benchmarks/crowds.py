"""The crowds of the flatness benchmark: many jobs of one kind, older than those a worker wants.

Imports models, so Django must be set up first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any

from django.db.models import Model

from flexiq_django.core.lanes import lane_name, parse_lane
from flexiq_django.models import Job, JobDependency, QueueState, TaskState
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from tests.store.crowd import job_fields, store

QUEUE = "mail"
#: Jobs that can be claimed beside every crowd, and are younger than it.
CLAIMABLE = 300
#: Rows of one insert; they share their due time.
CHUNK = 5_000

_DAY = timedelta(days=1)
_PAYLOAD = f'[["{"x" * 180}"],{{}}]'
_LIMITED = "app.tasks.limited"
_RUNNING = {"status": "running", "token": 1, "attempt": 1}


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """One kind of job. Moments among its columns are given as the time from now."""

    title: str
    #: Columns of its jobs beside those every job has; None: there are no such jobs.
    columns: dict[str, Any] | None = field(default_factory=dict)
    #: The lanes they stand in by turns, where they are ready.
    lanes: tuple[str, ...] = ()
    #: A pause or a limit, with its columns.
    gate: tuple[type[Model], dict[str, Any]] | None = None
    #: Columns of one running job that holds the others back.
    holder: dict[str, Any] = field(default_factory=dict)
    #: Which queues the worker serves; None: every queue.
    queues: tuple[str, ...] | None = None
    has_parent: bool = False
    #: Whether its jobs wait for others of their session.
    has_session: bool = False


def _crowds() -> Iterator[Crowd]:
    reports, limited = ("reports",), (lane_name(QUEUE, None, _LIMITED),)
    yield Crowd(title="none but finished jobs", columns=None)
    yield Crowd(title="ready, in the same queue", lanes=(QUEUE,))
    yield Crowd(title="ready, in 20 other queues", lanes=tuple(f"q{each}" for each in range(20)))
    yield Crowd(title="due in the future", columns={"promote_at": _DAY})
    paused = (QueueState, {"name": "reports", "paused_at": -_DAY})
    yield Crowd(title="in a paused queue", lanes=reports, gate=paused)
    yield Crowd(title="in a queue that is not served", lanes=reports, queues=(QUEUE,))
    yield Crowd(title="waiting for a parent", holder={"queue": "parents"}, has_parent=True)
    for word, limit in (
        ("rate", {"rate_limit": "1/h", "rate_full_at": _DAY}),
        ("concurrency", {"max_concurrent": 1}),
    ):
        has_slot = word == "concurrency"
        yield Crowd(
            title=f"in a queue at its {word} limit",
            lanes=reports,
            gate=(QueueState, {"name": "reports", **limit}),
            holder={"queue": "reports"} if has_slot else {},
        )
        task = {"task_name": _LIMITED}
        yield Crowd(
            title=f"of a task at its {word} limit",
            columns=task,
            lanes=limited,
            gate=(TaskState, {"name": _LIMITED, **limit}),
            holder=task if has_slot else {},
        )
    yield Crowd(title="behind others of their session", has_session=True)


CROWDS = tuple(_crowds())


def store_finished(scope: Scope, count: int) -> None:
    """So many completed jobs."""
    ended = {"status": "complete", "attempt": 1}
    for number, size in _chunks(count):
        at = datetime.now(UTC) - _DAY + timedelta(seconds=number)
        _store(scope, size, {**ended, "scheduled_at": at, "completed_at": at})


def store_crowd(scope: Scope, crowd: Crowd, count: int) -> None:
    """So many jobs of the crowd, what holds them back, and those that a worker can claim."""
    now = datetime.now(UTC)
    if crowd.gate:
        model, columns = crowd.gate
        row = {"namespace": scope.namespace, **_at(now, columns)}
        model._default_manager.using(scope.using).create(**row)
    if crowd.holder:
        _store(scope, 1, {**_RUNNING, "lease_at": now + _DAY, **crowd.holder})
    if crowd.columns is not None:
        lanes = cycle(crowd.lanes or (None,))
        for number, size in _chunks(count):
            at = now - _DAY / 2 + timedelta(seconds=number)
            lane = next(lanes)
            where = {"ready_lane": lane, "queue": parse_lane(lane).queue} if lane else {}
            if crowd.has_session:
                where = _join_session(scope, f"session-{number}", now)
            _store(scope, size, {"scheduled_at": at, **where, **_at(at, crowd.columns)})
    if crowd.has_parent:
        _add_edges(scope)
    _store(scope, CLAIMABLE, {"ready_lane": QUEUE, "scheduled_at": now})


def _join_session(scope: Scope, session: str, now: datetime) -> dict[str, Any]:
    """The columns of those behind the job that runs."""
    own = {"session_id": session, "session_slot": session}
    _store(scope, 1, {**_RUNNING, "lease_at": now + _DAY, **own})
    return {"session_id": session, "session_line": session}


def _add_edges(scope: Scope) -> None:
    database = open_database(scope)
    edges, jobs = JobDependency._meta.db_table, Job._meta.db_table
    true = database.true
    database.change(
        f"INSERT INTO {edges} (namespace, job_id, parent_id, is_open, allow_failure)"
        f" SELECT j.namespace, j.id, p.id, {true}, NOT {true} FROM {jobs} AS j"
        f" JOIN {jobs} AS p ON p.status = 'running' WHERE j.status = 'pending'"
    )


def _store(scope: Scope, count: int, columns: dict[str, Any]) -> None:
    base = {**job_fields(scope.namespace, datetime.now(UTC)), "payload": _PAYLOAD}
    store(Job, count, {**base, **columns}, scope=scope)


def _at(now: datetime, columns: dict[str, Any]) -> dict[str, Any]:
    return {
        name: now + value if isinstance(value, timedelta) else value
        for name, value in columns.items()
    }


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    """The number and the size of each, at least 20 so that there is one for every lane."""
    size = max(1, min(CHUNK, count // 20))
    for number, start in enumerate(range(0, count, size)):
        yield number, min(size, count - start)
