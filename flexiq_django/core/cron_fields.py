"""A cron expression on the wall clock: no zone, no daylight saving.

croniter reads the expression and picks the days; the time of day is found here: croniter takes some
40 us a step, and counting three hours of an every-second schedule takes 10,800 steps.
"""

from __future__ import annotations

import copy
import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from croniter import croniter

from flexiq_django.exceptions import InvalidScheduleError

MAX_LENGTH = 200

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day of month": "1-31, L, 15W",
    "month": "1-12 or JAN-DEC",
    "day of week": "0-7 (0 and 7 are Sunday) or SUN-SAT, MON#2, L5",
}
_RANDOM = re.compile(r"[hr]([(/]|$)")
_EQUAL_RANGE = re.compile(r"(\w+)-\1(/|$)")
_EVERY_DAY = "0 0 * * *"
_TICK = timedelta(seconds=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class CronFields:
    """A parsed expression. ``days`` is the expression for midnight of each day it runs on.

    ``names_hours`` is false with a ``*`` in the hour field. ``names_times`` is false with a ``*``
    in the hour, minute or second field.
    """

    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    days: str
    names_hours: bool
    names_times: bool

    def next_after(self, wall: datetime) -> datetime | None:
        """The first match after ``wall`` (naive); ``None`` if there is none within 50 years."""
        day = _first_day(self.days, wall.date())
        if day == wall.date():
            found = self._time_after(wall.hour, wall.minute, wall.second)
            if found is not None:
                return datetime.combine(day, found)
            day = _first_day(self.days, day + _DAY) if day < date.max else None
        if day is None:
            return None
        return datetime.combine(day, time(self.hours[0], self.minutes[0], self.seconds[0]))

    def _time_after(self, hour: int, minute: int, second: int) -> time | None:
        if hour in self.hours:
            if minute in self.minutes and second < self.seconds[-1]:
                return time(hour, minute, self.seconds[bisect_right(self.seconds, second)])
            if minute < self.minutes[-1]:
                later = self.minutes[bisect_right(self.minutes, minute)]
                return time(hour, later, self.seconds[0])
        if hour < self.hours[-1]:
            later = self.hours[bisect_right(self.hours, hour)]
            return time(later, self.minutes[0], self.seconds[0])
        return None


def parse_expression(expression: object) -> CronFields:
    """The fields of an expression: five usual ones, six with the seconds first, or ``@daily``.

    Raises ``InvalidScheduleError`` saying what is wrong and what is allowed.
    """
    if not isinstance(expression, str) or not expression.isascii():
        raise InvalidScheduleError(f"a cron expression is ASCII text, not {expression!r}")
    if len(expression) > MAX_LENGTH:
        raise InvalidScheduleError(
            f"the cron expression has {len(expression)} characters; at most {MAX_LENGTH} allowed"
        )
    return _parse(expression)


@lru_cache(maxsize=1024)
def _parse(expression: str) -> CronFields:
    fields = _split(expression)
    _check_words(expression, fields)
    expanded = _expand(expression, fields)
    unbounded = [
        "*" in field or values == ["*"]
        for field, values in zip(fields[:3], (expanded[5], expanded[0], expanded[1]), strict=True)
    ]
    parsed = CronFields(
        seconds=_values(expanded[5], 60),
        minutes=_values(expanded[0], 60),
        hours=_values(expanded[1], 24),
        days=" ".join(["0 0", *fields[3:]]),
        names_hours=not unbounded[2],
        names_times=not any(unbounded),
    )
    # Which days match repeats with the Gregorian calendar, and croniter searches 50 years.
    if _first_day(parsed.days, date(2000, 1, 1)) is None:
        raise InvalidScheduleError(
            f"{expression!r} never fires: no such day exists (day of month {fields[3]!r}, "
            f"month {fields[4]!r}, day of week {fields[5]!r})"
        )
    return parsed


def _split(expression: str) -> list[str]:
    """Six lower-case fields, seconds first."""
    text = expression.strip().lower()
    if text.startswith("@"):
        if text not in _NAMED:
            raise InvalidScheduleError(
                f"{expression!r} is not a named schedule; allowed are {', '.join(_NAMED)}"
            )
        text = _NAMED[text]
    fields = text.split()
    if len(fields) == 5:
        return ["0", *fields]
    if len(fields) != 6:
        raise InvalidScheduleError(
            f"{expression!r} has {len(fields)} fields; allowed are five (minute, hour, day of "
            "month, month, day of week) or six (second first); there is no year field"
        )
    return fields


def _check_words(expression: str, fields: list[str]) -> None:
    """Refuse what croniter takes and a reader would not expect."""
    for name, field in zip(_FIELDS, fields, strict=True):
        for word in field.split(","):
            if _RANDOM.match(word):
                raise InvalidScheduleError(
                    f"{expression!r}: random (R) and hashed (H) values are not supported; "
                    f"the {name} field is {field!r}"
                )
            if _EQUAL_RANGE.match(word):  # croniter: the whole cycle; other crons: one value
                raise InvalidScheduleError(
                    f"{expression!r}: the range {word!r} in the {name} field has equal ends; "
                    f"write {word.partition('-')[0]!r} for one value or '*' for all"
                )


def _expand(expression: str, fields: list[str]) -> list[list[int | str]]:
    """The values of each field, in croniter's order: the seconds last."""
    expanded = _try_expand(fields)
    if expanded is not None:
        return expanded
    for index, (name, allowed) in enumerate(_FIELDS.items()):
        alone = ["*"] * len(fields)
        alone[index] = fields[index]
        if _try_expand(alone) is None:
            raise InvalidScheduleError(
                f"{expression!r}: the {name} field {fields[index]!r} is not understood; allowed "
                f"are {allowed}, * for all, lists (1,2), ranges (1-5) and steps (*/5)"
            )
    raise InvalidScheduleError(f"{expression!r}: these fields cannot be combined")


def _try_expand(fields: list[str]) -> list[list[int | str]] | None:
    try:
        # The constructor takes a start; without one it would read the clock.
        found = croniter(" ".join(fields), datetime(2000, 1, 1), second_at_beginning=True)  # noqa: DTZ001
    except (ValueError, TypeError, LookupError):  # CroniterError is a ValueError
        return None
    return [list(values) for values in found.expanded]


def _values(expanded: list[int | str], size: int) -> tuple[int, ...]:
    if expanded == ["*"]:
        return tuple(range(size))
    return tuple(sorted(int(value) for value in expanded))


@lru_cache(maxsize=4096)
def _first_day(days: str, day: date) -> date | None:
    """The first day from ``day`` on that matches; ``None`` if none does within 50 years."""
    if days == _EVERY_DAY:
        return day
    # A copy, because croniter keeps its place in itself and threads share the parsed one.
    cursor = copy.copy(_calendar(days))
    try:
        found = cursor.get_next(datetime, start_time=datetime.combine(day, time()) - _TICK)
    except (ValueError, OverflowError):  # CroniterError is a ValueError; so is the year 10000
        return None
    return found.date()


@lru_cache(maxsize=1024)
def _calendar(days: str) -> croniter[datetime]:
    return croniter(days, datetime(2000, 1, 1), datetime)  # noqa: DTZ001
