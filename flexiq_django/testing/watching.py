"""See what was enqueued."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flexiq_django.api import default, storing
from flexiq_django.api.queue import Queue
from flexiq_django.api.result import JobResult
from flexiq_django.api.task import Task
from flexiq_django.core.payload import decode_call
from flexiq_django.store import reading

#: How many jobs a failed assertion shows.
_SHOWN = 10


@contextlib.contextmanager
def captured_jobs() -> Iterator[list[JobResult]]:
    """The list fills with the jobs that are enqueued inside the block, in their order.

    Runs of schedules are not among them. A call that gave an existing job, as a unique key does,
    adds that job.
    """
    jobs: list[JobResult] = []

    def watch(_queue: Queue, handles: Sequence[JobResult]) -> None:
        jobs.extend(handles)

    storing.watchers.append(watch)
    try:
        yield jobs
    finally:
        storing.watchers.remove(watch)


def assert_enqueued(
    task: Task[Any, Any] | Any,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    count: int | None = None,
) -> list[JobResult]:
    """The jobs of a task that are stored, whatever became of them; ``AssertionError`` if none is.

    ``task`` is a task of ours, one of Django's framework, or a name. ``args`` and ``kwargs`` are
    compared with what the job will be called with, ``queue`` with the name of its queue; what is
    not given does not matter. With ``count`` there must be exactly so many; 0 says there is none.
    """
    home, name = _home(task)
    calls = [
        (call, decode_call(call.payload)) for call in reading.calls_of(home.scope, task_name=name)
    ]
    found = [
        call
        for call, (call_args, call_kwargs) in calls
        if (args is None or list(call_args) == list(args))
        and (kwargs is None or call_kwargs == dict(kwargs))
        and queue in (None, call.queue)
    ]
    if (count is None and found) or len(found) == count:
        return [JobResult(home, call.id) for call in found]
    raise AssertionError(_complaint(name, calls, args, kwargs, queue, count, len(found)))


def _home(task: Any) -> tuple[Queue, str]:
    if isinstance(task, Task):
        return task.queue, task.name
    if isinstance(task, str):
        return default.queue, task
    backend = task.get_backend()
    return getattr(backend, "flexiq_queue", default.queue), task.module_path


def _complaint(
    name: str,
    calls: Sequence[tuple[reading.QueuedCall, tuple[tuple[Any, ...], dict[str, Any]]]],
    args: Any,
    kwargs: Any,
    queue: str | None,
    count: int | None,
    found: int,
) -> str:
    given = {"args": args, "kwargs": kwargs, "queue": queue}
    wanted = "".join(f" {key}={value!r}" for key, value in given.items() if value is not None)
    lines = [f"{found} jobs of {name}{wanted}; expected {'1 or more' if count is None else count}"]
    lines += [
        f"  {call.queue}: args={list(call_args)!r} kwargs={call_kwargs!r} ({call.status})"
        for call, (call_args, call_kwargs) in calls[:_SHOWN]
    ]
    if not calls:
        lines.append("  there is no job of this task")
    elif len(calls) > _SHOWN:
        lines.append(f"  and {len(calls) - _SHOWN} more")
    return "\n".join(lines)
