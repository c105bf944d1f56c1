"""A crowd of rows beside those a query is after, for the tests of query plans.

Two thousand of every kind that could get in its way: ready at a lower priority, ready in another
lane, due later, waiting for parents, in the lines of sessions, paused, running, ended; and
some of each in another namespace.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from django.db.models import Model

from flexiq_django.models import ArchivedJob, DeadLetter, Job, TaskMetric
from flexiq_django.store.ids import new_ids
from flexiq_django.store.keys import active_key
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from tests.store import plans

TRAPS = 2_000
WANTED = 30
SCOPE = Scope()
HOUR = timedelta(hours=1)

#: The namespaces and the part of the crowd each has. The one under test comes last: its jobs are
#: the newest.
NAMESPACES = (("elsewhere", 5), ("default", 1))


def stored(blocker: Any, fill: Callable[[], None], *models: type[Model]) -> Iterator[None]:
    """For the fixture of a module: what ``fill`` stores, committed, until its tests have ended.

    Committed since on MariaDB ANALYZE ends a transaction.
    """
    with blocker.unblock():
        try:
            fill()
            plans.analyze()
            yield
        finally:
            for model in models:
                model.objects.all().delete()


def store_crowd(namespace: str, share: int, now: datetime) -> None:
    """Jobs in every state, archived jobs and dead letters."""
    pending: dict[str, Any] = {"status": "pending"}
    running: dict[str, Any] = {"status": "running", "token": 1, "attempt": 1}
    ended: dict[str, Any] = {"status": "complete", "attempt": 1}
    held = {**pending, "session_id": "visit", "session_line": "visit"}
    store(Job, TRAPS // share, {**job_fields(namespace, now), **held})
    lines = [{"session_id": name, "session_line": name} for name in names(500 // share)]
    store(Job, len(lines), {**job_fields(namespace, now), **pending}, lines)
    slots = [{"session_id": name, "session_slot": name} for name in ("visit", *names(500 // share))]
    paused = {**pending, "status": "paused"}
    store(Job, len(slots), {**job_fields(namespace, now), **paused}, slots)
    for count, fields in [
        (WANTED, {**pending, "ready_lane": "mail", "priority": 9}),
        (TRAPS, {**pending, "ready_lane": "mail"}),
        (TRAPS, {**pending, "ready_lane": "other"}),
        (WANTED, {**pending, "ready_lane": "third", "priority": 9}),
        (WANTED, {**pending, "promote_at": now - HOUR}),
        (TRAPS, {**pending, "promote_at": now + HOUR}),
        (TRAPS, pending),
        (WANTED, {**pending, "promote_at": now + HOUR, "expires_at": now - HOUR}),
        (TRAPS, {**pending, "promote_at": now + HOUR, "expires_at": now + HOUR}),
        (WANTED, {**running, "lease_at": now - HOUR}),
        (TRAPS, {**running, "lease_at": now + HOUR}),
        (WANTED, {**ended, "completed_at": now - 48 * HOUR, "purge_at": now - HOUR}),
        (TRAPS, {**ended, "completed_at": now - HOUR, "purge_at": now + HOUR}),
        (TRAPS, {**ended, "completed_at": now - HOUR}),
    ]:
        store(Job, count // share, {**job_fields(namespace, now), **fields})
    keys = [{"active_key": active_key(f"key-{number}")} for number in range(TRAPS // share)]
    store(Job, len(keys), {**job_fields(namespace, now), **pending}, keys)
    # PostgreSQL reads a table of a few pages whole, and is right to.
    for count, purge_at in ((WANTED, now - HOUR), (TRAPS, now + HOUR), (8 * TRAPS, None)):
        kept = {"status": "complete", "completed_at": now - HOUR, "archived_at": now}
        history = {"purge_at": purge_at} if purge_at else {}
        store(ArchivedJob, count // share, {**job_fields(namespace, now), **kept, **history})
        store(DeadLetter, count // share, {**letter_fields(namespace, now), **history})


def names(count: int) -> list[str]:
    """Names of sessions."""
    return [f"session {number:04}" for number in range(count)]


def job_fields(namespace: str, now: datetime) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "queue": "mail",
        "task_name": "app.tasks.work",
        "status": "pending",
        "priority": 0,
        "payload": "[[],{}]",
        "created_at": now,
        "scheduled_at": now,
        "updated_at": now,
        "attempt": 0,
        "retry_count": 0,
        "max_retries": 3,
        "origin": "task",
    }


def letter_fields(namespace: str, now: datetime) -> dict[str, Any]:
    taken = ("namespace", "queue", "task_name", "payload", "priority", "retry_count", "max_retries")
    job = job_fields(namespace, now)
    own = {"original_job_id": None, "failed_at": now, "dlq_retry_count": 0}
    return {**{name: job[name] for name in taken}, **own}


def store(
    model: type[Model],
    count: int,
    fields: dict[str, Any],
    own: Sequence[dict[str, Any]] = (),
    scope: Scope = SCOPE,
) -> None:
    """Rows alike but for their ids and what is their ``own``, in one statement."""
    database = open_database(scope)
    columns = {"id": "id", **dict.fromkeys(own[0] if own else (), "text")}
    values = {name: f"b.{name}" for name in columns}
    own_ids = ("original_job_id", "replay_job_id", "job_id")
    values.update((name, "b.id" if name in own_ids else f"%({name})s") for name in fields)
    if model is TaskMetric:  # the database numbers them
        del values["id"]
    keys = [{"id": database.id_text(key)} for key in new_ids(count)]
    batch = json.dumps([{**key, **more} for key, more in zip_longest(keys, own, fillvalue={})])
    params = {
        name: database.moment(value) if isinstance(value, datetime) else value
        for name, value in fields.items()
    }
    database.change(
        f"INSERT INTO {model._meta.db_table} ({', '.join(values)})"
        f" SELECT {', '.join(values.values())} FROM {database.rows_from_json('batch', columns)}",
        {**params, "batch": batch},
    )
