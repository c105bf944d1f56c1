"""When a failed attempt is tried again, and how long to wait before."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flexiq_django.core.rates import parse_rate_limit
from flexiq_django.exceptions import InvalidOptionError

#: Ten years: a longer wait is a mistake, and would not fit every database's dates.
MAX_WAIT_SECONDS = 315_360_000.0
#: The largest number every supported database keeps in its integer column.
MAX_RETRIES = 2_147_483_647


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """How a task is retried. Times are seconds.

    ``max_retries`` tries follow the first one; 0 means exactly one attempt. ``delays[n]`` is the
    exact wait before retry ``n``, and past the end the last value repeats. Without ``delays`` the
    wait grows from ``backoff``, doubling up to ``max_delay``; ``jitter`` draws it evenly between 0
    and that. With ``retry_on`` only those exceptions are retried; ``dont_retry_on`` outranks it.
    ``budget``, such as ``"100/m"``, bounds the retries of all jobs of the task together.

    Raises ``InvalidOptionError`` naming the field and what is allowed.
    """

    max_retries: int
    backoff: float = 1.0
    delays: tuple[float, ...] = ()
    max_delay: float = 300.0
    jitter: bool = True
    retry_on: tuple[type[BaseException], ...] = ()
    dont_retry_on: tuple[type[BaseException], ...] = ()
    budget: str | None = None

    def __post_init__(self) -> None:
        _check_count("max_retries", self.max_retries)
        _check_seconds("backoff", self.backoff)
        _check_seconds("max_delay", self.max_delay)
        if type(self.jitter) is not bool:
            raise InvalidOptionError(f"jitter is {self.jitter!r}; allowed are True and False")
        for name in ("delays", "retry_on", "dont_retry_on"):
            object.__setattr__(self, name, _as_tuple(name, getattr(self, name)))
        for index, delay in enumerate(self.delays):
            _check_seconds(f"delays[{index}]", delay)
        for name in ("retry_on", "dont_retry_on"):
            _check_exceptions(name, getattr(self, name))
        if self.budget is not None:
            parse_rate_limit("retry_budget", self.budget)


def wait_before_retry(
    policy: RetryPolicy, retry_count: int, *, random: Callable[[], float]
) -> float:
    """Seconds to wait before retry number ``retry_count``, the first being 0.

    ``random`` returns a number from 0 to 1; it is not called when the wait is not drawn.
    """
    retry_count = max(retry_count, 0)
    if policy.delays:
        return float(policy.delays[min(retry_count, len(policy.delays) - 1)])
    try:
        grown = math.ldexp(policy.backoff, retry_count)
    except OverflowError:
        grown = math.inf
    ceiling = float(min(policy.max_delay, grown))
    return ceiling * random() if policy.jitter else ceiling


def is_retryable(policy: RetryPolicy, exc: BaseException) -> bool:
    """Whether the policy retries after ``exc``. Says nothing about the budget of attempts."""
    if isinstance(exc, policy.dont_retry_on):
        return False
    return not policy.retry_on or isinstance(exc, policy.retry_on)


def _check_count(name: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= MAX_RETRIES:
        raise InvalidOptionError(
            f"{name} is {value!r}; allowed is a whole number from 0 to {MAX_RETRIES}"
        )


def _check_seconds(name: str, value: object) -> None:
    if type(value) not in (int, float) or not 0 <= value <= MAX_WAIT_SECONDS:  # type: ignore[operator]
        raise InvalidOptionError(
            f"{name} is {value!r}; allowed is a number of seconds "
            f"from 0 to {MAX_WAIT_SECONDS:.0f} (ten years)"
        )


def _as_tuple(name: str, value: object) -> tuple[object, ...]:
    if not isinstance(value, tuple | list):
        raise InvalidOptionError(f"{name} is {value!r}; allowed is a list or tuple")
    return tuple(value)


def _check_exceptions(name: str, classes: tuple[object, ...]) -> None:
    for found in classes:
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            raise InvalidOptionError(f"{name} holds {found!r}; allowed are exception classes")
