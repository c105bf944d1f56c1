"""Why a pending job does not run: all the reasons there are at the moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from flexiq_django.core import fleet
from flexiq_django.core.lanes import Lane, lane_name
from flexiq_django.core.rates import RateLimit, whole_tokens
from flexiq_django.core.records import LiveWorker


class LimitState(NamedTuple):
    """A limit of a queue or a task. ``running``: jobs under it that run now."""

    kind: str
    name: str
    most: int | None
    running: int
    rate: RateLimit | None
    full_at: datetime | None


class SessionLine(NamedTuple):
    """The line of a session in which a job waits: who holds it, and the status of that job."""

    holder: UUID | None = None
    status: str = ""


class Waiting(NamedTuple):
    """What is known of a pending job and of what may hold it."""

    lane: Lane
    is_ready: bool
    due_at: datetime | None
    line: SessionLine | None
    open_dependencies: int
    is_paused: bool
    limits: Sequence[LimitState]
    live: Sequence[LiveWorker]
    now: datetime


def reasons(job: Waiting) -> list[tuple[str, str]]:
    """Codes, each with a sentence without its full stop; ``ready`` alone when nothing holds it."""
    found: list[tuple[str, str]] = []
    if job.due_at is not None:
        found.append(("due-later", _due(job.due_at, job.now)))
    elif job.line is not None:
        found.append(("session", _line(job.line)))
    elif not job.is_ready:
        found.append(("dependencies", _dependencies(job.open_dependencies)))
    if job.is_paused:
        found.append(("paused-queue", f"queue {job.lane.queue} is paused"))
    for limit in job.limits:
        found += _limit(limit, job.now)
    for each in fleet.unserved([lane_name(*job.lane)], paused=(), live=job.live):
        found.append((each.code, f"it is in queue {each.queue}{each.why}"))
    return found or [("ready", "it starts when a worker has a slot for it")]


def _due(due_at: datetime, now: datetime) -> str:
    seconds = (due_at - now).total_seconds()
    if seconds <= 0:
        return "it has become due, and the leader is about to make it ready"
    return f"it is due in {seconds:.0f} seconds"


def _dependencies(count: int) -> str:
    if count == 0:
        return "the jobs it waited for have ended, and it is about to be let go"
    return f"it waits for {'another job' if count == 1 else f'{count} jobs'} to end"


def _line(line: SessionLine) -> str:
    if line.holder is None:
        return "nobody holds the line of its session, and the next in it is about to go"
    return f"job {line.holder} holds the line of its session, and is {line.status}"


def _limit(limit: LimitState, now: datetime) -> list[tuple[str, str]]:
    found = []
    what = f"{limit.kind} {limit.name}"
    if limit.most is not None and limit.running >= limit.most:
        found.append(
            ("concurrency-limit", f"{limit.running} of {limit.most} jobs of {what} are running")
        )
    rate = limit.rate
    if rate is not None and whole_tokens(rate.tokens(limit.full_at, now)) < 1:
        seconds = rate.opens_in(limit.full_at, now)
        found.append(("rate-limit", f"the rate of {what} allows the next in {seconds:.0f} seconds"))
    return found
