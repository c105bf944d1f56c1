"""Settle attempts: completed, failed for good, failed with a retry.

The ``_owned`` functions are for executors: whoever lost its job changes nothing. The others end
whatever attempt runs a job now, as an operator does; that attempt then owns it no more.
"""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Any
from uuid import UUID

from flexiq_django.api import options as check
from flexiq_django.conf import get_settings
from flexiq_django.core.errors import clean_text, describe_exception
from flexiq_django.core.outcome import Ending, Outcome
from flexiq_django.core.payload import encode_result
from flexiq_django.core.records import ClaimedJob
from flexiq_django.core.retry import MAX_WAIT_SECONDS
from flexiq_django.db.claiming import Claim, require_own
from flexiq_django.db.database import JobDatabase
from flexiq_django.db.ending import end_owned, end_running
from flexiq_django.db.words import Status, word_of
from flexiq_django.exceptions import InvalidOptionError


class FailureClass(StrEnum):
    """What kind of failure an attempt ended with: it says when to try again."""

    #: It may pass: wait longer after each attempt, as the task or the usual backoff says.
    TRANSIENT = "transient"
    #: A service asks to slow down: wait ``retry_after`` seconds.
    RATE_LIMITED = "rate_limited"
    #: Trying again cannot help: the job has failed.
    PERMANENT = "permanent"


def mark_completed(db: JobDatabase, job_id: str, result: Any = None) -> bool:
    """Complete a job over the head of whoever runs it; False if it is not running.

    ``result`` is stored as a task's return value is. Raises ``SerializationError`` and
    ``PayloadTooLargeError`` before anything is written.
    """
    return _end_running(db, job_id, ending=Ending.COMPLETED, result=_encode(result)) is not None


def mark_completed_owned(db: JobDatabase, claim: Claim, result: Any = None) -> bool:
    """Complete the job of an attempt; False, and nothing written, if it no longer owns the job.

    ``result`` and errors as for :func:`mark_completed`. Repeating a call whose answer was lost is
    harmless.
    """
    return _end(db, claim, ending=Ending.COMPLETED, result=_encode(result)) is not None


def mark_failed(db: JobDatabase, job_id: str, error: BaseException | str) -> bool:
    """Fail a job for good, over the head of whoever runs it; False if it is not running.

    The job leaves a dead letter, whatever retries it has. ``error`` is an exception, stored with
    its traceback, or a text; both are cut to ``MAX_ERROR_BYTES``. Raises ``InvalidOptionError``.
    """
    return _end_running(db, job_id, **_failure(error, retryable=False)) is not None


def mark_failed_owned(db: JobDatabase, claim: Claim, error: BaseException | str) -> bool:
    """Fail the job of an attempt for good; False if the attempt no longer owns it.

    Otherwise as :func:`mark_failed`.
    """
    return _end(db, claim, **_failure(error, retryable=False)) is not None


def mark_failed_with_retry(
    db: JobDatabase,
    job_id: str,
    error: BaseException | str,
    failure_class: FailureClass | str = FailureClass.TRANSIENT,
    *,
    retry_after: float | None = None,
) -> Status | None:
    """:func:`mark_failed_with_retry_owned` over the head of whoever runs the job.

    ``None`` if it is not running.
    """
    return _word(_end_running(db, job_id, **_retry(error, failure_class, retry_after)))


def mark_failed_with_retry_owned(
    db: JobDatabase,
    claim: Claim,
    error: BaseException | str,
    failure_class: FailureClass | str = FailureClass.TRANSIENT,
    *,
    retry_after: float | None = None,
) -> Status | None:
    """End an attempt that failed: the job is pending again after a wait, or has failed.

    Which of the two is returned; ``None``, and nothing written, if the attempt no longer owns the
    job. A job fails at once for a ``permanent`` failure, and when ``max_retries`` are used up; it
    leaves a dead letter then. ``rate_limited`` waits ``retry_after`` seconds (needed there, refused
    elsewhere); ``transient`` as the task says if this process declares it, else a random part of
    1, 2, 4 ... up to 300 seconds. ``error`` as for :func:`mark_failed`. Raises
    ``InvalidOptionError``.
    """
    return _word(_end(db, claim, **_retry(error, failure_class, retry_after)))


# --- how ------------------------------------------------------------------------------------------


def _end(db: JobDatabase, claim: Claim, **outcome: Any) -> str | None:
    require_own(db, claim)
    elapsed_ms = max(0.0, (time.monotonic() - claim.began) * 1000)
    return end_owned(db, Outcome(job=_job(claim), duration_ms=elapsed_ms, **outcome))


def _end_running(db: JobDatabase, job_id: str, **outcome: Any) -> str | None:
    key = check.parse_id(job_id)
    if key is None:
        return None
    # Without a duration, so no metric: how long the attempt really took is not known here.
    return end_running(db, key, lambda job: Outcome(job=job, **outcome))


def _job(claim: Claim) -> ClaimedJob:
    return ClaimedJob(
        id=UUID(claim.id),
        queue=claim.queue,
        task_name=claim.task_name,
        payload="",
        attempt=claim.attempt,
        retry_count=claim.retry_count,
        max_retries=claim.max_retries,
        timeout_ms=None,
        deployment_id=claim.deployment_id,
        session_id=claim.session_id,
        metadata=claim.metadata,
        is_expired=False,
        token=claim.token,
        lane=claim.lane,
    )


def _encode(result: Any) -> str | None:
    limit = get_settings().MAX_PAYLOAD_BYTES
    return None if result is None else encode_result(result, limit_bytes=limit)


def _failure(error: object, *, retryable: bool, retry_after: float | None = None) -> dict[str, Any]:
    limit = get_settings().MAX_ERROR_BYTES
    if isinstance(error, BaseException):
        text = describe_exception(error, limit_bytes=limit)
    elif isinstance(error, str) and error:
        text = clean_text(error).encode()[:limit].decode(errors="ignore")
    else:
        raise InvalidOptionError(f"error is {error!r}; it must be an exception or a text")
    return {
        "ending": Ending.FAILED,
        "error": text,
        "retryable": retryable,
        "retry_after": retry_after,
    }


def _retry(error: object, failure_class: str, retry_after: float | None) -> dict[str, Any]:
    if failure_class not in list(FailureClass):
        raise InvalidOptionError(
            f"failure_class is {failure_class!r}; allowed are {', '.join(FailureClass)}"
        )
    if (retry_after is not None) != (failure_class == FailureClass.RATE_LIMITED):
        raise InvalidOptionError(
            f"retry_after is {retry_after!r} with the failure class {failure_class}; it must be"
            " given with rate_limited, and only there"
        )
    if retry_after is not None and check.check_span("retry_after", retry_after) > (
        MAX_WAIT_SECONDS * 1000
    ):
        raise InvalidOptionError(
            f"retry_after is {retry_after!r}; allowed are up to {MAX_WAIT_SECONDS:.0f} seconds"
            " (ten years)"
        )
    return _failure(
        error, retryable=failure_class != FailureClass.PERMANENT, retry_after=retry_after
    )


def _word(status: str | None) -> Status | None:
    return None if status is None else word_of(status)
