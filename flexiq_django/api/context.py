"""``current_job``: what a task may ask about, and say to, the job it runs for."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from enum import StrEnum
from typing import Any, NoReturn, Protocol

from flexiq_django.api.options import check_text
from flexiq_django.core.errors import clean_text
from flexiq_django.core.records import ClaimedJob
from flexiq_django.exceptions import (
    InvalidOptionError,
    JobPaused,
    LeaseLost,
    SerializationError,
    SoftTimeoutError,
    TaskCancelledError,
)


class LogLevel(StrEnum):
    """Level of a task log line; ``RESULT`` marks a value passed to ``publish``."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    RESULT = "result"


class Journal(Protocol):
    """Writes what an attempt notes down, outside the transaction the task may be in."""

    def progress(self, job: ClaimedJob, value: int) -> None:
        """Store the progress soon; a later value replaces one not yet stored."""

    def log(self, job: ClaimedJob, level: str, message: str, extra: str | None) -> None:
        """Store a log line soon, in order."""

    def look(self, attempt: Attempt) -> None:
        """Bring the flags of an attempt up to date, if that can be done now."""


class Attempt:
    """One try at a job while its body runs; what ``current_job`` speaks for."""

    #: Whether the process that runs the body is the one that settles the attempt.
    is_settled_here = True

    def __init__(
        self,
        job: ClaimedJob,
        *,
        namespace: str,
        journal: Journal,
        soft_timeout: float | None = None,
    ) -> None:
        self.job = job
        self.namespace = namespace
        self.journal = journal
        self.began = time.monotonic()
        self.soft_timeout = soft_timeout
        #: Set when the body has begun to ask; from then on the worker keeps the flags below fresh.
        self.is_watched = False
        #: Set when the job has been settled, or taken by somebody else, over the body's head.
        self.is_over = False
        #: Set when somebody has asked the job to stop.
        self.is_cancel_requested = False
        #: Set while a transactional body completes its job: the lease is then not looked at.
        self.is_settling = False
        #: Set when the body settled the job in a transaction of its own.
        self.is_settled = False
        self._end = threading.Lock()
        self._stopping = threading.Lock()
        self._stopper: Callable[[], object] | None = None
        self._stops_gently = False

    def end(self) -> bool:
        """Claim the right to say how the attempt ended. True for the first caller only."""
        return self._end.acquire(blocking=False)

    def begin_settling(self) -> None:
        """The body settles the job now, in a transaction of its own."""
        self.is_settling = True

    def note_committed(self) -> None:
        """The transaction of the body has committed, with what it settled in there."""
        self.is_settled = self.is_settling

    def note_over(self) -> None:
        """The attempt has lost its job: what its body does counts for nothing."""
        if not self.is_over:
            self.is_over = True
            self.stop_body(gently=True)

    def note_cancel_requested(self) -> None:
        """Somebody has asked the job to stop."""
        if not self.is_cancel_requested:
            self.is_cancel_requested = True
            self.stop_body(gently=True)

    @contextlib.contextmanager
    def stoppable(self, stopper: Callable[[], object], *, gently: bool = False) -> Iterator[None]:
        """While this lasts, and not a moment longer, ``stop_body`` calls ``stopper``.

        ``gently``: the body then still gets the chance to clean up.
        """
        self._stopper, self._stops_gently = stopper, gently
        try:
            yield
        finally:
            with self._stopping:
                self._stopper = None

    def stop_body(self, *, gently: bool = False) -> None:
        """End the body, where its executor can do that; ``gently``: only if it can clean up."""
        with self._stopping:
            if self._stopper is not None and (self._stops_gently or not gently):
                self._stopper()

    def check_cancelled(self) -> None:
        """See ``CurrentJob.check_cancelled``."""
        if not self.is_watched:
            self.is_watched = True
            self.journal.look(self)
        if self.is_over:
            raise LeaseLost
        if self.is_cancel_requested:
            raise TaskCancelledError(job_id=str(self.job.id))


_current: ContextVar[Attempt | None] = ContextVar("flexiq_current_attempt", default=None)


def set_current(attempt: Attempt | None) -> Token[Attempt | None]:
    """Make an attempt the current one of this thread or coroutine; what ``reset_current`` takes."""
    return _current.set(attempt)


def reset_current(token: Token[Attempt | None]) -> None:
    """Give the place back to the attempt that was there before, if any was: one may run inside."""
    try:  # noqa: SIM105 - once for every job, where a context manager is felt
        _current.reset(token)
    except ValueError:  # a coroutine that is thrown away ends elsewhere
        pass


def current_attempt() -> Attempt | None:
    """The attempt whose body is running here; ``None`` outside of one."""
    return _current.get()


