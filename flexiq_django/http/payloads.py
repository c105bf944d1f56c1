"""Every word and key of the answers: how a job, a page and the counts look from outside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from flexiq_django.core.errors import summarise_error
from flexiq_django.core.status import JobStatus
from flexiq_django.store.browse import REACH, Order

#: The words for a status here; ``failed`` is what the dead letters are.
WORDS = {
    JobStatus.PENDING: "queued",
    JobStatus.RUNNING: "running",
    JobStatus.COMPLETE: "completed",
    JobStatus.DEAD: "failed",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELLED: "cancelled",
    JobStatus.PAUSED: "paused",
}
STATUSES = tuple(dict.fromkeys(WORDS.values()))

#: What ``component_type`` may be.
COMPONENTS = ("task", "periodic", "django_task")


def statuses_of(words: Sequence[str]) -> frozenset[JobStatus] | None:
    """The statuses that the words mean; ``None``, for all, when there are no words."""
    return frozenset(each for each, word in WORDS.items() if word in words) or None


#: The dead-letter list: what failed, and nothing else.
FAILED = statuses_of(["failed"])


def _as_it_is(value: Any) -> Any:
    return value


def _component_id(origin: str, schedule: str | None, task_name: str) -> str:
    return schedule if origin == "periodic" and schedule else task_name


#: What a listing can be sorted by; ``None`` is by age.
ORDERS: Mapping[str, Order | None] = {
    "created_at": None,
    "updated_at": Order(("updated_at",), _as_it_is),
    "completed_at": Order(("completed_at",), _as_it_is),
    "status": Order(("status",), lambda status: WORDS[JobStatus(status)]),
    "attempt": Order(("attempt",), _as_it_is),
    "component_type": Order(("origin",), _as_it_is),
    "component_id": Order(("origin", "schedule", "task_name"), _component_id),
    "user_id": Order(("user_id",), _as_it_is),
}


def job(row: Mapping[str, Any]) -> dict[str, Any]:
    """A job. ``payload`` is ``None`` in a row that was read without it."""
    status = JobStatus(row["status"])
    is_running = status is JobStatus.RUNNING
    return {
        "id": str(row["id"]),
        "component_type": row["origin"],
        "component_id": _component_id(row["origin"], row["schedule"], row["task_name"]),
        "session_id": row["session_id"],
        "user_id": row["user_id"],
        "status": WORDS[status],
        "attempt": row["attempt"],
        "max_attempts": row["max_retries"] + 1,
        "error": summarise_error(row["error"]),
        "locked_by": row["worker_id"] if is_running else None,
        # Each heartbeat renews the lease and writes the row.
        "locked_at": _seconds(row["updated_at"]) if is_running else None,
        "idempotency_key": row["unique_key"],
        "payload": _call(row.get("payload")),
        "created_at": _seconds(row["created_at"]),
        "updated_at": _seconds(row["updated_at"]),
        "completed_at": _seconds(row["completed_at"]),
    }


def page(rows: Sequence[Mapping[str, Any]], *, number: int, limit: int, total: int) -> Any:
    """A page of jobs and its place. ``total_pages`` are those that can be asked for."""
    return {
        "data": [job(row) for row in rows],
        "meta": {
            "page": number,
            "limit": limit,
            "total_pages": -(-min(total, REACH) // limit),
            "total_count": total,
        },
    }


def stats(counts: Mapping[str, int], oldest_seconds: float | None) -> dict[str, Any]:
    """The counts by status, each word always there, and the age of the oldest job."""
    by_word = dict.fromkeys(STATUSES, 0)
    for status, number in counts.items():
        by_word[WORDS[JobStatus(status)]] += number
    return {"counts": by_word, "oldest_queued_age_seconds": oldest_seconds}


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _call(stored: str | None) -> Any:
    """The arguments in their stored form, which is JSON; as text where a row holds no JSON."""
    if stored is None:
        return None
    try:
        return json.loads(stored)
    except (ValueError, RecursionError):
        return stored
