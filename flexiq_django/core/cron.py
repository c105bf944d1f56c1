"""When a schedule fires: a cron expression read on the clock of one time zone.

On the day the clock goes back, an expression that names its times fires at the first occurrence
only; one with a ``*`` in the hour, minute or second field measures elapsed time and fires in both
passes. On the day it goes forward, a named hour that is skipped fires once, at the first moment
after the gap (02:30 in New York on 2026-03-08 becomes 03:00 EDT, and so does any other time of the
skipped hour); an expression with a ``*`` in the hour field skips what does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from flexiq_django.core.cron_fields import CronFields, parse_expression
from flexiq_django.core.misfire import FiringPlan, MisfirePolicy, plan_firing
from flexiq_django.exceptions import InvalidOptionError, InvalidScheduleError

__all__ = [
    "ClockChange",
    "CronSchedule",
    "FiringPlan",
    "MisfirePolicy",
    "UpcomingRun",
    "plan_firing",
]

_SECOND = timedelta(seconds=1)


class ClockChange(StrEnum):
    """What a change of the clock does to a run."""

    #: The named time does not exist that day; the run is at the first moment after the gap.
    MOVED = "moved"
    #: The clock shows this time twice that day.
    REPEATED = "repeated"


@dataclass(frozen=True, kw_only=True, slots=True)
class UpcomingRun:
    """One run of a preview: the instant in UTC, the same in the zone, a mark for clock changes."""

    at: datetime
    local: datetime
    clock_change: ClockChange | None


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A cron expression and the IANA zone on whose clock it is read.

    Five fields are the usual ones, six have the seconds first; ``@daily`` and its like are known. 0
    and 7 are Sunday. Days match if either day field matches, when both are set.
    Raises ``InvalidScheduleError`` for an expression that cannot be read or never fires, for random
    and hashed fields, and for an unknown zone.
    """

    expression: str
    timezone: str
    _fields: CronFields = field(init=False, repr=False, compare=False)
    _zone: ZoneInfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_fields", parse_expression(self.expression))
        object.__setattr__(self, "_zone", _load_zone(self.timezone))

    def next_after(self, moment: datetime) -> datetime:
        """The first run strictly after ``moment``, in UTC.

        Raises ``InvalidOptionError`` for a naive ``moment`` and ``InvalidScheduleError`` when no
        run follows within 50 years.
        """
        moment = _as_utc(moment)
        local = moment.astimezone(self._zone)
        again = self._first_repeat(local)
        wall = self._fields.next_after(local.replace(tzinfo=None, fold=0))
        while wall is not None:
            for instant in self._instants(wall):
                if instant > moment:
                    return instant if again is None else min(instant, again)
            wall = self._fields.next_after(wall)
        raise InvalidScheduleError(
            f"{self.expression!r} has no run within 50 years after {moment.isoformat()}"
        )

    def between(self, after: datetime, until: datetime, *, limit: int) -> list[datetime]:
        """The runs after ``after`` up to and including ``until``, the first ``limit`` of them."""
        after, until = _as_utc(after), _as_utc(until)
        runs: list[datetime] = []
        while len(runs) < limit:
            after = self.next_after(after)
            if after > until:
                break
            runs.append(after)
        return runs

    def preview(self, after: datetime, count: int) -> list[UpcomingRun]:
        """The next ``count`` runs after ``after``, for people to read."""
        runs = []
        for _ in range(count):
            after = self.next_after(after)
            local = after.astimezone(self._zone)
            change = self._clock_change(local.replace(tzinfo=None, fold=0))
            runs.append(UpcomingRun(at=after, local=local, clock_change=change))
        return runs

    def _instants(self, wall: datetime) -> tuple[datetime, ...]:
        """When the clock shows ``wall``, as far as the schedule fires then."""
        first, second = self._offsets(wall)
        if first == second:
            return (_instant(wall, first),)
        if first > second:
            once = (_instant(wall, first),)
            return once if self._fields.names_times else (*once, _instant(wall, second))
        if not self._fields.names_hours:
            return ()
        return (self._transition(_instant(wall, second), _instant(wall, first)),)

    def _first_repeat(self, local: datetime) -> datetime | None:
        """The first run of the second pass, when ``local`` is in the first; else ``None``."""
        wall = local.replace(tzinfo=None, fold=0)
        first, second = self._offsets(wall)
        if first <= second or local.fold == 1 or self._fields.names_times:
            return None
        turn = self._transition(_instant(wall, first), _instant(wall, second))
        beginning = (turn + second).replace(tzinfo=None)
        found = self._fields.next_after(beginning - _SECOND)
        if found is None or found >= beginning + (first - second):
            return None
        return _instant(found, second)

    def _offsets(self, wall: datetime) -> tuple[timedelta, timedelta]:
        """The offset of a wall time on either side of a change.

        They differ only near one: the first is the larger if the clock shows the time twice, the
        smaller if it never does.
        """
        first = wall.replace(tzinfo=self._zone).utcoffset()
        second = wall.replace(tzinfo=self._zone, fold=1).utcoffset()
        return first or timedelta(), second or timedelta()

    def _transition(self, before: datetime, after: datetime) -> datetime:
        """The instant between the two at which the offset changes; changes come at full seconds."""
        offset = before.astimezone(self._zone).utcoffset()
        low, high = 0, int((after - before) / _SECOND) + 1
        while high - low > 1:
            middle = (low + high) // 2
            there = (before + middle * _SECOND).astimezone(self._zone)
            low, high = (middle, high) if there.utcoffset() == offset else (low, middle)
        return before.replace(microsecond=0) + high * _SECOND

    def _clock_change(self, wall: datetime) -> ClockChange | None:
        first, second = self._offsets(wall)
        if first > second:
            return ClockChange.REPEATED
        if self._fields.next_after(wall - _SECOND) != wall:
            return ClockChange.MOVED
        return None


def _as_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InvalidOptionError(f"{moment!r} is naive; a schedule needs an aware datetime")
    return moment.astimezone(UTC)


def _instant(wall: datetime, offset: timedelta) -> datetime:
    return (wall - offset).replace(tzinfo=UTC)


def _load_zone(name: str) -> ZoneInfo:
    try:
        if name:
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        pass
    known = {zone.lower(): zone for zone in available_timezones()}
    near = get_close_matches(str(name).lower(), known, n=1)
    hint = f"; did you mean {known[near[0]]!r}?" if near else ", such as 'Europe/Warsaw' or 'UTC'"
    raise InvalidScheduleError(f"{name!r} is not a time zone; allowed are IANA names{hint}")
