"""One attempt, from a claimed job to its outcome. The only place that catches everything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from asgiref.sync import async_to_sync

from flexiq_django.api.context import Attempt, reset_current, set_current
from flexiq_django.api.task import Task
from flexiq_django.core import outcome as words
from flexiq_django.core.errors import describe_exception
from flexiq_django.core.outcome import Ending, Outcome, decide
from flexiq_django.core.payload import decode_call, encode_result
from flexiq_django.core.records import ClaimedJob, Settlement
from flexiq_django.core.retry import RetryPolicy, is_retryable
from flexiq_django.exceptions import (
    FlexiQError,
    JobPaused,
    LeaseLost,
    Permanent,
    RateLimited,
    SerializationError,
    TaskCancelledError,
    UnknownTaskError,
)
from flexiq_django.logging import about
from flexiq_django.store import settle
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import Keeper

logger = logging.getLogger(__name__)


class Runner:
    """Runs the bodies of tasks and says how they ended.

    ``on_error`` is called with what a body of ``run`` raised, whatever it is.
    """

    def __init__(
        self,
        scope: Scope,
        keeper: Keeper,
        find: Callable[[str], Task[Any, Any] | None],
        *,
        max_result_bytes: int,
        max_error_bytes: int,
        on_error: Callable[[BaseException], None] = lambda _error: None,
    ) -> None:
        self._scope = scope
        self._keeper = keeper
        self._find = find
        self._max_result_bytes = max_result_bytes
        self._max_error_bytes = max_error_bytes
        self._on_error = on_error

    def run(self, attempt: Attempt) -> Outcome | None:
        """Run the body; how it ended.

        ``None`` when that has been settled already: by the body's own transaction, or over its
        head.
        """
        task = self._find(attempt.job.task_name)
        attempt.began = time.monotonic()
        token = set_current(attempt)
        try:
            task = _require(task, attempt.job)
            args, kwargs = decode_call(attempt.job.payload)
            if task.options.transactional:
                return self._run_together(attempt, task, args, kwargs)
            _require_time(attempt)
            return self._completed(attempt, self._call(task, args, kwargs))
        except BaseException as error:
            self._on_error(error)
            return self._failed(attempt, task, error)
        finally:
            reset_current(token)

    async def run_async(self, attempt: Attempt) -> Outcome | None:
        """``run`` for an ``async def`` body, in the event loop at hand.

        A body that is cancelled because somebody asked for that, or because its lease is lost, has
        ended as if it had asked itself.
        """
        task = self._find(attempt.job.task_name)
        attempt.began = time.monotonic()
        token = set_current(attempt)
        try:
            args, kwargs = decode_call(attempt.job.payload)
            _require_time(attempt)
            value = await self._call_async(_require(task, attempt.job), args, kwargs)
            return self._completed(attempt, value)
        except asyncio.CancelledError as error:
            try:
                attempt.check_cancelled()
            except (LeaseLost, TaskCancelledError) as reason:
                return self._failed(attempt, task, reason)
            return self._failed(attempt, task, error)
        except BaseException as error:
            return self._failed(attempt, task, error)
        finally:
            reset_current(token)

    def _call(self, task: Task[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if task.is_async:
            # Called here, so that a call that does not fit is seen in this frame (see below).
            return async_to_sync(_finish)(task.function(*args, **kwargs))
        return task.function(*args, **kwargs)

    async def _call_async(
        self, task: Task[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return await task.function(*args, **kwargs)

    def _run_together(
        self,
        attempt: Attempt,
        task: Task[Any, Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Outcome | None:
        """Body and completion, or pause, in one transaction, after which the attempt is settled."""
        outcome: Outcome | None = None
        try:
            with self._begin_together(attempt.note_committed) as complete:
                _require_time(attempt)
                try:
                    outcome = self._completed(attempt, self._call(task, args, kwargs))
                except JobPaused as pause:  # what it has written commits with the pause
                    outcome = paused(attempt, pause)
                if outcome.ending not in (Ending.COMPLETED, Ending.PAUSED):
                    raise _TooLate(outcome)
                attempt.begin_settling()
                complete(decide(outcome, task.options.retry))
        except BaseException:
            if not attempt.is_settled:
                raise
            logger.exception(
                "job %s (%s) has ended well, but a function it left for after its commit failed",
                attempt.job.id,
                attempt.job.task_name,
                extra=about(attempt.job),
            )
        attempt.is_settled = True
        return outcome

    @contextlib.contextmanager
    def _begin_together(
        self, on_commit: Callable[[], None]
    ) -> Iterator[Callable[[Settlement], None]]:
        """Begin the transaction; while another writer is in the way nothing has run yet: wait."""
        with contextlib.ExitStack() as stack:
            yield self._keeper.call(
                lambda: stack.enter_context(settle.together(self._scope, on_commit))
            )

    def _completed(self, attempt: Attempt, value: Any) -> Outcome:
        result = None if value is None else encode_result(value, limit_bytes=self._max_result_bytes)
        duration_ms = _elapsed_ms(attempt)
        timeout_ms = attempt.job.timeout_ms
        if timeout_ms is not None and duration_ms > timeout_ms:
            return late(attempt)
        return Outcome(
            job=attempt.job, ending=Ending.COMPLETED, result=result, duration_ms=duration_ms
        )

    def _failed(
        self, attempt: Attempt, task: Task[Any, Any] | None, error: BaseException
    ) -> Outcome | None:
        """What to make of an error: SystemExit and KeyboardInterrupt too end the job only."""
        job = attempt.job
        if isinstance(error, LeaseLost):
            logger.warning(
                "late result of job %s (%s) dropped: the attempt no longer owns the job",
                job.id,
                job.task_name,
                extra=about(job),
            )
            return None
        if isinstance(error, _TooLate):
            return error.outcome
        if isinstance(error, JobPaused):
            return paused(attempt, error)
        if isinstance(error, TaskCancelledError):
            return Outcome(
                job=job,
                ending=Ending.CANCELLED,
                error=words.CANCELLED,
                duration_ms=_elapsed_ms(attempt),
            )
        return Outcome(
            job=job,
            ending=Ending.FAILED,
            error=describe_exception(error, limit_bytes=self._max_error_bytes),
            retryable=_may_retry(task, error),
            retry_after=error.retry_after if isinstance(error, RateLimited) else None,
            duration_ms=_elapsed_ms(attempt),
        )


async def _finish(coroutine: Awaitable[Any]) -> Any:
    return await coroutine


def _require(task: Task[Any, Any] | None, job: ClaimedJob) -> Task[Any, Any]:
    if task is None:
        raise UnknownTaskError(f"unknown task {job.task_name!r}: no worker module declares it")
    return task


def _require_time(attempt: Attempt) -> None:
    """Its time may be up before its body begins, as receivers and databases take their own."""
    if attempt.is_over:
        raise LeaseLost


class _TooLate(FlexiQError):  # noqa: N818 - control flow
    """The body returned after its time was up; carries the outcome out of the transaction."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def late(attempt: Attempt) -> Outcome:
    """The outcome of an attempt that ran longer than it may."""
    return Outcome(
        job=attempt.job,
        ending=Ending.FAILED,
        error=words.timed_out(attempt.job.timeout_ms or 0),
        duration_ms=_elapsed_ms(attempt),
    )


