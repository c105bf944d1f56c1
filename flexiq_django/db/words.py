"""The status words of this module, and the data of a job as its arguments are stored."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from flexiq_django.core.payload import decode_call
from flexiq_django.core.status import JobStatus
from flexiq_django.exceptions import SerializationError, UnknownStatusError


class Status(StrEnum):
    """Where a job stands, in the words of this module."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_WORDS = {
    JobStatus.PENDING: Status.PENDING,
    JobStatus.RUNNING: Status.PROCESSING,
    JobStatus.PAUSED: Status.PENDING,  # it waits, for a person
    JobStatus.COMPLETE: Status.COMPLETED,
    JobStatus.FAILED: Status.FAILED,
    JobStatus.DEAD: Status.FAILED,
    JobStatus.CANCELLED: Status.CANCELLED,
}


def word_of(status: str) -> Status:
    """The word for a stored status."""
    return _WORDS[JobStatus(status)]


def parse_word(word: str) -> Status:
    """The status a caller means. Raises ``UnknownStatusError``."""
    try:
        return Status(word)
    except ValueError:
        raise UnknownStatusError(f"status is {word!r}; allowed are {', '.join(Status)}") from None


def data_of(payload: str) -> Any:
    """The data of stored arguments. Raises ``SerializationError`` for what cannot be read.

    The one argument of a job that has no other, as ``insert_job`` stores it; else both kinds.
    """
    args, kwargs = decode_call(payload)
    if len(args) == 1 and not kwargs:
        return args[0]
    return {"args": list(args), "kwargs": kwargs}


def shown_data(payload: str) -> Any:
    """The data for a look at a job: what cannot be read is shown as it is stored."""
    try:
        return data_of(payload)
    except SerializationError:
        return payload
