"""When schedules fire, above all on the days the clock changes.

What is expected is worked out from zoneinfo by looking at every instant of the time walked.
"""

# ruff: noqa: DTZ001 - the days of the changes are wall clock days

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexiq_django.core.cron import CronSchedule
from flexiq_django.core.misfire import MisfirePolicy, plan_firing

QUARTER = timedelta(minutes=15)
TICK = timedelta(minutes=10)
YEARS = (2026, 2027)
#: One hour of daylight saving, the same counted backwards, half an hour.
ZONES = ("America/New_York", "Europe/Dublin", "Australia/Lord_Howe")

# --- two whole years, every quarter of an hour ----------------------------------------------------


@cache
def quarters(zone: str, year: int) -> list[tuple[datetime, datetime]]:
    """Every quarter of an hour of the year as (UTC, wall clock)."""
    first, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    count = (end - first) // QUARTER
    local = ZoneInfo(zone)
    return [
        (at, at.astimezone(local).replace(tzinfo=None, fold=0))
        for at in (first + number * QUARTER for number in range(count))
    ]


def every_time(shown: Callable[[datetime], bool]) -> Callable[[str, int], list[datetime]]:
    """Each instant at which the clock shows such a time, both passes included."""

    def expected(zone: str, year: int) -> list[datetime]:
        return [at for at, wall in quarters(zone, year) if shown(wall)]

    return expected


def once_a_day(
    hour: int, minute: int, on: Callable[[datetime], bool] = lambda day: True
) -> Callable[[str, int], list[datetime]]:
    """The first instant of each such day at which the clock shows the time or is past it."""

    def expected(zone: str, year: int) -> list[datetime]:
        found: dict[Any, datetime] = {}
        for at, wall in quarters(zone, year):
            if on(wall) and (wall.hour, wall.minute) >= (hour, minute):
                found.setdefault(wall.date(), at)
        start, end = quarters(zone, year)[0][1], quarters(zone, year)[-1][1]
        # A day cut off by the beginning of the UTC year began before the walk did.
        return [at for day, at in found.items() if day != start.date() or start.hour == 0] or [end]

    return expected


SCHEDULES = {
    "30 1 * * *": once_a_day(1, 30),
    "30 2 * * *": once_a_day(2, 30),
    "0 0 * * *": once_a_day(0, 0),
    "0 0 2 * * *": once_a_day(2, 0),
    "@daily": once_a_day(0, 0),
    "15 2 * * 0": once_a_day(2, 15, lambda day: day.isoweekday() == 7),
    "15 2 * * 7": once_a_day(2, 15, lambda day: day.isoweekday() == 7),
    "15 2 * * SUN": once_a_day(2, 15, lambda day: day.isoweekday() == 7),
    "45 1 1 * *": once_a_day(1, 45, lambda day: day.day == 1),
    "0 * * * *": every_time(lambda wall: wall.minute == 0),
    "30 * * * *": every_time(lambda wall: wall.minute == 30),
    "*/15 * * * *": every_time(lambda wall: True),
    "0 */2 * * *": every_time(lambda wall: wall.minute == 0 and wall.hour % 2 == 0),
}


