"""Which expressions are understood, how, and what is said about the others."""

from __future__ import annotations

# ruff: noqa: DTZ001 - the wall clock has no zone
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from croniter import croniter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flexiq_django.core.cron import CronSchedule
from flexiq_django.core.cron_fields import parse_expression
from flexiq_django.exceptions import InvalidScheduleError


def next_runs(expression: str, count: int = 3, zone: str = "UTC") -> list[str]:
    moment = datetime(2026, 1, 1, 0, 0, tzinfo=UTC)
    runs = []
    for _ in range(count):
        moment = CronSchedule(expression, zone).next_after(moment)
        runs.append(f"{moment:%m-%d %H:%M:%S}")
    return runs


@pytest.mark.parametrize(
    ("expression", "runs"),
    [
        ("0 2 * * *", ["01-01 02:00:00", "01-02 02:00:00", "01-03 02:00:00"]),
        ("0 0 2 * * *", ["01-01 02:00:00", "01-02 02:00:00", "01-03 02:00:00"]),
        ("30 0 2 * * *", ["01-01 02:00:30", "01-02 02:00:30", "01-03 02:00:30"]),
        ("*/20 * * * * *", ["01-01 00:00:20", "01-01 00:00:40", "01-01 00:01:00"]),
        ("0 0 * * 0", ["01-04 00:00:00", "01-11 00:00:00", "01-18 00:00:00"]),
        ("0 0 * * 7", ["01-04 00:00:00", "01-11 00:00:00", "01-18 00:00:00"]),
        ("0 0 * * sun", ["01-04 00:00:00", "01-11 00:00:00", "01-18 00:00:00"]),
        ("0 0 * * 1-5", ["01-02 00:00:00", "01-05 00:00:00", "01-06 00:00:00"]),
        ("0 0 * * MON#2", ["01-12 00:00:00", "02-09 00:00:00", "03-09 00:00:00"]),
        ("0 0 * * L5", ["01-30 00:00:00", "02-27 00:00:00", "03-27 00:00:00"]),
        ("0 0 L * *", ["01-31 00:00:00", "02-28 00:00:00", "03-31 00:00:00"]),
        ("0 0 31 * *", ["01-31 00:00:00", "03-31 00:00:00", "05-31 00:00:00"]),
        ("0 0 15W * *", ["01-15 00:00:00", "02-16 00:00:00", "03-16 00:00:00"]),
        ("0 0 13 * FRI", ["01-02 00:00:00", "01-09 00:00:00", "01-13 00:00:00"]),
        ("0 0 1 JAN,jul *", ["07-01 00:00:00", "01-01 00:00:00", "07-01 00:00:00"]),
        ("0 22-1 * * *", ["01-01 01:00:00", "01-01 22:00:00", "01-01 23:00:00"]),
        ("59/15 * * * *", ["01-01 00:59:00", "01-01 01:59:00", "01-01 02:59:00"]),
        ("0 0 * * 6/1", ["01-03 00:00:00", "01-10 00:00:00", "01-17 00:00:00"]),
        ("0 23/6 * * *", ["01-01 23:00:00", "01-02 23:00:00", "01-03 23:00:00"]),
        ("  0\t2  * * *\n", ["01-01 02:00:00", "01-02 02:00:00", "01-03 02:00:00"]),
        ("@hourly", ["01-01 01:00:00", "01-01 02:00:00", "01-01 03:00:00"]),
        ("@daily", ["01-02 00:00:00", "01-03 00:00:00", "01-04 00:00:00"]),
        ("@Midnight", ["01-02 00:00:00", "01-03 00:00:00", "01-04 00:00:00"]),
        ("@weekly", ["01-04 00:00:00", "01-11 00:00:00", "01-18 00:00:00"]),
        ("@monthly", ["02-01 00:00:00", "03-01 00:00:00", "04-01 00:00:00"]),
        ("@yearly", ["01-01 00:00:00", "01-01 00:00:00", "01-01 00:00:00"]),
        ("@annually", ["01-01 00:00:00", "01-01 00:00:00", "01-01 00:00:00"]),
    ],
)
def test_expression_is_read_as_documented(expression: str, runs: list[str]) -> None:
    assert next_runs(expression) == runs