def paused(attempt: Attempt, pause: JobPaused) -> Outcome:
    """The outcome of an attempt that waits for a person; one that is out of time fails instead."""
    duration_ms, timeout_ms = _elapsed_ms(attempt), attempt.job.timeout_ms
    if timeout_ms is not None and duration_ms > timeout_ms:
        return late(attempt)
    return Outcome(
        job=attempt.job, ending=Ending.PAUSED, reason=pause.reason, duration_ms=duration_ms
    )


def interrupted(attempt: Attempt) -> Outcome:
    """The outcome of an attempt whose worker stops before the body has ended."""
    return Outcome(
        job=attempt.job,
        ending=Ending.FAILED,
        error=words.INTERRUPTED,
        retry_after=0.0,
        duration_ms=_elapsed_ms(attempt),
    )


def too_late(job: ClaimedJob) -> Outcome:
    """The outcome of a job that was claimed after it had expired."""
    return Outcome(job=job, ending=Ending.EXPIRED, error=words.EXPIRED)


def cancelled_before(job: ClaimedJob) -> Outcome:
    """The outcome of a job that had been asked to stop before it was claimed."""
    return Outcome(job=job, ending=Ending.CANCELLED, error=words.CANCELLED)


def _may_retry(task: Task[Any, Any] | None, error: BaseException) -> bool:
    if isinstance(error, Permanent | SerializationError):
        return False
    if isinstance(error, RateLimited) or task is None:
        return True
    if isinstance(error, TypeError) and _is_call_mismatch(error):
        return False
    policy: RetryPolicy = task.options.retry
    return is_retryable(policy, error)


def _is_call_mismatch(error: TypeError) -> bool:
    """Whether the call itself was refused: then no frame of the task's own code was entered."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and frame.tb_frame.f_code in _CALLS


_CALLS = (Runner._call.__code__, Runner._call_async.__code__)


def _elapsed_ms(attempt: Attempt) -> float:
    return (time.monotonic() - attempt.began) * 1000
