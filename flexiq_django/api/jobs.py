"""From the options of an enqueue call to the jobs that will be stored."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from flexiq_django.api import options as check
from flexiq_django.api.registry import tasks_of
from flexiq_django.api.task import Task
from flexiq_django.conf import get_settings
from flexiq_django.core.payload import encode_call, encode_notes
from flexiq_django.core.records import NewJob
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.store.ids import new_ids

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue
    from flexiq_django.api.result import JobResult


class EnqueueOptions(TypedDict, total=False):
    """Options of one enqueue call. Seconds may be fractions. ``None`` means as if not given."""

    #: Larger runs first, across all queues that a worker serves.
    priority: int | None
    #: Seconds to wait before the job may start.
    delay: float | None
    #: When the job may start: an aware datetime, instead of ``delay``.
    run_at: datetime | None
    #: The queue to wait in.
    queue: str | None
    #: Attempts allowed after the first failed one.
    max_retries: int | None
    #: Seconds one attempt may take.
    timeout: float | None
    #: While a job with this key has not ended, the call returns that job instead of a new one.
    unique_key: str | None
    #: Another name for ``unique_key``.
    idempotency_key: str | None
    #: Whether a call without a key takes one that stands for the task and the arguments.
    idempotent: bool | None
    #: Seconds after which it is too late to start.
    expires: float | None
    #: Seconds after its end at which the job and all its records are deleted.
    result_ttl: float | None
    #: Free text kept with the job.
    metadata: str | None
    #: A small dict kept with the job.
    notes: dict[str, Any] | None
    #: Jobs (or their ids) that must complete first.
    depends_on: JobResult | str | UUID | Sequence[JobResult | str | UUID] | None
    #: Run the job also when a job in ``depends_on`` fails or is cancelled.
    allow_parent_failure: bool
    #: Jobs of one session run one at a time, in the order in which they are due.
    session_id: str | None
    #: Label of the user the job was submitted for.
    user_id: str | None
    #: Only workers of this deployment may run the job.
    deployment_id: str | None
    #: Label that ties the job to a trace.
    trace_id: str | None


_KNOWN = frozenset(EnqueueOptions.__annotations__)


def build_jobs(
    queue: Queue,
    task: Task[Any, Any] | str,
    calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
    options: Mapping[str, Any],
    *,
    rows: Sequence[Mapping[str, Any]] | None = None,
) -> list[NewJob]:
    """One job for each call, checked completely before anything is stored.

    ``options`` hold for all of them, ``rows`` for each alone. Raises the named error of the first
    thing that is not allowed.
    """
    _refuse_unknown(options)
    found = task if isinstance(task, Task) else _find(queue, task)
    shared = _fields(queue, found, task, options)
    is_idempotent = _is_idempotent(found, options)
    limit = get_settings().MAX_PAYLOAD_BYTES
    jobs = []
    for number, (key, (args, kwargs)) in enumerate(zip(new_ids(len(calls)), calls, strict=True)):
        if found is not None:
            found.check_call(args, kwargs)
        own = _row_fields(rows[number]) if rows else {}
        if "delay_ms" in own and "run_at" in shared:
            raise InvalidOptionError("delay and run_at are both given; allowed is one of them")
        payload = encode_call(args, kwargs, limit_bytes=limit)
        fields = {**shared, **own}
        if is_idempotent and "unique_key" not in fields:
            fields["unique_key"] = _key_of(fields["task_name"], args, kwargs, limit)
        jobs.append(NewJob(id=key, payload=payload, **fields))
    return jobs


def _find(queue: Queue, name: str) -> Task[Any, Any] | None:
    """The task of this name that the workers of the queue run, as far as this process knows."""
    return queue.tasks.get(name) or tasks_of(queue.place).get(name)


def _is_idempotent(task: Task[Any, Any] | None, given: Mapping[str, Any]) -> bool:
    """Whether jobs without a key take one from their arguments: the call says, else the task."""
    said = check.check_flag("idempotent", given.get("idempotent"))
    return said if said is not None else task is not None and task.options.idempotent


def _key_of(task_name: str, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> str:
    """A key that stands for a call, in whichever order its keywords were given."""
    call = encode_call(args, dict(sorted(kwargs.items())), limit_bytes=limit)
    digest = hashlib.sha256(f"{task_name}\0{call}".encode()).hexdigest()
    return f"auto:{digest[:32]}"


def with_ids(jobs: Sequence[NewJob]) -> list[NewJob]:
    """The same jobs under new ids."""
    return [
        dataclasses.replace(job, id=key) for key, job in zip(new_ids(len(jobs)), jobs, strict=True)
    ]


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    unknown = sorted(set(options) - _KNOWN)
    if unknown:
        raise TypeError(
            f"unknown enqueue option {', '.join(unknown)}; known are {', '.join(sorted(_KNOWN))}"
        )


def _fields(
    queue: Queue, task: Task[Any, Any] | None, named: Task[Any, Any] | str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Fields every job of the call shares: the call's own, else the task's, else the queue's."""
    own = {name: value for name, value in given.items() if value is not None}
    brought = _brought(task)
    settings = get_settings()
    name = named.name if isinstance(named, Task) else named
    choose = {**queue.defaults, **brought, **own}
    return {
        "task_name": check.check_name("task", name, longest=200),
        "queue": check.check_name("queue", choose["queue"], longest=100),
        "priority": check.check_priority("priority", choose["priority"]),
        "max_retries": check.check_whole(
            "max_retries", choose["max_retries"], least=0, most=2**31 - 1
        ),
        "timeout_ms": check.check_seconds("timeout", choose.get("timeout"), above_zero=True),
        "metadata": check.check_text("metadata", own.get("metadata")),
        "notes": encode_notes(own.get("notes")),
        "parents": check.check_parents(own.get("depends_on")),
        "allow_parent_failure": bool(
            check.check_flag("allow_parent_failure", own.get("allow_parent_failure"))
        ),
        "is_limited": task is not None and task.options.is_limited,
        "deployment_id": _label("deployment_id", own.get("deployment_id"), settings.DEPLOYMENT_ID),
        "session_id": check.check_text("session_id", own.get("session_id"), longest=200),
        "user_id": check.check_text("user_id", own.get("user_id"), longest=200),
        "trace_id": check.check_text("trace_id", own.get("trace_id"), longest=200),
        **_row_fields({"result_ttl": choose.get("result_ttl"), **_timing(own)}),
    }