def walk(schedule: CronSchedule, start: datetime, end: datetime) -> list[datetime]:
    """The runs that a scheduler fires which looks at the clock every ten minutes."""
    fired: list[datetime] = []
    due = schedule.next_after(start - timedelta(microseconds=1))
    while (now := start - (start - due) // TICK * TICK) < end:
        plan = plan_firing(schedule, due=due, now=now, policy=MisfirePolicy.ALL, window=TICK)
        assert plan.missed == 0
        assert plan.next_run > now
        fired.extend(plan.occurrences)
        due = plan.next_run
    return fired


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", SCHEDULES)
def test_a_year_has_no_double_run_and_no_gap(expression: str, zone: str, year: int) -> None:
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    schedule = CronSchedule(expression, zone)

    fired = walk(schedule, start, end)

    last_seen = end - TICK
    expected = [at for at in SCHEDULES[expression](zone, year) if at <= last_seen]
    assert fired == expected
    assert schedule.between(start - timedelta(seconds=1), last_seen, limit=10**6) == fired


# --- the rules at a change of the clock -----------------------------------------------------------

#: Gaps at midnight, of half an hour, of two hours and of a whole day; changes twice around Ramadan.
CHANGES = [
    ("America/New_York", datetime(2026, 3, 8)),
    ("America/New_York", datetime(2026, 11, 1)),
    ("Europe/Dublin", datetime(2026, 3, 29)),
    ("Europe/Dublin", datetime(2026, 10, 25)),
    ("Australia/Lord_Howe", datetime(2026, 4, 5)),
    ("Australia/Lord_Howe", datetime(2026, 10, 4)),
    ("Africa/Cairo", datetime(2026, 4, 24)),
    ("Africa/Cairo", datetime(2026, 10, 29)),
    ("America/Havana", datetime(2026, 3, 8)),
    ("America/Havana", datetime(2026, 11, 1)),
    ("Pacific/Chatham", datetime(2026, 4, 5)),
    ("Africa/Casablanca", datetime(2026, 2, 15)),
    ("Africa/Casablanca", datetime(2026, 3, 22)),
    ("Antarctica/Troll", datetime(2026, 3, 29)),
    ("Antarctica/Troll", datetime(2026, 10, 25)),
    ("Pacific/Apia", datetime(2011, 12, 30)),
    ("UTC", datetime(2026, 3, 8)),
]

NUMBERS = st.integers(0, 59)
MINUTES = st.one_of(
    st.just(("*", set(range(60)))),
    st.sampled_from([7, 15, 30]).map(lambda step: (f"*/{step}", set(range(0, 60, step)))),
    st.sets(NUMBERS, min_size=1, max_size=4).map(lambda found: (",".join(map(str, found)), found)),
)
HOURS = st.one_of(
    st.just(("*", set(range(24)))),
    st.sampled_from([2, 3]).map(lambda step: (f"*/{step}", set(range(0, 24, step)))),
    st.sets(st.integers(0, 4) | st.just(23), min_size=1, max_size=4).map(
        lambda found: (",".join(map(str, found)), found)
    ),
)


@cache
def minutes_around(zone: str, day: datetime) -> tuple[datetime, dict[datetime, list[datetime]]]:
    """Forty hours around a change: where they start, and the instants of each time shown."""
    start = (day - timedelta(hours=8)).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    shown: dict[datetime, list[datetime]] = {}
    for number in range(40 * 60):
        at = start + timedelta(minutes=number)
        wall = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        shown.setdefault(wall, []).append(at)
    return start, shown


def expected_runs(
    shown: dict[datetime, list[datetime]], hours: tuple[str, Any], minute: tuple[str, Any]
) -> list[datetime]:
    """The runs by the rules as they are documented, from a look at every minute."""
    measures_elapsed_time = "*" in hours[0] or "*" in minute[0]
    runs: set[datetime] = set()
    first, wall = min(shown), max(shown)
    after_it = shown[wall][0]
    while wall >= first:
        after_it = shown.get(wall, [after_it])[0]
        if wall.hour in hours[1] and wall.minute in minute[1]:
            if wall in shown:
                runs.update(shown[wall] if measures_elapsed_time else shown[wall][:1])
            elif "*" not in hours[0]:
                runs.add(after_it)
        wall -= timedelta(minutes=1)
    return sorted(runs)


@given(change=st.sampled_from(CHANGES), hours=HOURS, minute=MINUTES)
@settings(deadline=None, max_examples=60)
def test_runs_around_a_change_follow_the_rules(
    change: tuple[str, datetime], hours: tuple[str, Any], minute: tuple[str, Any]
) -> None:
    start, shown = minutes_around(*change)
    schedule = CronSchedule(f"{minute[0]} {hours[0]} * * *", change[0])

    end = start + timedelta(hours=39, minutes=59)
    runs = schedule.between(start - timedelta(seconds=1), end, limit=10_000)

    assert runs == expected_runs(shown, hours, minute)
    for run in runs[:: len(runs) // 10 + 1]:
        assert schedule.next_after(run - timedelta(microseconds=1)) == run
