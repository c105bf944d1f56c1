"""What an attempt produced, and what has to be written because of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from flexiq_django.core.records import ClaimedJob, Settlement
from flexiq_django.core.retry import MAX_WAIT_SECONDS, RetryPolicy, wait_before_retry
from flexiq_django.core.status import JobStatus

EXPIRED = "expired before execution"
CANCELLED = "cancelled by request"
INTERRUPTED = "interrupted by worker shutdown"
WORKER_LOST = "worker lost: the lease expired before the attempt ended"


def timed_out(timeout_ms: int) -> str:
    """The error text of an attempt that ran too long."""
    return f"job timed out after {timeout_ms}ms"


class Ending(Enum):
    """The ways an attempt can end."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    PAUSED = "paused"


class Outcome(NamedTuple):
    """How one attempt ended.

    ``result`` is the encoded return value. ``error`` is what is stored and shown. ``retryable`` is
    false where trying again cannot help. ``retry_after`` (seconds) overrides the backoff.
    ``duration_ms`` is ``None`` for a job whose body never began: it gets no metric row. ``reason``
    is what a paused job waits for.
    """

    job: ClaimedJob
    ending: Ending
    result: str | None = None
    error: str | None = None
    retryable: bool = True
    retry_after: float | None = None
    duration_ms: float | None = None
    reason: str | None = None


def is_good(outcome: Outcome | None) -> bool:
    """Whether a body has returned in time; False for one that was settled over its head."""
    return outcome is not None and outcome.ending is Ending.COMPLETED


def decide(
    outcome: Outcome, policy: RetryPolicy, *, draw: Callable[[], float] = random.random
) -> Settlement:
    """The settlement for an outcome: complete, retry later, dead-letter, cancel or pause.

    The budget of attempts is the job's own ``max_retries``; how long to wait comes from the policy
    of the task.
    """
    job = outcome.job
    if outcome.ending is Ending.COMPLETED:
        return _settlement(outcome, JobStatus.COMPLETE)
    if outcome.ending in (Ending.CANCELLED, Ending.EXPIRED):
        return _settlement(outcome, JobStatus.CANCELLED)
    if outcome.ending is Ending.PAUSED:
        return _settlement(outcome, JobStatus.PAUSED)
    if not outcome.retryable or job.retry_count >= job.max_retries:
        return _settlement(outcome, JobStatus.DEAD)
    wait = outcome.retry_after
    if wait is None:
        wait = wait_before_retry(policy, job.retry_count, random=draw)
    # What a task asks for is not checked before; a time no database can store helps nobody.
    wait = min(max(0.0, wait), MAX_WAIT_SECONDS)
    settlement = _settlement(outcome, JobStatus.PENDING, wait_ms=round(wait * 1000))
    return settlement if policy.budget is None else settlement._replace(is_budgeted=True)


def _settlement(outcome: Outcome, status: JobStatus, *, wait_ms: int = 0) -> Settlement:
    job = outcome.job
    failed = outcome.ending is Ending.FAILED
    return Settlement(
        job_id=job.id,
        token=job.token,
        status=status.value,
        task_name=job.task_name,
        lane=job.lane,
        result=outcome.result,
        error=None if status is JobStatus.PENDING else outcome.error,
        attempt_error=outcome.error if failed else None,
        retry_count=job.retry_count,
        wait_ms=wait_ms,
        duration_ms=outcome.duration_ms,
        succeeded=outcome.ending is Ending.COMPLETED,
        pause_reason=outcome.reason,
        session_id=job.session_id,
    )
