"""Look at jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, overload

from flexiq_django.api import options as check
from flexiq_django.core.errors import summarise_error
from flexiq_django.core.payload import decode_notes, decode_result
from flexiq_django.db.database import JobDatabase
from flexiq_django.db.words import Status, parse_word, shown_data, word_of
from flexiq_django.exceptions import SerializationError
from flexiq_django.store import figures, graph, inspect, reading


class JobRow(NamedTuple):
    """Row data of a single job. ``error_message`` is one line, ``None`` without an error."""

    id: str
    priority: int
    status: Status
    data: Any
    error_message: str | None


class ListedJob(NamedTuple):
    """A job in a list."""

    id: str
    status: Status
    data: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedAttempt:
    """An attempt that failed. ``number`` counts from 0, as retries do; ``error`` is as stored."""

    number: int
    error: str
    worker_id: str | None
    failed_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDetails:
    """All there is to know of a job. Times are aware datetimes, durations seconds.

    ``attempt_count`` counts claims, ``retry_count`` failed attempts of the budget of
    ``max_retries`` beyond the first. ``worker_id`` is who runs the job, or ran it when it ended;
    ``lease_until`` when it loses the job unless it renews. ``next_run_at`` is when a pending job
    may start. ``error`` is as stored: JSON with a traceback, or a text. ``dead_letter_id`` is what
    ``queue.retry_dead()`` takes, while there is one. Log lines are in ``queue.task_logs()``.
    """

    id: str
    namespace: str
    queue: str
    task_name: str
    status: Status
    is_archived: bool
    priority: int
    data: Any
    result: Any
    error: str | None
    error_message: str | None
    progress: int | None
    attempt_count: int
    retry_count: int
    max_retries: int
    failed_attempts: tuple[FailedAttempt, ...]
    attempt_id: str | None
    trial_id: str | None
    trace_id: str | None
    worker_id: str | None
    lease_until: datetime | None
    cancel_requested_at: datetime | None
    created_at: datetime
    next_run_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime
    expires_at: datetime | None
    timeout: float | None
    result_ttl: float | None
    unique_key: str | None
    metadata: str | None
    notes: dict[str, Any] | None
    origin: str
    schedule: str | None
    session_id: str | None
    user_id: str | None
    deployment_id: str | None
    pause_reason: str | None
    dead_letter_id: str | None
    dlq_retry_count: int
    origin_job_id: str | None
    depends_on: tuple[str, ...]
    dependents: tuple[str, ...]


def get_job(db: JobDatabase, job_id: str) -> JobRow | None:
    """A job, archived or not, as (id, priority, status, data, error_message).

    ``None`` if there is no such job. Data that cannot be read is given as it is stored.
    """
    row = _read(db, job_id)
    if row is None:
        return None
    return JobRow(
        id=str(row["id"]),
        priority=row["priority"],
        status=word_of(row["status"]),
        data=shown_data(row["payload"]),
        error_message=summarise_error(row["error"]),
    )


def get_job_details(db: JobDatabase, job_id: str) -> JobDetails | None:
    """Everything about a job, archived or not, for debugging; ``None`` if there is no such job."""
    row = _read(db, job_id)
    if row is None:
        return None
    scope, key = db.scope, row["id"]
    status = word_of(row["status"])
    letter = reading.letter_of(scope, key)
    same = {
        name: row[name] for name in JobDetails.__dataclass_fields__ if name in row and name != "id"
    }
    changed = {
        "status": status,
        "result": None if row["result"] is None else _result(row["result"]),
        "notes": decode_notes(row["notes"]),
        "worker_id": None if status is Status.PENDING else row["worker_id"],
        "origin_job_id": None if row["origin_job_id"] is None else str(row["origin_job_id"]),
    }
    return JobDetails(
        **{**same, **changed},
        id=str(key),
        data=shown_data(row["payload"]),
        error_message=summarise_error(row["error"]),
        attempt_count=row["attempt"],
        failed_attempts=tuple(
            FailedAttempt(
                number=each["attempt"],
                error=each["error"],
                worker_id=each["worker_id"],
                failed_at=each["failed_at"],
            )
            for each in reading.errors_of(scope, key)
        ),
        dead_letter_id=None if letter is None else str(letter),
        lease_until=row["lease_at"],
        next_run_at=row["scheduled_at"] if status is Status.PENDING else None,
        timeout=_seconds(row["timeout_ms"]),
        result_ttl=_seconds(row["result_ttl_ms"]),
        depends_on=tuple(map(str, graph.related(scope, key, upwards=True))),
        dependents=tuple(map(str, graph.related(scope, key, upwards=False))),
    )


def get_attempt_count(db: JobDatabase, job_id: str) -> int | None:
    """How often a job has been claimed; ``None`` if there is no such job."""
    key = check.parse_id(job_id)
    record = None if key is None else inspect.get(db.scope, key)
    return None if record is None else record.attempt


def list_all_jobs(db: JobDatabase, *, limit: int | None = None, offset: int = 0) -> list[ListedJob]:
    """Jobs that are not archived, as (id, status, data), in one list that may be long.

    By status in the order of the alphabet, then the larger priority, then the older; ``limit`` and
    ``offset`` bound it. Every such job is read: to page through many, or to filter, use the
    listings of ``Queue``. Data that cannot be read is given as it is stored. Raises
    ``InvalidOptionError``.
    """
    check.check_page(2**31 - 1 if limit is None else limit, offset)
    return [
        ListedJob(str(each.id), word_of(each.status), shown_data(each.payload))
        for each in reading.all_jobs(db.scope, limit=limit, offset=offset)
    ]


@overload
def count_by_status(db: JobDatabase) -> dict[Status, int]: ...


@overload
def count_by_status(db: JobDatabase, status: str) -> int: ...


def count_by_status(db: JobDatabase, status: str | None = None) -> dict[Status, int] | int:
    """How many jobs that are not archived are in each status; with ``status`` how many in that.

    Raises ``UnknownStatusError``.
    """
    wanted = None if status is None else parse_word(status)
    found = figures.stats(db.scope)
    counts = {
        Status.PENDING: found["pending"],
        Status.PROCESSING: found["running"],
        Status.COMPLETED: found["completed"],
        Status.FAILED: found["failed"] + found["dead"],
        Status.CANCELLED: found["cancelled"],
    }
    return counts if wanted is None else counts[wanted]


def _read(db: JobDatabase, job_id: str) -> dict[str, Any] | None:
    key = check.parse_id(job_id)
    return None if key is None else reading.read(db.scope, key)


def _result(text: str) -> Any:
    try:
        return decode_result(text)
    except SerializationError:
        return text


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