class CurrentJob:
    """The job this code runs for. Outside a job every member raises ``RuntimeError``."""

    @property
    def _attempt(self) -> Attempt:
        attempt = _current.get()
        if attempt is None:
            raise RuntimeError("current_job can only be used inside a running task")
        return attempt

    @property
    def id(self) -> str:
        """The job's id."""
        return str(self._attempt.job.id)

    @property
    def task_name(self) -> str:
        """The name of the task."""
        return self._attempt.job.task_name

    @property
    def retry_count(self) -> int:
        """How many attempts failed before this one."""
        return self._attempt.job.retry_count

    @property
    def attempt(self) -> int:
        """How many times the job has been claimed, this one included."""
        return self._attempt.job.attempt

    @property
    def queue_name(self) -> str:
        """The queue the job was enqueued to."""
        return self._attempt.job.queue

    @property
    def namespace(self) -> str:
        """The namespace of the job."""
        return self._attempt.namespace

    @property
    def metadata(self) -> str | None:
        """The metadata given at enqueue."""
        return self._attempt.job.metadata

    def update_progress(self, progress: int) -> None:
        """Note how far the job is, from 0 to 100. Stored within milliseconds.

        Visible to others at once, also while the task is inside a transaction of its own; on
        SQLite, which has one writer, only after that. Raises ``InvalidOptionError`` for another
        value.
        """
        attempt = self._attempt
        attempt.journal.progress(attempt.job, check_progress(progress))

    def check_cancelled(self) -> None:
        """Raise ``TaskCancelledError`` if somebody asked this job to stop.

        Raises ``LeaseLost`` if nothing the attempt does counts any more: it has lost its job, its
        time is up, or its worker stops and will not wait for it.
        Call it as often as you like: after the first call it costs no look into the database. A
        request is noticed within about a quarter of a second.
        """
        self._attempt.check_cancelled()

    def check_timeout(self) -> None:
        """Raise ``SoftTimeoutError`` once the task's ``soft_timeout`` (seconds) has passed.

        Raises ``LeaseLost`` when nothing the attempt does counts any more.
        """
        attempt = self._attempt
        if attempt.is_over:
            raise LeaseLost
        limit = attempt.soft_timeout
        if limit is not None and time.monotonic() - attempt.began > limit:
            raise SoftTimeoutError(f"the soft timeout of {limit:g} s has passed")

    def log(
        self, message: str, level: LogLevel | str = LogLevel.INFO, extra: Any | None = None
    ) -> None:
        """Append a line to the job's log. ``extra`` is anything JSON can hold.

        Raises ``InvalidOptionError`` for an unknown level, ``SerializationError`` for other extras.
        """
        attempt = self._attempt
        word = check_level(level)
        attempt.journal.log(attempt.job, word, clean_text(str(message)), _extra(extra))

    def pause(self, reason: str) -> NoReturn:
        """End the attempt here, without failing: the job waits for a person, who reads ``reason``.

        The job becomes ``paused`` and stays so until ``queue.continue_job()``, which makes it
        pending again, or ``queue.cancel_job()``. No attempt of its retry budget is used. Raises
        ``JobPaused`` to leave the task, which is no ``Exception``; let it pass. What a
        transactional task has written commits with the pause. ``reason`` is a text of 1 to 2000
        characters; another raises ``InvalidOptionError``.
        """
        _ = self._attempt
        raise JobPaused(check_reason(reason))

    def publish(self, data: Any) -> None:
        """Append a value to the job's log, for whoever follows it. ``data`` must fit into JSON."""
        attempt = self._attempt
        attempt.journal.log(attempt.job, LogLevel.RESULT.value, "", _extra(data) or "null")


def check_progress(progress: Any) -> int:
    """A whole number from 0 to 100. Raises ``TypeError`` or ``InvalidOptionError``."""
    if not isinstance(progress, int) or isinstance(progress, bool):
        raise TypeError(f"progress is {progress!r}; it must be a whole number")
    if not 0 <= progress <= 100:
        raise InvalidOptionError(f"progress is {progress}; allowed is 0 to 100")
    return progress


def check_reason(reason: Any) -> str:
    """A text that says why a job is paused. Raises ``InvalidOptionError``."""
    if reason is None:
        raise InvalidOptionError("reason is None; it must say what the job waits for")
    return str(check_text("reason", reason, longest=2000))


def check_level(level: LogLevel | str) -> str:
    """The word of a log level. Raises ``InvalidOptionError`` for an unknown one."""
    try:
        return LogLevel(level).value
    except ValueError:
        allowed = ", ".join(LogLevel)
        raise InvalidOptionError(f"level is {level!r}; allowed are {allowed}") from None


def _extra(value: Any | None) -> str | None:
    if value is None:
        return None
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SerializationError(f"extra cannot be written as JSON: {error}") from None


current_job = CurrentJob()
