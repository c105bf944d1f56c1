"""The chore that fires the schedules."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from flexiq_django.core.cron import CronSchedule
from flexiq_django.core.misfire import FiringPlan, MisfirePolicy, plan_firing
from flexiq_django.core.records import NewJob
from flexiq_django.exceptions import TaskRevokedError
from flexiq_django.scheduler.chores import BAD_ROW, Call, Enqueued
from flexiq_django.scheduler.loop import Blocked
from flexiq_django.scheduler.pauses import GrowingPause
from flexiq_django.store import schedules
from flexiq_django.store.schedules import ScheduleRow
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Seconds between two looks at the schedules when none is known to be due sooner.
SCHEDULE_SECONDS = 10.0
#: First and longest pause before a schedule that cannot fire is tried again, in seconds.
_BAD_ROW_PAUSES = (1.0, 60.0)
#: The same for one that another transaction holds up.
_BLOCKED_PAUSES = (1.0, 5.0)


class _Trouble:
    """A schedule that could not fire: as it was then, why, and when it is tried again."""

    def __init__(self, row: ScheduleRow, error: Exception) -> None:
        self.row = row
        self._kind = type(error)  # its text may name an id that is new each time
        self._pause = GrowingPause(*_pauses(error))
        self._again_at = time.monotonic() + self._pause.longer()

    @property
    def rest(self) -> float:
        """The seconds until it is tried again."""
        return max(0.0, self._again_at - time.monotonic())

    def goes_on(self, row: ScheduleRow, error: Exception) -> bool:
        """Whether this is the same again; then the next pause is longer."""
        if (row, type(error)) != (self.row, self._kind):
            return False
        self._again_at = time.monotonic() + self._pause.longer()
        return True


class Periodic:
    """Fires the schedules that are due, and walks past those that cannot fire."""

    def __init__(
        self,
        scope: Scope,
        call: Call,
        build: Callable[[ScheduleRow, Sequence[datetime]], list[NewJob]],
        on_ready: Enqueued,
    ) -> None:
        self._scope, self._call, self._build, self._on_ready = scope, call, build, on_ready
        self._after: schedules.Place | None = None
        self._has_fired = False
        self._troubles: dict[int, _Trouble] = {}
        #: Those of them that this walk has met: the others are gone, or fine again.
        self._met: set[int] = set()

    def run(self) -> float:
        """Fire one page of what is due; rest until the next run once all were looked at."""
        due: schedules.Due = self._call(lambda: schedules.due(self._scope, after=self._after))
        for row, now in due.ready:
            if self._try(row, now):
                # It took a second: the other chores have a turn before the next one does.
                self._after = (row.next_run_at, row.id)
                return 0.0
        self._after = due.after
        if due.after is not None:
            return 0.0
        has_fired = self._end_walk()
        if has_fired:
            return 0.0  # what has just fired may be due again
        # Not one by one: a thousand bad rows are read no more often than one.
        rests = [max(_BAD_ROW_PAUSES[0], each.rest) for each in self._troubles.values()]
        return min([SCHEDULE_SECONDS, *rests, *([due.wait] if due.wait else [])])

    def _end_walk(self) -> bool:
        """Forget troubles that are over; whether any schedule has fired in this walk."""
        self._troubles = {key: self._troubles[key] for key in self._met}
        self._met = set()
        has_fired, self._has_fired = self._has_fired, False
        return has_fired

    def _try(self, row: ScheduleRow, now: datetime) -> bool:
        """Fire it if it can fire; whether another transaction is in the way."""
        trouble = self._troubles.get(row.id)
        if trouble is not None and trouble.row == row and trouble.rest:
            self._met.add(row.id)
            return False
        try:
            self._fire(row, now)
            self._has_fired = True
        except (*BAD_ROW, Blocked) as error:  # whatever is wrong with it must not stop the others
            self._met.add(row.id)
            if trouble is None or not trouble.goes_on(row, error):
                self._troubles[row.id] = _Trouble(row, error)
                _report(row, error)
            return isinstance(error, Blocked)
        return False

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


def _pauses(error: Exception) -> tuple[float, float]:
    return _BLOCKED_PAUSES if isinstance(error, Blocked) else _BAD_ROW_PAUSES


def _report(row: ScheduleRow, error: Exception) -> None:
    if isinstance(error, Blocked):
        logger.warning("schedule %s waits for another transaction (%s)", row.name, error)
    else:
        logger.error("schedule %s cannot fire", row.name, exc_info=error)
