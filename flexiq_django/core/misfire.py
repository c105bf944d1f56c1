"""What to do about the runs of a schedule that came due: fire them, or count them as missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from flexiq_django.exceptions import InvalidOptionError

if TYPE_CHECKING:
    from flexiq_django.core.cron import CronSchedule

#: Counting stops here: a year of an every-second schedule is not walked.
MAX_COUNTED = 20_000
ON_TIME = timedelta(seconds=10)

_INSTANT = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)


class MisfirePolicy(StrEnum):
    """What happens to runs that are late because no scheduler was there when they were due."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


@dataclass(frozen=True, kw_only=True, slots=True)
class FiringPlan:
    """What one look at a schedule leads to.

    ``occurrences`` are the due times to enqueue a job for, oldest first. ``missed`` counts the late
    ones that do not fire; with ``missed_is_capped`` there were more than could be counted.
    ``next_run`` is after now.
    """

    occurrences: tuple[datetime, ...]
    missed: int
    next_run: datetime
    missed_is_capped: bool = False


def plan_firing(
    schedule: CronSchedule,
    *,
    due: datetime,
    now: datetime,
    policy: MisfirePolicy,
    window: timedelta,
    on_time: timedelta = ON_TIME,
    limit: int = 1000,
) -> FiringPlan:
    """Decide about the runs from ``due``, the stored next run, up to ``now``.

    Runs up to ``on_time`` old fire under every policy. Of the older, late ones ``SKIP`` fires none,
    ``ONCE`` the latest, ``ALL`` each that is at most ``window`` old. At most ``limit`` occurrences
    are returned, the latest ones. ``due`` counts as a run even if the expression does not name it
    (any more). Nothing fires before ``due``; it is then the next run.

    Raises ``InvalidOptionError`` for naive times, a negative duration or a limit below 1.
    """
    _check(due, now, window, on_time, limit)
    due, now = due.astimezone(UTC), now.astimezone(UTC)
    if due > now:
        return FiringPlan(occurrences=(), missed=0, next_run=due)
    runs = _Runs(schedule, due)
    edge = now - on_time - _INSTANT  # the last moment that is late
    punctual = runs.latest(edge, now, limit)
    late: list[datetime] = []
    room = limit - len(punctual)
    if policy is MisfirePolicy.ONCE:
        late = runs.latest(due - _INSTANT, edge, min(room, 1))
    elif policy is MisfirePolicy.ALL:
        late = runs.latest(max(due, now - window) - _INSTANT, edge, room)
    counted = len(runs.first(due - _INSTANT, edge, MAX_COUNTED + 1))
    return FiringPlan(
        occurrences=(*late, *punctual),
        missed=min(counted, MAX_COUNTED) - len(late),
        next_run=schedule.next_after(now),
        missed_is_capped=counted > MAX_COUNTED,
    )


class _Runs:
    """The runs of a schedule from ``due`` on, ``due`` included."""

    def __init__(self, schedule: CronSchedule, due: datetime) -> None:
        self._schedule = schedule
        self._due = due

    def first(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The first ``limit`` runs after ``after`` up to and including ``until``."""
        if limit < 1 or until < self._due:
            return []
        if after >= self._due:
            return self._schedule.between(after, until, limit=limit)
        return [self._due, *self._schedule.between(self._due, until, limit=limit - 1)]

    def latest(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The last ``limit`` runs after ``after`` up to and including ``until``, oldest first."""
        if limit < 1:
            return []
        found = self.first(after, until, limit + 1)
        if len(found) <= limit:
            return found
        # Runs are a second or more apart. Halve the time until one second separates a start that
        # gives too many from one that does not; the former then gives two too many at most.
        early, fitting = after, until
        while fitting - early > _SECOND:
            middle = early + (fitting - early) / 2
            if len(self.first(middle, until, limit + 1)) > limit:
                early = middle
            else:
                fitting = middle
        return self.first(early, until, limit + 3)[-limit:]


def _check(due: datetime, now: datetime, window: timedelta, on_time: timedelta, limit: int) -> None:
    for name, moment in (("due", due), ("now", now)):
        if moment.tzinfo is None:
            raise InvalidOptionError(f"{name} is {moment!r}; allowed are aware datetimes")
    for name, duration in (("window", window), ("on_time", on_time)):
        if duration < timedelta():
            raise InvalidOptionError(f"{name} is {duration!r}; allowed is 0 or more")
    if limit < 1:
        raise InvalidOptionError(f"limit is {limit!r}; allowed is 1 or more")