def test_leap_day_is_found_across_a_century_without_one() -> None:
    schedule = CronSchedule("0 0 29 2 *", "UTC")

    assert schedule.next_after(datetime(2096, 3, 1, tzinfo=UTC)).year == 2104


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("0 0 31 2 *", "never fires.*'31'.*'2'"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 0 31 2 *", "never fires"),
        ("0 0 31 2,4,6,9,11 *", "never fires"),
        ("0 0 30,31 FEB *", "never fires"),
        ("R * * * *", r"random \(R\) and hashed \(H\).*minute field is 'r'"),
        ("r(0-30) * * * *", "random"),
        ("0 R/4 * * *", "random.*hour"),
        ("H H * * *", "hashed"),
        ("0 h(0-7) * * *", "hashed"),
        ("5,H * * * *", "hashed"),
        ("H 0 0 * * *", "hashed.*second field"),
        ("0 0 0 1 1 * 2027", "7 fields.*no year"),
        ("0 0 1 1", "4 fields"),
        ("* * * * * * * *", "8 fields"),
        ("", "0 fields"),
        ("   ", "0 fields"),
        ("@reboot", "not a named schedule; allowed are @yearly"),
        ("@every 5m", "not a named schedule"),
        ("60 * * * *", "the minute field '60' is not understood; allowed are 0-59"),
        ("* 24 * * *", "the hour field '24'.*0-23"),
        ("* * 0 * *", "the day of month field '0'.*1-31"),
        ("* * 32 * *", "the day of month field '32'"),
        ("* * * 13 *", "the month field '13'.*JAN-DEC"),
        ("* * * 0 *", "the month field '0'"),
        ("* * * * 8", r"the day of week field '8'.*0 and 7 are Sunday"),
        ("* * * * mox", "the day of week field 'mox'"),
        ("61 * * * * *", "the second field '61'"),
        ("*/0 * * * *", "the minute field"),
        ("-5 * * * *", "the minute field"),
        ("1.5 * * * *", "the minute field"),
        ("a * * * *", "the minute field"),
        ("1,,2 * * * *", "the minute field"),
        ("? * * * *", "the minute field"),
        ("* * * * MON#6", "the day of week field"),
        ("5-5 * * * *", "equal ends; write '5' for one value"),
        ("0 0 * mar-MAR *", "equal ends"),
        ("0 0 * * 1-1/2", "equal ends"),
        ("\u0665 * * * *", "ASCII"),
        ("0\u00a00 * * *", "ASCII"),
        ("1," * 200 + "1 * * * *", "409 characters; at most 200"),
        (None, "ASCII text, not None"),
        (5, "ASCII text, not 5"),
        (["* * * * *"], "ASCII text"),
    ],
)
def test_expression_is_refused_with_a_reason(expression: Any, says: str) -> None:
    for _ in range(2):  # a refusal is not forgotten by the cache
        with pytest.raises(InvalidScheduleError, match=says):
            CronSchedule(expression, "UTC")


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("Europe/Warszawa", "did you mean 'Europe/Warsaw'"),
        ("europe/warsaw ", "did you mean 'Europe/Warsaw'"),
        ("Nowhere", "not a time zone; allowed are IANA names"),
        ("", "such as 'Europe/Warsaw' or 'UTC'"),
        ("../../etc/passwd", "not a time zone"),
        ("/etc/localtime", "not a time zone"),
        ("Europe", "not a time zone"),
        ("a\x00b", "not a time zone"),
        ("\ud800", "not a time zone"),
        (None, "None is not a time zone"),
        (5, "5 is not a time zone"),
    ],
)
def test_unknown_zone_is_refused(zone: Any, says: str) -> None:
    with pytest.raises(InvalidScheduleError, match=says):
        CronSchedule("@daily", zone)


def test_refusing_an_expression_that_never_fires_is_quick() -> None:
    started = time.perf_counter()
    with pytest.raises(InvalidScheduleError):
        CronSchedule("1-59/2 3 31 2,4,6,9,11 *", "UTC")

    assert time.perf_counter() - started < 1


def field(low: int, high: int, *special: str) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    word = st.one_of(
        number.map(str),
        st.tuples(number, number).map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(number, number, st.integers(1, 20)).map(lambda x: f"{x[0]}-{x[1]}/{x[2]}"),
        st.tuples(number, st.integers(1, 20)).map(lambda x: f"{x[0]}/{x[1]}"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
    )
    lists = st.lists(word, min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), lists, st.sampled_from(["*", *special]))


@given(
    fields=st.tuples(
        field(0, 59),
        field(0, 59),
        field(0, 23),
        field(1, 31, "L", "15W", "?"),
        field(1, 12, "JAN", "mar-jun"),
        field(0, 7, "MON-FRI", "5#3", "L2", "?", "sat-sun"),
    ),
    with_seconds=st.booleans(),
    wall=st.datetimes(datetime(1999, 1, 1), datetime(2060, 1, 1)),
)
@settings(deadline=None, max_examples=300)
def test_wall_clock_agrees_with_croniter(
    fields: tuple[str, ...], with_seconds: bool, wall: datetime
) -> None:
    expression = " ".join(fields if with_seconds else fields[1:])
    try:
        parsed = parse_expression(expression)
    except InvalidScheduleError:
        assume(False)
    reference = croniter(
        expression, wall.replace(microsecond=0), datetime, second_at_beginning=True
    )

    for _ in range(3):
        found = parsed.next_after(wall)
        assert found == reference.get_next(datetime)
        assert found is not None
        wall = found
