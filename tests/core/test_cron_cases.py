"""Single moments at which a schedule has to do the right thing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flexiq_django.core.cron import ClockChange, CronSchedule
from flexiq_django.core.misfire import MisfirePolicy, plan_firing
from flexiq_django.exceptions import InvalidOptionError, InvalidScheduleError


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]


def test_daily_time_shown_twice_fires_at_the_first() -> None:
    schedule = CronSchedule("30 1 * * *", "America/New_York")

    assert schedule.between(utc(2026, 10, 31, 6), utc(2026, 11, 3), limit=9) == [
        utc(2026, 11, 1, 5, 30),  # 01:30 EDT; not again at 06:30, which is 01:30 EST
        utc(2026, 11, 2, 6, 30),
    ]


def test_hourly_schedule_fires_in_both_passes() -> None:
    schedule = CronSchedule("0 * * * *", "America/New_York")

    runs = schedule.between(utc(2026, 11, 1, 3), utc(2026, 11, 1, 9), limit=9)

    assert runs == [utc(2026, 11, 1, hour) for hour in range(4, 10)]


def test_minutes_that_repeat_inside_a_named_hour_fire_in_both_passes() -> None:
    schedule = CronSchedule("*/20 1 * * *", "America/New_York")

    assert len(schedule.between(utc(2026, 11, 1), utc(2026, 11, 2), limit=9)) == 6


@pytest.mark.parametrize("started_at", [utc(2026, 3, 8), utc(2026, 3, 8, 6, 59, 59)])
def test_daily_time_in_the_gap_fires_right_after_it(started_at: datetime) -> None:
    schedule = CronSchedule("30 2 * * *", "America/New_York")

    assert schedule.next_after(started_at) == utc(2026, 3, 8, 7)  # 03:00 EDT
    assert schedule.next_after(utc(2026, 3, 8, 7)) == utc(2026, 3, 9, 6, 30)  # 02:30 EDT again


def test_late_scheduler_still_fires_the_run_of_the_gap_once() -> None:
    schedule = CronSchedule("30 2 * * *", "America/New_York")
    plan = plan_firing(
        schedule,
        due=schedule.next_after(utc(2026, 3, 8)),
        now=utc(2026, 3, 8, 7, 10),
        policy=MisfirePolicy.ONCE,
        window=timedelta(hours=1),
    )

    assert plan.occurrences == (utc(2026, 3, 8, 7),)
    assert plan.next_run == utc(2026, 3, 9, 6, 30)


def test_every_time_in_the_gap_makes_one_run() -> None:
    schedule = CronSchedule("*/15 2 * * *", "America/New_York")

    assert schedule.between(utc(2026, 3, 8), utc(2026, 3, 9), limit=9) == [utc(2026, 3, 8, 7)]


def test_moment_between_two_seconds_of_the_second_pass() -> None:
    schedule = CronSchedule("0 * * * *", "America/New_York")

    assert schedule.next_after(utc(2026, 11, 1, 5, 0, 0, 1)) == utc(2026, 11, 1, 6)
    assert schedule.next_after(utc(2026, 11, 1, 5, 59, 59, 999_999)) == utc(2026, 11, 1, 6)
    assert schedule.next_after(utc(2026, 11, 1, 6, 0, 0, 1)) == utc(2026, 11, 1, 7)


def test_moment_may_be_in_any_zone() -> None:
    schedule = CronSchedule("25 8 * * *", "Asia/Jakarta")
    moment = datetime(2026, 5, 1, 3, tzinfo=ZoneInfo("Europe/Warsaw"))

    assert schedule.next_after(moment) == utc(2026, 5, 1, 1, 25)
    assert schedule.next_after(moment).tzinfo is UTC


@pytest.mark.parametrize("call", ["next_after", "between", "preview"])
def test_naive_moment_is_refused(call: str) -> None:
    schedule = CronSchedule("* * * * *", "UTC")
    moment = datetime(2026, 1, 1)  # noqa: DTZ001
    arguments: dict[str, Callable[[], Any]] = {
        "next_after": lambda: schedule.next_after(moment),
        "between": lambda: schedule.between(utc(2026, 1, 1), moment, limit=1),
        "preview": lambda: schedule.preview(moment, 1),
    }

    with pytest.raises(InvalidOptionError, match="aware"):
        arguments[call]()


def test_preview_marks_what_a_change_of_the_clock_does() -> None:
    gap = CronSchedule("30 2 * * *", "America/New_York").preview(utc(2026, 3, 7), 3)
    overlap = CronSchedule("30 1 * * *", "America/New_York").preview(utc(2026, 10, 31), 3)

    assert [run.clock_change for run in gap] == [None, ClockChange.MOVED, None]
    assert [run.local.isoformat() for run in gap][1] == "2026-03-08T03:00:00-04:00"
    assert [run.clock_change for run in overlap] == [None, ClockChange.REPEATED, None]
    assert overlap[1].at == utc(2026, 11, 1, 5, 30)


def test_between_leaves_out_its_beginning_and_takes_its_end() -> None:
    schedule = CronSchedule("0 * * * *", "UTC")

    assert schedule.between(utc(2026, 1, 1), utc(2026, 1, 1, 2), limit=9) == [
        utc(2026, 1, 1, 1),
        utc(2026, 1, 1, 2),
    ]
    assert schedule.between(utc(2026, 1, 1), utc(2026, 1, 1, 2), limit=1) == [utc(2026, 1, 1, 1)]
    assert schedule.between(utc(2026, 1, 1), utc(2025, 1, 1), limit=9) == []
    assert schedule.between(utc(2026, 1, 1), utc(2027, 1, 1), limit=0) == []


def test_end_of_time_is_a_named_error() -> None:
    with pytest.raises(InvalidScheduleError, match="50 years"):
        CronSchedule("0 0 1 1 *", "UTC").next_after(utc(9999, 6, 1))


def test_schedules_are_equal_by_expression_and_zone() -> None:
    assert CronSchedule("@daily", "UTC") == CronSchedule(expression="@daily", timezone="UTC")
    assert CronSchedule("@daily", "UTC") != CronSchedule("@daily", "Europe/Warsaw")
    assert len({CronSchedule("@daily", "UTC"), CronSchedule("@daily", "UTC")}) == 1
