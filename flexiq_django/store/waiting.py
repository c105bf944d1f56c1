"""What may hold one pending job: read without locks, so true at about one moment."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flexiq_django.core.lanes import Lane
from flexiq_django.core.rates import parse_rate_limit
from flexiq_django.core.waiting import LimitState, SessionLine, Waiting
from flexiq_django.exceptions import InvalidLimitError
from flexiq_django.models import Job, JobDependency, QueueState, TaskState
from flexiq_django.store import inspect, workers
from flexiq_django.store.scope import Scope


def look(scope: Scope, job_id: UUID) -> Waiting | None:
    """What is known of a job; ``None`` when it is not pending, or not there."""
    job = (
        Job.objects.using(scope.using)
        .filter(namespace=scope.namespace, id=job_id, status="pending")
        .values("queue", "task_name", "deployment_id", "ready_lane", "promote_at", "session_line")
        .first()
    )
    if job is None:
        return None
    queue = _gate(scope, QueueState, job["queue"])
    task = _gate(scope, TaskState, job["task_name"])
    edges = JobDependency.objects.using(scope.using).filter(job_id=job_id, is_open=True)
    return Waiting(
        lane=Lane(job["queue"], job["deployment_id"]),
        is_ready=job["ready_lane"] is not None,
        due_at=job["promote_at"],
        line=_line(scope, job["session_line"]),
        open_dependencies=edges.count(),
        is_paused=queue is not None and queue.paused_at is not None,
        limits=[
            _limit(scope, kind, row) for kind, row in (("queue", queue), ("task", task)) if row
        ],
        live=workers.live(scope),
        now=inspect.read_clock(scope),
    )


def _line(scope: Scope, session: str | None) -> SessionLine | None:
    if session is None:
        return None
    holder = (
        Job.objects.using(scope.using)
        .filter(namespace=scope.namespace, session_slot=session)
        .values_list("id", "status")
        .first()
    )
    return SessionLine() if holder is None else SessionLine(*holder)


def _gate(scope: Scope, model: Any, name: str) -> Any:
    return model.objects.using(scope.using).filter(namespace=scope.namespace, name=name).first()


def _limit(scope: Scope, kind: str, row: Any) -> LimitState:
    running = 0
    if row.max_concurrent is not None:
        column = "queue" if kind == "queue" else "task_name"
        now = inspect.read_clock(scope)
        held = Job.objects.using(scope.using).filter(namespace=scope.namespace, lease_at__gt=now)
        running = held.filter(**{column: row.name}).count()
    try:
        rate = row.rate_limit and parse_rate_limit("rate_limit", row.rate_limit)
    except InvalidLimitError:  # written by hand; claims let nothing through, and log it
        rate = None
    return LimitState(kind, row.name, row.max_concurrent, running, rate or None, row.rate_full_at)
