"""What happens to runs that came due while nobody looked."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flexiq_django.core.cron import CronSchedule
from flexiq_django.core.misfire import MAX_COUNTED, FiringPlan, MisfirePolicy, plan_firing
from flexiq_django.exceptions import InvalidOptionError

NOON = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY_MINUTE = CronSchedule("* * * * *", "UTC")
EVERY_SECOND = CronSchedule("* * * * * *", "UTC")


def plan(
    schedule: CronSchedule = EVERY_MINUTE,
    *,
    due: datetime = NOON - timedelta(hours=3),
    now: datetime = NOON + timedelta(seconds=30),
    policy: MisfirePolicy = MisfirePolicy.SKIP,
    window: timedelta = timedelta(hours=1),
    **options: Any,
) -> FiringPlan:
    found = plan_firing(schedule, due=due, now=now, policy=policy, window=window, **options)
    assert found.next_run > now
    assert all(earlier < later for earlier, later in pairwise(found.occurrences))
    assert all(due <= at <= now for at in found.occurrences)
    return found


def test_nothing_fires_before_it_is_due() -> None:
    due = NOON + timedelta(minutes=5)

    assert plan(due=due, policy=MisfirePolicy.ALL) == FiringPlan(
        occurrences=(), missed=0, next_run=due
    )


# --- three hours without a scheduler: 181 runs from 09:00 to 12:00 are late at 12:00:30 -----------


def test_skip_fires_no_late_run() -> None:
    assert plan(policy=MisfirePolicy.SKIP) == FiringPlan(
        occurrences=(), missed=181, next_run=NOON + MINUTE
    )


def test_once_fires_the_latest_late_run() -> None:
    assert plan(policy=MisfirePolicy.ONCE) == FiringPlan(
        occurrences=(NOON,), missed=180, next_run=NOON + MINUTE
    )


def test_all_fires_the_late_runs_of_the_window() -> None:
    found = plan(policy=MisfirePolicy.ALL, window=timedelta(minutes=10))

    assert found.occurrences == tuple(NOON - number * MINUTE for number in range(9, -1, -1))
    assert found.missed == 171


def test_window_includes_its_edge() -> None:
    found = plan(policy=MisfirePolicy.ALL, now=NOON + MINUTE / 2, window=10.5 * MINUTE)

    assert found.occurrences[0] == NOON - 10 * MINUTE


def test_all_never_fires_what_was_not_due() -> None:
    due = NOON - 5 * MINUTE

    found = plan(policy=MisfirePolicy.ALL, due=due, window=timedelta(days=9))

    assert found.occurrences[0] == due
    assert len(found.occurrences) == 6


def test_once_takes_the_latest_run_however_old_it_is() -> None:
    yearly = CronSchedule("@yearly", "UTC")
    due = datetime(2026, 1, 1, tzinfo=UTC)

    assert plan(yearly, due=due, policy=MisfirePolicy.ONCE).occurrences == (due,)
    assert plan(yearly, due=due, policy=MisfirePolicy.ALL).occurrences == ()


@pytest.mark.parametrize("policy", MisfirePolicy)
def test_run_on_time_fires_under_every_policy(policy: MisfirePolicy) -> None:
    for age in (timedelta(0), timedelta(seconds=4), timedelta(seconds=10)):
        assert plan(due=NOON, now=NOON + age, policy=policy) == FiringPlan(
            occurrences=(NOON,), missed=0, next_run=NOON + MINUTE
        )


def test_run_just_past_on_time_is_late() -> None:
    late = NOON + timedelta(seconds=10, microseconds=1)

    assert plan(due=NOON, now=late, policy=MisfirePolicy.SKIP).missed == 1
    assert plan(due=NOON, now=late, policy=MisfirePolicy.SKIP, on_time=MINUTE).missed == 0


@pytest.mark.parametrize("policy", MisfirePolicy)
def test_every_second_loses_nothing_between_two_looks(policy: MisfirePolicy) -> None:
    fired: list[datetime] = []
    due = NOON
    for seconds in range(0, 60, 4):
        found = plan(EVERY_SECOND, due=due, now=NOON + timedelta(seconds=seconds), policy=policy)
        fired.extend(found.occurrences)
        due = found.next_run

    assert fired == [NOON + timedelta(seconds=number) for number in range(57)]


def test_stored_run_that_the_expression_does_not_name_still_fires() -> None:
    due = NOON + timedelta(seconds=7)

    found = plan(due=due, now=NOON + timedelta(seconds=9))

    assert found == FiringPlan(occurrences=(due,), missed=0, next_run=NOON + MINUTE)


def test_times_may_be_in_a_zone_whose_clock_changes() -> None:
    zone = ZoneInfo("America/New_York")
    due = datetime(2026, 11, 1, 1, 59, tzinfo=zone)
    now = datetime(2026, 11, 1, 1, 0, 5, tzinfo=zone, fold=1)  # 65 seconds later

    found = plan_firing(
        EVERY_MINUTE, due=due, now=now, policy=MisfirePolicy.SKIP, window=timedelta(0)
    )

    assert found.occurrences == (datetime(2026, 11, 1, 6, tzinfo=UTC),)
    assert found.missed == 1


# --- limits ---------------------------------------------------------------------------------------


def test_limit_keeps_the_latest_runs() -> None:
    found = plan(policy=MisfirePolicy.ALL, window=timedelta(hours=9), limit=5)

    assert found.occurrences == tuple(NOON - number * MINUTE for number in range(4, -1, -1))
    assert found.missed == 176


@pytest.mark.parametrize("now", [NOON, NOON + timedelta(microseconds=1), NOON + 0.7 * MINUTE])
@pytest.mark.parametrize(
    "expression", ["* * * * * *", "* * * * *", "*/7 */9 * * * *", "0 */2 * * *"]
)
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_limit_is_exact_for_any_density(expression: str, limit: int, now: datetime) -> None:
    schedule = CronSchedule(expression, "UTC")
    due = schedule.next_after(NOON - timedelta(hours=10))

    found = plan(schedule, due=due, now=now, policy=MisfirePolicy.ALL, window=timedelta(hours=10))
    short = plan(
        schedule,
        due=due,
        now=now,
        policy=MisfirePolicy.ALL,
        window=timedelta(hours=10),
        limit=limit,
    )

    assert short.occurrences == found.occurrences[-limit:]


def test_three_hours_of_seconds_are_counted() -> None:
    due = NOON - timedelta(hours=3)

    found = plan(EVERY_SECOND, due=due, now=NOON, policy=MisfirePolicy.SKIP, on_time=timedelta(0))

    assert found == FiringPlan(
        occurrences=(NOON,), missed=10_800, next_run=NOON + timedelta(seconds=1)
    )


@pytest.mark.parametrize("policy", MisfirePolicy)
def test_a_year_of_seconds_is_not_walked(policy: MisfirePolicy) -> None:
    year = timedelta(days=365)
    started = time.perf_counter()

    found = plan(EVERY_SECOND, due=NOON - year, now=NOON, policy=policy, window=year)

    assert time.perf_counter() - started < 5
    assert found.missed_is_capped
    assert MAX_COUNTED - 1000 < found.missed <= MAX_COUNTED
    assert found.occurrences[-1] == NOON
    assert len(found.occurrences) <= 1000


def test_count_that_just_fits_is_not_capped() -> None:
    due = NOON - timedelta(seconds=MAX_COUNTED - 1)
    options = {"now": NOON + timedelta(microseconds=1), "on_time": timedelta(0)}

    exact = plan(EVERY_SECOND, due=due, **options)
    more = plan(EVERY_SECOND, due=due - timedelta(seconds=1), **options)

    assert (exact.missed, exact.missed_is_capped) == (MAX_COUNTED, False)
    assert (more.missed, more.missed_is_capped) == (MAX_COUNTED, True)


@pytest.mark.parametrize(
    "options",
    [
        {"due": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"now": datetime(2026, 6, 1)},  # noqa: DTZ001
        {"window": timedelta(seconds=-1)},
        {"on_time": timedelta(seconds=-1)},
        {"limit": 0},
    ],
)
def test_bad_option_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=f"^{next(iter(options))} is"):
        plan(**options)