def _brought(task: Task[Any, Any] | None) -> dict[str, Any]:
    if task is None:
        return {}
    options = task.options
    brought = {
        "queue": options.queue,
        "priority": options.priority,
        "max_retries": options.max_retries,
        "timeout": options.timeout,
        "result_ttl": options.result_ttl,
    }
    return {name: value for name, value in brought.items() if value is not None}


def _timing(own: Mapping[str, Any]) -> dict[str, Any]:
    names = ("delay", "run_at", "expires", "unique_key", "idempotency_key")
    return {name: own[name] for name in names if name in own}


def _row_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that may differ from row to row of a bulk call, as far as they are given."""
    fields: dict[str, Any] = {}
    if row.get("delay") is not None and row.get("run_at") is not None:
        raise InvalidOptionError("delay and run_at are both given; allowed is one of them")
    for name in ("delay", "expires", "result_ttl"):
        if row.get(name) is not None:
            fields[f"{name}_ms"] = check.check_seconds(name, row[name])
    if row.get("run_at") is not None:
        fields["run_at"] = check.check_moment("run_at", row["run_at"])
    key = row.get("unique_key")
    key = row.get("idempotency_key") if key is None else key
    if key is not None:
        fields["unique_key"] = check.check_text("unique_key", key, longest=255)
    if row.get("metadata") is not None:
        fields["metadata"] = check.check_text("metadata", row["metadata"])
    if row.get("notes") is not None:
        fields["notes"] = encode_notes(row["notes"])
    return fields


def _label(option: str, value: Any, default: str | None) -> str | None:
    chosen = default if value is None else value
    return None if chosen is None else check.check_name(option, chosen, longest=100)
