"""decide: what has to be written because of how an attempt ended."""

from collections.abc import Callable
from typing import Any

import pytest

from flexiq_django.core.outcome import (
    CANCELLED,
    EXPIRED,
    Ending,
    Outcome,
    decide,
    timed_out,
)
from flexiq_django.core.retry import MAX_WAIT_SECONDS, RetryPolicy
from tests.factories import ClaimedJobFactory

EXACT = RetryPolicy(max_retries=0, backoff=2, jitter=False)
DRAWN = RetryPolicy(max_retries=0, backoff=2)


def outcome(
    ending: Ending, *, retry_count: int = 0, max_retries: int = 3, **fields: Any
) -> Outcome:
    job = ClaimedJobFactory(retry_count=retry_count, max_retries=max_retries, lane="mail\x1fblue")
    return Outcome(job=job, ending=ending, **fields)


def half() -> float:
    return 0.5


def test_a_settlement_names_the_attempt() -> None:
    ended = outcome(Ending.COMPLETED)

    settlement = decide(ended, EXACT)

    assert (settlement.job_id, settlement.token) == (ended.job.id, ended.job.token)
    assert (settlement.task_name, settlement.lane) == (ended.job.task_name, "mail\x1fblue")


def test_a_completion() -> None:
    settlement = decide(outcome(Ending.COMPLETED, result="5", duration_ms=12.5), EXACT)

    assert (settlement.status, settlement.result, settlement.succeeded) == ("complete", "5", True)
    assert (settlement.error, settlement.attempt_error) == (None, None)
    assert settlement.duration_ms == 12.5


@pytest.mark.parametrize(
    ("ending", "error"), [(Ending.CANCELLED, CANCELLED), (Ending.EXPIRED, EXPIRED)]
)
def test_an_end_that_is_no_failure(ending: Ending, error: str) -> None:
    settlement = decide(outcome(ending, error=error), EXACT)

    assert (settlement.status, settlement.error) == ("cancelled", error)
    assert settlement.attempt_error is None  # no error row, no dead letter
    assert not settlement.succeeded


def test_a_cancel_spends_no_budget_whatever_is_left_of_it() -> None:
    for retry_count in (0, 3):
        ended = outcome(Ending.CANCELLED, error=CANCELLED, retry_count=retry_count)
        assert decide(ended, EXACT).status == "cancelled"


@pytest.mark.parametrize(
    ("retry_count", "max_retries", "status"),
    [(0, 0, "dead"), (0, 1, "pending"), (1, 1, "dead"), (2, 3, "pending"), (3, 3, "dead"),
     (9, 3, "dead")],
)  # fmt: skip
def test_the_budget_is_that_of_the_job(retry_count: int, max_retries: int, status: str) -> None:
    failed = outcome(Ending.FAILED, error="e", retry_count=retry_count, max_retries=max_retries)

    assert decide(failed, RetryPolicy(max_retries=99)).status == status


def test_a_failure_with_attempts_left() -> None:
    settlement = decide(outcome(Ending.FAILED, error="e", duration_ms=5.0), EXACT)

    assert (settlement.status, settlement.attempt_error) == ("pending", "e")
    assert settlement.error is None  # the job itself has not failed
    assert (settlement.retry_count, settlement.duration_ms) == (0, 5.0)
    assert not settlement.succeeded


def test_a_failure_without_attempts_left() -> None:
    settlement = decide(outcome(Ending.FAILED, error="e", retry_count=3), EXACT)

    assert (settlement.status, settlement.error, settlement.attempt_error) == ("dead", "e", "e")
    assert settlement.retry_count == 3
    assert settlement.wait_ms == 0


def test_what_cannot_help_is_not_tried_again() -> None:
    assert decide(outcome(Ending.FAILED, error="e", retryable=False), EXACT).status == "dead"


@pytest.mark.parametrize(
    ("policy", "retry_count", "draw", "wait_ms"),
    [
        (EXACT, 0, half, 2_000),
        (EXACT, 2, half, 8_000),
        (DRAWN, 0, half, 1_000),
        (DRAWN, 2, half, 4_000),
        (DRAWN, 0, lambda: 0.0, 0),
        (RetryPolicy(max_retries=0, delays=(0.0015, 60)), 0, half, 2),
        (RetryPolicy(max_retries=0, delays=(1, 60)), 2, half, 60_000),
    ],
)
def test_the_wait_is_that_of_the_task(
    policy: RetryPolicy, retry_count: int, draw: Callable[[], float], wait_ms: int
) -> None:
    failed = outcome(Ending.FAILED, error="e", retry_count=retry_count)

    assert decide(failed, policy, draw=draw).wait_ms == wait_ms


@pytest.mark.parametrize(("asked", "wait_ms"), [(0.0, 0), (0.25, 250), (90.0, 90_000)])
def test_what_the_task_asks_for_outranks_the_policy(asked: float, wait_ms: int) -> None:
    failed = outcome(Ending.FAILED, error="e", retry_after=asked)

    assert decide(failed, EXACT).wait_ms == wait_ms


@pytest.mark.parametrize("asked", [MAX_WAIT_SECONDS * 2, 1e300])
def test_no_wait_is_longer_than_a_database_can_store(asked: float) -> None:
    failed = outcome(Ending.FAILED, error="e", retry_after=asked)

    assert decide(failed, EXACT).wait_ms == MAX_WAIT_SECONDS * 1000


def test_asking_to_wait_needs_budget_too() -> None:
    failed = outcome(Ending.FAILED, error="e", retry_after=5.0, retry_count=3)

    assert (decide(failed, EXACT).status, decide(failed, EXACT).wait_ms) == ("dead", 0)


def test_the_words_of_a_timeout() -> None:
    assert timed_out(1_500) == "job timed out after 1500ms"
