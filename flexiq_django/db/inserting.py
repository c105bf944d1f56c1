"""Insert jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

from flexiq_django.api import options as check
from flexiq_django.api.jobs import EnqueueOptions, build_jobs
from flexiq_django.api.storing import store_jobs
from flexiq_django.db.database import JobDatabase, task_of

#: The task name of jobs that are given none. No worker knows a task of this name.
UNNAMED = "flexiq_django.db"


def insert_job(
    db: JobDatabase,
    data: Any,
    *,
    task_name: str = UNNAMED,
    queue: str | None = None,
    priority: int | None = None,
    max_retries: int | None = None,
) -> str:
    """Insert a job, in the transaction the caller is in; its id.

    ``data`` is any value that arguments may hold, stored as the only argument of a call. With the
    ``task_name`` of a declared task a ``flexiq_worker`` may run the job as well, and what is not
    given comes from that task; else from the settings. The larger ``priority`` is claimed first;
    ``max_retries`` attempts are allowed after the first failed one.

    Raises the named error of whatever is not allowed before anything is written:
    ``SerializationError``, ``PayloadTooLargeError``, ``InvalidOptionError``,
    ``InvalidArgumentsError``, ``TaskRevokedError``, ``QueueFull``.
    """
    options = {"queue": queue, "priority": priority, "max_retries": max_retries}
    return _insert(db, data, task_name, options)


def insert_job_with_trace(
    db: JobDatabase,
    data: Any,
    trace_id: str | None = None,
    *,
    task_name: str = UNNAMED,
    queue: str | None = None,
    priority: int | None = None,
    max_retries: int | None = None,
) -> str:
    """:func:`insert_job` with a label of up to 200 characters that ties the job to a trace.

    Raises what that raises, ``QueueFull`` among it.
    """
    options = {"queue": queue, "priority": priority, "max_retries": max_retries}
    return _insert(db, data, task_name, {**options, "trace_id": trace_id})


def insert_job_full(
    db: JobDatabase,
    data: Any,
    *,
    task_name: str = UNNAMED,
    attempt_id: str | None = None,
    trial_id: str | None = None,
    **options: Unpack[EnqueueOptions],
) -> str:
    """:func:`insert_job` with everything that can be said of a job.

    ``attempt_id`` and ``trial_id`` (up to 200 characters each) are its place in a lineage that you
    keep elsewhere; they are stored and shown, nothing else. ``options`` are those of
    ``queue.enqueue()``. With a ``unique_key`` that is held the id of its holder is returned and
    nothing is stored. Raises what ``insert_job`` raises, ``QueueFull`` among it, and
    ``DependencyError`` and ``UniqueKeyError``.
    """
    return _insert(
        db,
        data,
        task_name,
        dict(options),
        attempt_id=check.check_text("attempt_id", attempt_id, longest=200),
        trial_id=check.check_text("trial_id", trial_id, longest=200),
    )


def _insert(
    db: JobDatabase,
    data: Any,
    task_name: str,
    options: dict[str, Any],
    *,
    attempt_id: str | None = None,
    trial_id: str | None = None,
) -> str:
    name = check.check_name("task_name", task_name, longest=200)
    if options.get("deployment_id") is None:
        options["deployment_id"] = db.deployment_id
    jobs = build_jobs(db.queue, task_of(db, name) or name, [((data,), {})], options)
    jobs = [replace(job, attempt_id=attempt_id, trial_id=trial_id) for job in jobs]
    (handle,) = store_jobs(db.queue, jobs)
    return handle.id
