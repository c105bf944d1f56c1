"""Every error flexiq_django raises, in one tree; ``JobPaused`` alone stands beside it.

Faults end in ``Error``. Names without that ending steer control flow inside a task: a task raises
them to say what should happen next. The first sentence of a docstring is the default message.
"""

from __future__ import annotations


class FlexiQError(Exception):
    """Something went wrong in flexiq_django."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self._default_message())

    @classmethod
    def _default_message(cls) -> str:
        return (cls.__doc__ or cls.__name__).strip().split("\n\n")[0]


# --- bad input, raised before anything is written -------------------------------------------------


class InvalidOptionError(FlexiQError, ValueError):
    """An option has a value that is not allowed."""


class OptionTypeError(InvalidOptionError, TypeError):
    """An option has a value of a type that is not allowed."""


class OptionOverflowError(InvalidOptionError, OverflowError):
    """A number is larger or smaller than can be stored."""


class NotesValidationError(InvalidOptionError):
    """The notes break one of the rules for notes."""


class InvalidScheduleError(FlexiQError, ValueError):
    """The schedule cannot be understood or never fires."""


class InvalidLimitError(InvalidOptionError):
    """A rate or concurrency limit is not one of the allowed forms."""


class UnknownStatusError(InvalidOptionError):
    """The status is not one of the known job statuses."""


class InvalidCursorError(InvalidOptionError):
    """The cursor is not one that a page of this listing gave."""


class GraphTooLargeError(FlexiQError, ValueError):
    """More jobs depend on each other than were allowed to be read."""


class SerializationError(FlexiQError, ValueError):
    """A value cannot be stored as JSON and read back unchanged."""


class InvalidArgumentsError(FlexiQError, TypeError):
    """The task cannot be called with these arguments."""


class PayloadTooLargeError(SerializationError):
    """The encoded arguments or result are larger than MAX_PAYLOAD_BYTES."""


class DependencyError(FlexiQError, RuntimeError):
    """A job in depends_on is unknown, has failed, or belongs to another namespace."""


class ConfigurationError(FlexiQError, ValueError):
    """The FLEXIQ setting or the code that declares tasks is wrong."""


class UnknownTaskError(FlexiQError, LookupError):
    """No task of this name is registered in this process."""


class TaskRevokedError(FlexiQError, RuntimeError):
    """The task is revoked: no new job of it is taken until unrevoke_task()."""


class QueueFull(FlexiQError, RuntimeError):  # noqa: N818 - as queue.Full of the standard library
    """The job would bring the number of pending jobs above MAX_QUEUE_DEPTH.

    Attributes: ``queue`` (``None`` where the limit is that of the whole namespace); ``depth``, the
    jobs that are pending, counted to one beyond the limit; ``limit``.
    """

    def __init__(
        self, message: str | None = None, *, queue: str | None = None, depth: int = 0,
        limit: int = 0, added: int = 1,
    ) -> None:  # fmt: skip
        where = "the namespace" if queue is None else f"queue {queue!r}"
        super().__init__(
            message
            or f"{where} has {depth} pending jobs; with {added} more there would be over {limit}."
            " Enqueue again when workers have caught up, start more workers, or raise"
            " MAX_QUEUE_DEPTH."
        )
        self.queue, self.depth, self.limit = queue, depth, limit


class UniqueKeyError(FlexiQError, RuntimeError):
    """The unique key is held by a job that this transaction cannot see."""


class ReservedSettingError(InvalidOptionError):
    """The key belongs to the queue itself, which writes its value another way."""


class SettingConflictError(FlexiQError, RuntimeError):
    """The setting could not be stored beside what others did to it."""


class ContractError(FlexiQError, RuntimeError):
    """The database asks for a newer build of flexiq_django than this one."""


class JobNotActiveError(FlexiQError, RuntimeError):
    """There is no such job in this namespace, or it has ended."""


class JobNotCancellableError(FlexiQError, RuntimeError):
    """The job has ended, so it cannot be cancelled."""


class JobNotGrantableError(FlexiQError, RuntimeError):
    """The job has neither failed nor been cancelled, so it gets no further attempt."""


class JobMayStillRunError(FlexiQError, RuntimeError):
    """The job failed a moment ago, and its worker may still be executing it."""


class UniqueKeyTakenError(FlexiQError, RuntimeError):
    """Another job that has not ended has taken the unique key of this one."""


class DeadLetterNotFoundError(FlexiQError, RuntimeError):
    """There is no such dead letter in this namespace, or it has been retried or deleted."""


# --- what happened to a job, raised by JobResult.result()
# -------------------------------------------


class JobFailure(FlexiQError):  # noqa: N818 - a family name; the members end in Error
    """The job ended without a result.

    Attributes: ``job_id``; ``errtype`` (class name of the exception in the task, or ``None``);
    ``traceback`` (list of lines); ``raw_error`` (the stored text).
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        job_id: str = "",
        errtype: str | None = None,
        traceback: list[str] | None = None,
        raw_error: str | None = None,
    ) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.errtype = errtype
        self.traceback = traceback or []
        self.raw_error = raw_error


class TaskFailedError(JobFailure):
    """The job failed."""


class MaxRetriesExceededError(JobFailure):
    """The job failed on every attempt it had and is dead."""


class TaskCancelledError(JobFailure):
    """The job was cancelled.

    Inside a task, ``current_job.check_cancelled()`` raises it; a task may also raise it itself to
    end its job as cancelled.
    """


class JobNotFoundError(FlexiQError, KeyError, ValueError):
    """There is no such job in this namespace."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0])


# --- time limits ----------------------------------------------------------------------------------


class TaskTimeoutError(FlexiQError, TimeoutError):
    """The attempt ran longer than its timeout."""


class SoftTimeoutError(TaskTimeoutError):
    """The attempt ran longer than its soft timeout; raised by current_job.check_timeout()."""


# --- control flow: a task raises these ------------------------------------------------------------


class Permanent(FlexiQError):  # noqa: N818 - control flow, not a fault
    """The task cannot succeed however often it is tried: no retry."""


class RateLimited(FlexiQError):  # noqa: N818 - control flow, not a fault
    """A service the task depends on asks to slow down: retry after ``retry_after`` seconds."""

    def __init__(self, retry_after: float, message: str | None = None) -> None:
        if not 0 <= retry_after < float("inf"):
            raise InvalidOptionError(
                f"retry_after is {retry_after!r}; allowed is a number of seconds, 0 or more"
            )
        super().__init__(message)
        self.retry_after = float(retry_after)


class JobPaused(BaseException):
    """The attempt ends here: its job waits for a person.

    Raised by ``current_job.pause()``; let it pass. Not an ``Exception``, so that no handler for
    what goes wrong in a task takes it for a failure. Attribute: ``reason``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LeaseLost(FlexiQError):  # noqa: N818 - control flow, not a fault
    """This attempt no longer owns its job: nothing it writes is kept."""
