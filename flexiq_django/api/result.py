"""The handle of a job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flexiq_django.api import stream as following
from flexiq_django.api.options import check_pace
from flexiq_django.api.twins import async_twin
from flexiq_django.api.waiting import Patience
from flexiq_django.core.errors import parse_error, summarise_error
from flexiq_django.core.payload import decode_notes, decode_result
from flexiq_django.core.records import JobRecord
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.exceptions import (
    JobFailure,
    JobNotFoundError,
    MaxRetriesExceededError,
    TaskCancelledError,
    TaskFailedError,
)
from flexiq_django.store import graph, inspect
from flexiq_django.store.scope import Scope

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue

_FAILURES: dict[str, type[JobFailure]] = {
    JobStatus.DEAD: MaxRetriesExceededError,
    JobStatus.FAILED: TaskFailedError,
    JobStatus.CANCELLED: TaskCancelledError,
}
_POLL_GROWTH = 1.5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

#: The keys of ``to_dict()``; each is also an attribute of the handle.
FIELDS = (
    "id",
    "queue",
    "task_name",
    "status",
    "priority",
    "progress",
    "retry_count",
    "max_retries",
    "created_at",
    "scheduled_at",
    "started_at",
    "completed_at",
    "error",
    "timeout_ms",
    "unique_key",
    "metadata",
    "notes",
    "namespace",
    "enqueued_by",
)


class JobResult:
    """A job as it stood when it was last read. Times (``*_at``) are Unix milliseconds.

    The first look reads the job; ``refresh()`` reads it again.
    """

    def __init__(self, queue: Queue, job_id: UUID, record: JobRecord | None = None) -> None:
        self._queue = queue
        self._id = job_id
        self._record = record

    def __repr__(self) -> str:
        status = self._record.status if self._record else "not read yet"
        return f"<JobResult id={self._id} status={status}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobResult) and other._id == self._id

    def __hash__(self) -> int:
        return hash(self._id)

    @property
    def _scope(self) -> Scope:
        """Where the job lives, which a listing of every namespace may have found elsewhere."""
        scope = self._queue.scope
        return replace(scope, namespace=self._record.namespace) if self._record else scope

    # --- the job as last read ---------------------------------------------------------------------

    @property
    def record(self) -> JobRecord:
        """The job as last read. Raises ``JobNotFoundError`` if it was never there or is gone."""
        if self._record is None:
            self.refresh()
        if self._record is None:
            raise self._gone()
        return self._record

    @property
    def id(self) -> str:
        """The job's id."""
        return str(self._id)

    @property
    def status(self) -> str:
        """One of the values of ``JobStatus``."""
        return self.record.status

    @property
    def error(self) -> str | None:
        """What the job failed with, as stored: JSON with traceback, or plain text."""
        return self.record.error

    @property
    def notes(self) -> dict[str, Any] | None:
        """The notes given at enqueue."""
        return decode_notes(self.record.notes)

    @property
    def enqueued_by(self) -> str | None:
        """The user the job was submitted for."""
        return self.record.user_id

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Every failed attempt, oldest first; read now."""
        return [plain_row(row) for row in inspect.job_errors(self._scope, self._id)]

    @property
    def dependencies(self) -> list[str]:
        """Ids of the jobs this one waits or waited for; read now."""
        return self._related(upwards=True)

    @property
    def dependents(self) -> list[str]:
        """Ids of the jobs that wait or waited for this one; read now."""
        return self._related(upwards=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in JobRecord._fields:
            raise AttributeError(f"JobResult has no attribute {name!r}")
        return _plain(getattr(self.record, name))

    def to_dict(self) -> dict[str, Any]:
        """The job read anew, as plain values. ``error`` is one line, ``notes`` the stored text."""
        self.refresh()
        return describe(self.record)

    def refresh(self) -> None:
        """Read the job again. If it is gone, what was read before stays."""
        self._read_status()

    # --- its result -------------------------------------------------------------------------------

    def result(
        self, timeout: float = 30.0, poll_interval: float = 0.05, max_poll_interval: float = 0.5
    ) -> Any:
        """What the task returned; waits up to ``timeout`` seconds for the end of the job.

        Raises ``TimeoutError`` if it has not ended by then, ``MaxRetriesExceededError`` if it is
        dead, ``TaskCancelledError`` if it was cancelled, ``JobNotFoundError`` if it is gone, and
        ``InvalidOptionError`` for a time that is not above 0.
        """
        patience, interval = Patience(timeout, self.id), check_pace("poll_interval", poll_interval)
        check_pace("max_poll_interval", max_poll_interval)
        while not self._has_ended():
            time.sleep(patience.rest(interval))
            interval = min(interval * _POLL_GROWTH, max_poll_interval)
        return self._outcome()

    async def aresult(
        self, timeout: float = 30.0, poll_interval: float = 0.05, max_poll_interval: float = 0.5
    ) -> Any:
        """Async twin of :meth:`result`."""
        patience, interval = Patience(timeout, self.id), check_pace("poll_interval", poll_interval)
        check_pace("max_poll_interval", max_poll_interval)
        while not await async_twin(self._has_ended)():
            await asyncio.sleep(patience.rest(interval))
            interval = min(interval * _POLL_GROWTH, max_poll_interval)
        return await async_twin(self._outcome)()

    # --- what it publishes ------------------------------------------------------------------------

    def stream(self, timeout: float = 60.0, poll_interval: float = 0.5) -> Iterator[Any]:
        """The values the task passes to ``current_job.publish()``, each once, oldest first.

        Begins with those already there, looks for more every ``poll_interval`` seconds and ends
        when the job has ended, however it did. Raises ``TimeoutError`` if that took more than
        ``timeout`` seconds, ``JobNotFoundError`` if the job is gone, ``InvalidOptionError`` for a
        time that is not above 0.
        """
        return following.stream(self._follower(poll_interval), Patience(timeout, self.id))

    def astream(self, timeout: float = 60.0, poll_interval: float = 0.5) -> AsyncIterator[Any]:
        """Async twin of :meth:`stream`: ``async for value in job.astream()``."""
        return following.astream(self._follower(poll_interval), Patience(timeout, self.id))

    arefresh = async_twin(refresh)
    ato_dict = async_twin(to_dict)

    def _read_status(self) -> str | None:
        """Read the job again; its status, or ``None`` if it is gone."""
        record = inspect.get(self._scope, self._id)
        if record is None:
            return None
        self._record = record
        return record.status

    def _follower(self, poll_interval: float) -> following.Follower:
        interval = check_pace("poll_interval", poll_interval)
        return following.Follower(self._scope, self._id, self._read_status, interval)

    def _has_ended(self) -> bool:
        status = self._read_status()
        if status is None:
            raise self._gone()
        return JobStatus(status) in TERMINAL

    def _outcome(self) -> Any:
        record = self.record
        failure = _FAILURES.get(record.status)
        if failure is None:
            stored = inspect.get_result(self._scope, self._id)
            if stored is None:  # deleted since its end was seen
                raise self._gone()
            return None if stored.text is None else decode_result(stored.text)
        parsed = parse_error(record.error)
        raise failure(
            f"job {self.id} is {record.status}: {summarise_error(record.error) or 'no error'}",
            job_id=self.id,
            errtype=parsed.errtype,
            traceback=list(parsed.traceback),
            raw_error=record.error,
        )

    def _gone(self) -> JobNotFoundError:
        return JobNotFoundError(f"there is no job {self._id} in {self._queue!r}")

    def _related(self, *, upwards: bool) -> list[str]:
        return [str(key) for key in graph.related(self._scope, self._id, upwards=upwards)]


def describe(record: JobRecord) -> dict[str, Any]:
    """A job as plain values, under the keys ``FIELDS``."""
    return {
        **{name: _plain(getattr(record, name, None)) for name in FIELDS},
        "error": summarise_error(record.error),
        "enqueued_by": record.user_id,
    }


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as plain values: ids as text, times as Unix milliseconds."""
    return {name: _plain(value) for name, value in row.items()}


def to_ms(moment: datetime | None) -> int | None:
    """Unix milliseconds, as every time is reported."""
    # In whole numbers: as a float, a third of all milliseconds would come out one too small.
    return None if moment is None else (moment - _EPOCH) // _MILLISECOND


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_ms(value)
    return str(value) if isinstance(value, UUID) else value
