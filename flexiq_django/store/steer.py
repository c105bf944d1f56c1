"""What an operator or the code says about queues and tasks: pauses, limits, revocations.

Rows come into being when something is first said about a queue or task, and stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q

from flexiq_django.core.status import JobStatus
from flexiq_django.models import Job, QueueState, TaskState
from flexiq_django.store import dependencies, history, sessions
from flexiq_django.store.gates import QUEUES, TASKS
from flexiq_django.store.listing import of_status
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS

_CANCELLED = JobStatus.CANCELLED.value
_LIMITS = ("rate_limit", "max_concurrent", "retry_budget")


# --- queues ---------------------------------------------------------------------------------------


def set_queue(scope: Scope, queue: str, **limits: Any) -> None:
    """Store ``rate_limit`` or ``max_concurrent`` of a queue; ``None`` lifts it.

    What is left in the token bucket stays, so setting a limit anew does not fill it.
    """
    _assign(scope, QUEUES, queue, {name: f"%({name})s" for name in limits}, limits)


def pause(scope: Scope, queue: str) -> None:
    """No worker claims from the queue until it is resumed. Pausing again changes nothing."""
    _assign(scope, QUEUES, queue, {"paused_at": "COALESCE(paused_at, {now})"}, {})


def resume(scope: Scope, queue: str) -> bool:
    """End a pause. False if there was none."""
    rows = QueueState.objects.using(scope.using).filter(
        namespace=scope.namespace, name=queue, paused_at__isnull=False
    )
    return bool(rows.update(paused_at=None))


def queue_limits(scope: Scope) -> list[dict[str, Any]]:
    """Name, pause and limits of every queue that something was said about, by name."""
    rows = QueueState.objects.using(scope.using).filter(namespace=scope.namespace)
    columns = ("name", "paused_at", "rate_limit", "max_concurrent")
    return [
        dict(zip(columns, row, strict=True)) for row in rows.order_by("name").values_list(*columns)
    ]


# --- tasks ----------------------------------------------------------------------------------------


def revoke(scope: Scope, task: str) -> None:
    """Refuse new jobs of the task until it is allowed again."""
    _assign(scope, TASKS, task, {"revoked_at": "COALESCE(revoked_at, {now})"}, {})


def unrevoke(scope: Scope, task: str) -> bool:
    """Allow new jobs of the task again. False if they were not refused."""
    rows = TaskState.objects.using(scope.using).filter(
        namespace=scope.namespace, name=task, revoked_at__isnull=False
    )
    return bool(rows.update(revoked_at=None))


def revoked_tasks(scope: Scope) -> list[str]:
    """The names of revoked tasks, in order."""
    rows = TaskState.objects.using(scope.using).filter(
        namespace=scope.namespace, revoked_at__isnull=False
    )
    return list(rows.order_by("name").values_list("name", flat=True))


def declare_limits(scope: Scope, limits: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the limits that the code gives its tasks, by name; ``None`` lifts one.

    Rows that say the same already are not written.
    """
    is_limited = (
        Q(rate_limit__isnull=False)
        | Q(max_concurrent__isnull=False)
        | Q(retry_budget__isnull=False)
    )
    stored = {
        name: values
        for name, *values in TaskState.objects.using(scope.using)
        .filter(is_limited, namespace=scope.namespace)
        .values_list("name", *_LIMITS)
    }
    for name, given in sorted(limits.items()):
        wanted = [given.get(limit) for limit in _LIMITS]
        if wanted != stored.get(name, [None, None, None]):
            _assign(scope, TASKS, name, {limit: f"%({limit})s" for limit in _LIMITS},
                    dict(zip(_LIMITS, wanted, strict=True)))  # fmt: skip


# --- pending jobs ---------------------------------------------------------------------------------


def cancel_pending(scope: Scope, *, error: str, **column: str) -> int:
    """Cancel every pending job with this ``queue`` or ``task_name``, and all that depend on one.

    How many were cancelled, the dependents not counted. In small batches, each of them complete in
    itself; jobs enqueued after the start may stay.
    """
    cancelled = 0
    for ids in _pending(scope, column):
        database = open_database(scope)
        with database.transaction():
            done = database.update_joined(
                JOBS,
                dependencies.cancel_assignments(database, error="%(error)s"),
                {"id": "id"},
                [{"id": database.id_text(key)} for key in ids],
                "j.status = 'pending'",
                {"error": error},
            )
            history.note_replay_errors(database, done)
            sessions.hand_on_after(database, done)
            dependencies.resolve(database, dict.fromkeys(done, _CANCELLED))
        cancelled += len(done)
    return cancelled


def _pending(scope: Scope, column: Mapping[str, str]) -> Iterator[list[UUID]]:
    """The ids of pending jobs in pages, oldest first."""
    size = open_database(scope).batch_size
    rows = Job.objects.using(scope.using).filter(
        of_status(JobStatus.PENDING), namespace=scope.namespace, **column
    )
    last = rows.order_by("-id").values_list("id", flat=True).first()
    ids: list[UUID] = []
    while last is not None:
        page = rows.filter(id__lte=last)
        page = page.filter(id__gt=ids[-1]) if ids else page
        ids = list(page.order_by("id").values_list("id", flat=True)[:size])
        if ids:
            yield ids
        if len(ids) < size:
            return


# --- helpers --------------------------------------------------------------------------------------


def _assign(
    scope: Scope, table: str, name: str, values: Mapping[str, str], params: Mapping[str, Any]
) -> None:
    """Set columns of the row of this name, which is made if it is not there."""
    database = open_database(scope)
    changes = ", ".join(f"{column} = {sql}" for column, sql in values.items())
    update = f"UPDATE {table} SET {changes} WHERE namespace = %(namespace)s AND name = %(name)s"  # noqa: S608
    bound = {**params, "name": name}
    with database.transaction():
        if database.change(update, bound):
            return
        try:
            with database.savepoint():
                database.change(
                    f"INSERT INTO {table} (namespace, name) VALUES (%(namespace)s, %(name)s)",  # noqa: S608
                    bound,
                )
        except Exception as error:
            if not database.clash(error):  # else somebody else made it in between
                raise
        database.change(update, bound)
