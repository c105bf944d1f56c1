"""From a job to a result of the framework."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings as django_settings
from django.utils import timezone

from flexiq_django.api import options as check
from flexiq_django.backend.finding import flexiq_backends, load_task
from flexiq_django.backend.framework import (
    AnyResult,
    AnyTask,
    InvalidTask,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from flexiq_django.core.errors import parse_error
from flexiq_django.core.outcome import CANCELLED
from flexiq_django.core.payload import decode_call, decode_notes, decode_result
from flexiq_django.core.status import JobStatus
from flexiq_django.store import reading
from flexiq_django.store.scope import Scope

if TYPE_CHECKING:
    from flexiq_django.backend.task_backend import FlexiqBackend

_STATUS = {
    JobStatus.PENDING: TaskResultStatus.READY,
    JobStatus.RUNNING: TaskResultStatus.RUNNING,
    JobStatus.PAUSED: TaskResultStatus.READY,  # "ready to be executed again", once a person says so
    JobStatus.COMPLETE: TaskResultStatus.SUCCESSFUL,
    JobStatus.FAILED: TaskResultStatus.FAILED,
    JobStatus.DEAD: TaskResultStatus.FAILED,
    JobStatus.CANCELLED: TaskResultStatus.FAILED,
}

_OURS = "flexiq_django.exceptions"


def get_result(backend: FlexiqBackend, result_id: Any) -> AnyResult:
    """See ``FlexiqBackend.get_result``."""
    key = check.parse_id(result_id) if isinstance(result_id, str) else None
    result = None if key is None else read_result(backend.flexiq_queue.scope, key)
    if result is None:
        raise TaskResultDoesNotExist(result_id)
    return result


def read_result(scope: Scope, key: UUID) -> AnyResult | None:
    """The result of a job; ``None`` if there is no such job of a task of the framework.

    However the job was stored: what counts is that its name is that of such a task. Raises
    ``TaskResultDoesNotExist`` if the task of the job is gone from the code.
    """
    row = reading.read(scope, key)
    if row is None:
        return None
    is_of_backend = row["origin"] == "django_task"
    if not is_of_backend and load_task(row["task_name"]) is None:
        return None
    # The notes of any other job are whatever its caller wrote there.
    notes = (decode_notes(row["notes"]) or {}) if is_of_backend else {}
    alias = _alias(notes)
    errors = reading.errors_of(scope, key) if row["retry_count"] or row["error"] else []
    args, kwargs = decode_call(row["payload"])
    began, last_began = _beginnings(scope, row, errors)
    result: AnyResult = TaskResult(
        task=_task(row, alias, notes),
        id=str(key),
        status=_STATUS[JobStatus(row["status"])],
        enqueued_at=shown(row["created_at"]),
        started_at=began,
        finished_at=shown(row["completed_at"]),
        last_attempted_at=last_began,
        args=list(args),
        kwargs=kwargs,
        backend=alias,
        errors=_errors(row, errors),
        worker_ids=_worker_ids(row, errors),
    )
    if row["result"] is not None:
        object.__setattr__(result, "_return_value", decode_result(row["result"]))
    return result


def shown(moment: datetime | None) -> datetime | None:
    """A time as Django gives it: naive in the current zone where the project says so."""
    if moment is None or django_settings.USE_TZ:
        return moment
    return timezone.make_naive(moment)


def _alias(notes: dict[str, Any]) -> str:
    """The backend that stored the job; another one of the scope if it is gone from ``TASKS``."""
    aliases = [backend.alias for backend in flexiq_backends()]
    alias = str(notes.get("backend", "default"))
    return alias if alias in aliases or not aliases else aliases[0]


def _task(row: dict[str, Any], alias: str, notes: dict[str, Any]) -> AnyTask:
    task = load_task(row["task_name"])
    if task is None:
        raise TaskResultDoesNotExist(
            f"the task of job {row['id']} is gone: there is none at {row['task_name']!r}"
        )
    run_after = notes.get("run_after")
    try:
        return task.using(
            priority=row["priority"],
            queue_name=row["queue"],
            run_after=None if run_after is None else datetime.fromisoformat(run_after),
            backend=alias,
        )
    except InvalidTask:  # its backend takes such a task no more, but it was taken once
        return task


def _errors(row: dict[str, Any], rows: list[dict[str, Any]]) -> list[TaskError]:
    texts = [each["error"] for each in rows]
    last = row["error"]
    if row["status"] == JobStatus.CANCELLED:  # there is no row for that, and perhaps no reason
        last = last or CANCELLED
    if last and last not in texts[-1:]:
        texts.append(last)
    return [_error(row, text) for text in texts]


def _error(row: dict[str, Any], text: str) -> TaskError:
    parsed = parse_error(text)
    path = parsed.errtype
    if not path:  # the system's own words
        path = f"{_OURS}.{_own_class(row, text)}"
    elif "." not in path:
        path = f"builtins.{path}"
    lines = "\n".join(parsed.traceback) or parsed.message
    return TaskError(exception_class_path=path, traceback=f"{lines}\n")


def _own_class(row: dict[str, Any], text: str) -> str:
    if row["status"] == JobStatus.CANCELLED and text in (row["error"], CANCELLED):
        return "TaskCancelledError"
    return "TaskTimeoutError" if text.startswith("job timed out") else "TaskFailedError"


def _worker_ids(row: dict[str, Any], errors: list[dict[str, Any]]) -> list[str]:
    """One for each attempt: of those that failed from their errors, of the rest the last worker."""
    failed = [each["worker_id"] or "" for each in errors][: row["attempt"]]
    return failed + [row["worker_id"] or ""] * (row["attempt"] - len(failed))


def _beginnings(
    scope: Scope, row: dict[str, Any], errors: list[dict[str, Any]]
) -> tuple[datetime | None, datetime | None]:
    """When the first and the last attempt began.

    The job itself remembers only the attempt at hand. Earlier ones are counted back from their
    ends, which errors and metrics keep.
    """
    last = row["started_at"]
    if row["attempt"] < 2 and (last or not errors):
        return shown(last), shown(last)
    ran = [
        ended - timedelta(milliseconds=duration_ms)
        for ended, duration_ms in reading.executions_of(scope, row["id"])
    ]
    known = sorted([*ran, *(each["failed_at"] for each in errors if not ran)])
    if last is not None:
        known.append(last)
    return (shown(known[0]), shown(known[-1])) if known else (None, None)
