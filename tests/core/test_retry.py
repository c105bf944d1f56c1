"""When a failed attempt is tried again."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import pytest

from flexiq_django.core.retry import RetryPolicy, is_retryable, wait_before_retry
from flexiq_django.exceptions import InvalidOptionError


def forbidden() -> NoReturn:
    raise AssertionError("an exact wait is not drawn")


def highest() -> float:
    return math.nextafter(1.0, 0.0)


@pytest.mark.parametrize(("retry_count", "wait"), [(0, 1), (1, 30), (2, 300.5), (3, 300.5)])
def test_listed_delays_are_exact_and_the_last_one_repeats(retry_count: int, wait: float) -> None:
    policy = RetryPolicy(max_retries=9, delays=(1, 30, 300.5), backoff=7, max_delay=2)

    assert wait_before_retry(policy, retry_count, random=forbidden) == wait
    assert wait_before_retry(policy, 10**30, random=forbidden) == 300.5


@pytest.mark.parametrize(
    ("retry_count", "ceiling"), [(0, 1.5), (1, 3), (2, 6), (5, 48), (6, 60), (7, 60), (10**30, 60)]
)
def test_backoff_doubles_up_to_the_maximum(retry_count: int, ceiling: float) -> None:
    exact = RetryPolicy(max_retries=9, backoff=1.5, max_delay=60, jitter=False)
    drawn = RetryPolicy(max_retries=9, backoff=1.5, max_delay=60)

    assert wait_before_retry(exact, retry_count, random=forbidden) == ceiling
    assert wait_before_retry(drawn, retry_count, random=lambda: 0.0) == 0
    assert wait_before_retry(drawn, retry_count, random=lambda: 0.25) == ceiling / 4
    assert ceiling * 0.999 < wait_before_retry(drawn, retry_count, random=highest) <= ceiling


def test_defaults_are_one_second_doubling_to_five_minutes() -> None:
    policy = RetryPolicy(max_retries=3)
    waits = [wait_before_retry(policy, count, random=highest) for count in (0, 1, 8, 9, 5_000)]

    assert waits == pytest.approx([1, 2, 256, 300, 300])


@pytest.mark.parametrize("retry_count", [0, 1, 2_000, 10**30])
@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(max_retries=0, backoff=0),
        RetryPolicy(max_retries=0, max_delay=0),
        RetryPolicy(max_retries=0, delays=(0,)),
    ],
)
def test_zero_means_at_once(policy: RetryPolicy, retry_count: int) -> None:
    wait = wait_before_retry(policy, retry_count, random=highest)

    assert wait == 0
    assert type(wait) is float


def test_tiny_backoff_still_grows() -> None:
    policy = RetryPolicy(max_retries=0, backoff=5e-324, jitter=False)

    assert wait_before_retry(policy, 1, random=forbidden) == 1e-323
    assert wait_before_retry(policy, 1_200, random=forbidden) == 300


@pytest.mark.parametrize(
    ("policy", "exc", "expected"),
    [
        ({}, ValueError(), True),
        ({}, SystemExit(), True),
        ({"retry_on": (OSError,)}, ConnectionError(), True),
        ({"retry_on": (OSError,)}, ValueError(), False),
        ({"dont_retry_on": (LookupError,)}, KeyError(), False),
        ({"dont_retry_on": (LookupError,)}, ValueError(), True),
        ({"retry_on": (OSError,), "dont_retry_on": (ConnectionError,)}, TimeoutError(), True),
        ({"retry_on": (OSError,), "dont_retry_on": (ConnectionError,)}, BrokenPipeError(), False),
        ({"retry_on": (OSError,), "dont_retry_on": (OSError,)}, OSError(), False),
    ],
)
def test_retryable_exceptions(policy: dict[str, Any], exc: BaseException, expected: bool) -> None:
    assert is_retryable(RetryPolicy(max_retries=1, **policy), exc) is expected


def test_lists_are_accepted_and_kept_as_tuples() -> None:
    policy = RetryPolicy(
        max_retries=1,
        delays=[1, 2],  # type: ignore[arg-type]
        retry_on=[OSError],  # type: ignore[arg-type]
    )

    assert policy == RetryPolicy(max_retries=1, delays=(1, 2), retry_on=(OSError,))
    assert hash(policy)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_retries", -1),
        ("max_retries", 1.0),
        ("max_retries", True),
        ("max_retries", None),
        ("max_retries", 2**31),
        ("backoff", -0.1),
        ("backoff", math.nan),
        ("backoff", math.inf),
        ("backoff", True),
        ("backoff", "1"),
        ("max_delay", -1),
        ("max_delay", 1e10),
        ("max_delay", None),
        ("jitter", 1),
        ("delays", 5),
        ("delays", "123"),
        ("delays", {1: 2}),
        ("delays", (1, -1)),
        ("delays", (math.nan,)),
        ("delays", (1e300,)),
        ("delays", ("1",)),
        ("retry_on", ValueError),
        ("retry_on", (ValueError(),)),
        ("retry_on", ("ValueError",)),
        ("retry_on", (int,)),
        ("dont_retry_on", (None,)),
    ],
)
def test_bad_option_is_refused_by_name(field: str, value: Any) -> None:
    options = {"max_retries": 1, field: value}

    with pytest.raises(InvalidOptionError, match=f"^{field}.* allowed (is|are) "):
        RetryPolicy(**options)
