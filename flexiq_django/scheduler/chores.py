"""The chores: promote, fire schedules, reap, expire, retry dead letters, find lost dependents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from flexiq_django.core.cron import CronSchedule
from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.misfire import FiringPlan, MisfirePolicy, plan_firing
from flexiq_django.core.records import AutoRetry, ClaimedJob, NewJob, Settlement
from flexiq_django.exceptions import FlexiQError, TaskRevokedError
from flexiq_django.store import (
    dependencies,
    promote,
    revive,
    schedules,
    sessions,
    settle,
    workers,
)
from flexiq_django.store.schedules import ScheduleRow
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Seconds between two looks for due jobs when none is known to be due sooner.
PROMOTE_SECONDS = 2.0
#: Seconds between two looks at the schedules when none is known to be due sooner.
SCHEDULE_SECONDS = 10.0
#: Seconds between two looks for leases that ran out.
REAP_SECONDS = 5.0
#: Seconds between two looks for pending jobs that are too late to start.
EXPIRE_SECONDS = 10.0
#: Seconds between two looks for dead letters that are to be retried.
RETRY_SECONDS = 10.0
#: Seconds between two looks for lost dependents.
NET_SECONDS = 30.0

#: What a row may raise that somebody wrote by hand; it must not stop the others.
_BAD_ROW = (FlexiQError, DatabaseError, ValueError, TypeError, ArithmeticError, LookupError)

Call = Callable[[Callable[[], Any]], Any]
Enqueued = Callable[[int], None]


def promote_due(scope: Scope, call: Call, on_ready: Enqueued) -> float:
    """Make due jobs ready; rest until the next is due."""
    moved, wait = call(lambda: promote.promote_due(scope))
    if moved:
        on_ready(moved)
    return PROMOTE_SECONDS if wait is None else min(PROMOTE_SECONDS, wait)


def expire(scope: Scope, call: Call, on_ready: Enqueued) -> float:
    """Cancel pending jobs that are too late to start."""
    moved: dependencies.Moved = call(lambda: promote.cancel_expired(scope))
    if moved.released:
        on_ready(moved.released)
    return 0.0 if moved.cancelled else EXPIRE_SECONDS


def reap(
    scope: Scope,
    call: Call,
    decide: Callable[[ClaimedJob], Settlement],
    on_settled: Callable[[Sequence[Settlement]], None],
    seconds: float = REAP_SECONDS,
    auto_retry: AutoRetry | None = None,
) -> float:
    """Take back jobs whose lease ran out: pending again, or dead when the budget is spent.

    Rests ``seconds`` when there is none.
    """
    settlements, outcome = call(lambda: settle.reap(scope, decide, auto_retry=auto_retry))
    for each in settlements:
        logger.warning(
            "lease of job %s (%s) ran out; now %s",
            each.job_id,
            each.task_name,
            each.status,
            extra={
                "job_id": str(each.job_id),
                "task_name": each.task_name,
                "queue": parse_lane(each.lane).queue,
            },
        )
    on_settled(settlements)
    return 0.0 if outcome.settled else seconds


def retry_dead(
    scope: Scope,
    call: Call,
    most: int,
    limited: Callable[[], Mapping[str, bool]],
    on_ready: Enqueued,
    seconds: float = RETRY_SECONDS,
) -> float:
    """Retry dead letters that are due, ``most`` times in a chain; rest ``seconds`` if none is."""
    due: list[UUID] = call(lambda: revive.due_letters(scope))
    if not due:
        return seconds

    def retry(letters: Sequence[UUID]) -> int:
        verb = partial(revive.retry_due, scope, letters, most=most, limited=limited())
        outcome: revive.Retried = call(verb)
        if outcome.revoked:
            logger.warning("%s dead letters of revoked tasks stay", len(outcome.revoked))
        return len(outcome.jobs)

    try:
        done = retry(due)
    except _BAD_ROW:
        done = 0
        for each in due:
            try:
                done += retry([each])
            except _BAD_ROW:
                logger.exception("dead letter %s cannot be retried", each)
                call(partial(revive.leave_letters, scope, [each]))
    if done:
        logger.info("%s dead letters retried", done)
        on_ready(done)
    return 0.0


def forget_workers(scope: Scope, call: Call) -> float:
    """Delete the rows of workers that have been gone for an hour."""
    call(lambda: workers.remove_gone(scope))
    return 600.0


class DependencyNet:
    """Finds dependents whose parent ended between their commit and their re-check."""

    def __init__(self, scope: Scope, call: Call, on_ready: Enqueued) -> None:
        self._scope, self._call, self._on_ready, self._after = scope, call, on_ready, 0

    def run(self) -> float:
        """Walk on over the open edges."""
        moved: dependencies.Moved
        self._after, moved = self._call(lambda: dependencies.sweep_ended(self._scope, self._after))
        if moved.released:
            self._on_ready(moved.released)
        return 1.0 if self._after else NET_SECONDS


class SessionNet:
    """Finds lines that nobody holds, as a process died between its commit and its look."""

    def __init__(self, scope: Scope, call: Call, on_ready: Enqueued) -> None:
        self._scope, self._call, self._on_ready, self._after = scope, call, on_ready, ""

    def run(self) -> float:
        """Walk on over the lines, without a rest until that is through."""
        self._after, moved = self._call(lambda: sessions.sweep(self._scope, self._after))
        if moved:
            self._on_ready(moved)
        return 0.0 if self._after else NET_SECONDS


class Periodic:
    """Fires the schedules that are due."""

    def __init__(
        self,
        scope: Scope,
        call: Call,
        build: Callable[[ScheduleRow, Sequence[datetime]], list[NewJob]],
        on_ready: Enqueued,
    ) -> None:
        self._scope, self._call, self._build, self._on_ready = scope, call, build, on_ready

    def run(self) -> float:
        """Fire what is due; rest until the next run."""
        ready, wait = self._call(lambda: schedules.due(self._scope))
        failed = False
        for row, now in ready:
            try:
                self._fire(row, now)
            except (FlexiQError, ValueError, TypeError, ArithmeticError, LookupError):
                # One bad row, whatever is wrong with it, must not stop the others.
                failed = True
                logger.exception("schedule %s cannot fire", row.name)
        if ready:
            return 1.0 if failed else 0.0
        return SCHEDULE_SECONDS if wait is None else min(SCHEDULE_SECONDS, wait)

    def _fire(self, row: ScheduleRow, now: datetime) -> None:
        plan = plan_firing(
            CronSchedule(expression=row.cron, timezone=row.timezone),
            due=row.next_run_at,
            now=now,
            policy=MisfirePolicy(row.misfire_policy),
            window=timedelta(milliseconds=row.misfire_window_ms),
        )
        jobs = self._build(row, plan.occurrences)
        try:
            fired = self._store(row, plan, jobs)
        except TaskRevokedError:
            logger.warning("schedule %s skips a run: %s is revoked", row.name, row.task_name)
            fired = self._store(row, plan, [])
        if fired:
            self._on_ready(len(fired))
        if plan.missed:
            at_least = "at least " if plan.missed_is_capped else ""
            logger.warning("schedule %s missed %s%s runs", row.name, at_least, plan.missed)

    def _store(self, row: ScheduleRow, plan: FiringPlan, jobs: list[NewJob]) -> list[UUID] | None:
        return self._call(  # type: ignore[no-any-return]
            lambda: schedules.fire(
                self._scope,
                row,
                jobs=jobs,
                last_run_at=plan.occurrences[-1] if plan.occurrences else None,
                next_run_at=plan.next_run,
                missed=plan.missed,
            )
        )
