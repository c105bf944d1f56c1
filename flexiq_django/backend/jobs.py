"""From a task of the framework to a job."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import transaction

from flexiq_django.api import storing
from flexiq_django.api.jobs import EnqueueOptions, build_jobs
from flexiq_django.backend import results, telling
from flexiq_django.backend.finding import load_task
from flexiq_django.backend.framework import (
    AnyResult,
    AnyTask,
    InvalidTask,
    TaskResult,
    TaskResultStatus,
    task_enqueued,
)
from flexiq_django.backend.values import to_json

if TYPE_CHECKING:
    from flexiq_django.backend.task_backend import FlexiqBackend

#: The word for these jobs in the column ``origin``.
ORIGIN = "django_task"


def enqueue(
    backend: FlexiqBackend, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> AnyResult:
    """Store the job; see ``FlexiqBackend.enqueue``."""
    call = (to_json(list(args)), to_json(dict(kwargs)))
    _require_findable(task)
    queue = backend.flexiq_queue
    (job,) = build_jobs(queue, task.module_path, [call], _options(backend, task))
    (handle,) = storing.store_jobs(queue, [dataclasses.replace(job, origin=ORIGIN)])
    result: AnyResult = TaskResult(
        task=task,
        id=handle.id,
        status=TaskResultStatus.READY,
        enqueued_at=results.shown(handle.record.created_at),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=call[0],
        kwargs=call[1],
        backend=backend.alias,
        errors=[],
        worker_ids=[],
    )
    transaction.on_commit(
        partial(telling.tell, task_enqueued, dataclasses.replace(result)),
        using=queue.place.using,
        robust=True,
    )
    if storing.runs_at_once():
        result.refresh()
    return result


def _options(backend: FlexiqBackend, task: AnyTask) -> EnqueueOptions:
    options = backend.flexiq_options
    chosen: EnqueueOptions = {
        "priority": int(task.priority),
        "queue": task.queue_name,
        "run_at": task.run_after,
        "max_retries": options.MAX_RETRIES,
        "timeout": options.TIMEOUT,
        "result_ttl": options.RESULT_TTL,
        # What the columns of a job do not say of a result.
        "notes": {"backend": backend.alias},
    }
    if task.run_after is not None:
        chosen["notes"] = {"backend": backend.alias, "run_after": task.run_after.isoformat()}
    return chosen


def _require_findable(task: AnyTask) -> None:
    """Raises ``InvalidTask`` if a worker would not find the task under its path."""
    found = load_task(task.module_path)
    if found is None or found.func is not task.func:
        raise InvalidTask(
            f"there is no task at {task.module_path!r}, so no worker can find it: decorate the"
            " function where it is defined, under its own name"
        )
