"""Rate limits: what their text may be, and what a token bucket lets through."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexiq_django.core.rates import RateLimit, parse_rate_limit, whole_tokens
from flexiq_django.exceptions import InvalidLimitError

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "count", "seconds"),
    [
        ("1/s", 1, 1), ("10/sec", 10, 1), ("10/second", 10, 1), ("100/m", 100, 60),
        ("100/min", 100, 60), ("5/minute", 5, 60), ("5/h", 5, 3600), ("5/hr", 5, 3600),
        ("5/hour", 5, 3600), ("1.5/s", 1.5, 1), ("1e1/m", 10, 60), (" 7 / s ", 7, 1),
    ],
)  # fmt: skip
def test_what_a_limit_means(text: str, count: float, seconds: int) -> None:
    assert parse_rate_limit("rate_limit", text) == RateLimit(count, seconds)


@pytest.mark.parametrize(
    "text",
    ["10", "10/d", "0/s", "-1/s", "5/s/s", "2/S", "nan/s", "inf/s", "", "/s", "0.5/s", "1_0/s",
     "1e10/s", "٣/s", "10/s" + " " * 60, None, 10, b"10/s"],
)  # fmt: skip
def test_what_is_no_limit(text: object) -> None:
    with pytest.raises(InvalidLimitError, match=r"rate_limit is .*such as '100/m'"):
        parse_rate_limit("rate_limit", text)


def test_a_bucket_is_full_at_first_and_fills_up_again() -> None:
    limit = RateLimit(10, 60)

    assert limit.tokens(None, NOW) == 10
    full_at = limit.spend(None, NOW, 10)
    assert limit.tokens(full_at, NOW) == pytest.approx(0)
    assert limit.opens_in(full_at, NOW) == pytest.approx(6)
    assert limit.tokens(full_at, NOW + timedelta(seconds=30)) == pytest.approx(5)
    assert limit.tokens(full_at, NOW + timedelta(days=1)) == 10


def test_what_was_given_back_can_be_spent_again() -> None:
    limit = RateLimit(10, 60)

    full_at = limit.spend(limit.spend(None, NOW, 10), NOW, -3)

    assert whole_tokens(limit.tokens(full_at, NOW)) == 3
    assert limit.spend(full_at, NOW, -20) == NOW  # never more than full


def test_a_limit_that_was_lowered_opens_within_its_own_unit() -> None:
    old, new = RateLimit(1, 3600), RateLimit(10, 1)

    full_at = old.spend(None, NOW, 1)

    assert new.opens_in(full_at, NOW) == pytest.approx(0.1)


@given(
    count=st.floats(1, 1000),
    seconds=st.sampled_from([1, 60, 3600]),
    looks=st.lists(st.floats(0, 100), min_size=1, max_size=50),
)
def test_never_more_than_a_full_bucket_and_what_flowed_in(
    count: float, seconds: int, looks: list[float]
) -> None:
    limit = RateLimit(count, seconds)
    now, full_at, taken = NOW, None, 0
    for pause in looks:
        now += timedelta(seconds=pause)
        tokens = whole_tokens(limit.tokens(full_at, now))
        full_at = limit.spend(full_at, now, tokens)
        taken += tokens

        flowed = (now - NOW).total_seconds() * count / seconds
        assert taken <= count + flowed + 1e-3
