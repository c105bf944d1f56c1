"""The states of a job, the moves between them, and the words used for them in counts."""

from __future__ import annotations

from enum import StrEnum

from flexiq_django.exceptions import UnknownStatusError


class JobStatus(StrEnum):
    """Where a job stands. The value is what the database and the API say."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETE = "complete"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


#: The statuses a job never leaves by itself.
TERMINAL = frozenset({JobStatus.COMPLETE, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED})

#: Every allowed move. ``FAILED`` is reserved: an attempt that failed leaves its job pending or
#: dead.
TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.RUNNING, JobStatus.CANCELLED}),
    JobStatus.RUNNING: frozenset(
        {
            JobStatus.PENDING,
            JobStatus.PAUSED,
            JobStatus.COMPLETE,
            JobStatus.DEAD,
            JobStatus.CANCELLED,
        }
    ),
    JobStatus.PAUSED: frozenset({JobStatus.PENDING, JobStatus.CANCELLED}),
    JobStatus.COMPLETE: frozenset(),
    JobStatus.FAILED: frozenset({JobStatus.PENDING}),
    JobStatus.DEAD: frozenset({JobStatus.PENDING}),
    JobStatus.CANCELLED: frozenset({JobStatus.PENDING}),
}

#: The keys of every count, in display order. Counts say ``completed`` where a job says
#: ``complete``.
COUNT_KEYS = ("pending", "running", "completed", "failed", "dead", "cancelled")

_ALIASES = {"completed": JobStatus.COMPLETE}


def can_move(source: JobStatus, target: JobStatus) -> bool:
    """Whether a job may go from ``source`` to ``target``."""
    return target in TRANSITIONS[source]


def parse_status(word: str) -> JobStatus:
    """The status a caller means; ``completed`` is accepted for ``complete``.

    Raises ``UnknownStatusError`` for any other word.
    """
    try:
        return _ALIASES.get(word) or JobStatus(word)
    except ValueError:
        allowed = ", ".join(status.value for status in JobStatus)
        raise UnknownStatusError(
            f"status is {word!r}; allowed are {allowed} (and completed for complete)"
        ) from None


def count_key(status: str) -> str:
    """The key under which jobs of ``status`` are counted."""
    return "completed" if status == JobStatus.COMPLETE else status
