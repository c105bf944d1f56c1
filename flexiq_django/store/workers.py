"""Worker rows: who is alive, with which settings."""

from __future__ import annotations

import json
from typing import Any

from flexiq_django.core.records import LiveWorker
from flexiq_django.models import Worker
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

WORKERS = Worker._meta.db_table


def register(scope: Scope, worker: dict[str, Any], *, lease_ms: int) -> None:
    """Store the row of a worker that has just started. ``worker`` holds its describing columns."""
    database = open_database(scope)
    columns = [*worker, "namespace"]
    database.change(
        f"INSERT INTO {WORKERS} ({', '.join(columns)}, started_at, heartbeat_at, turned_at,"  # noqa: S608
        f" lease_at) VALUES ({', '.join(f'%({name})s' for name in columns)},"
        " {now}, {now}, {now},"
        f" {database.plus_ms('{now}', '%(lease_ms)s')})",
        {**worker, "lease_ms": lease_ms},
    )


def beat(
    scope: Scope,
    worker_id: str,
    *,
    lease_ms: int,
    state: str,
    clock_skew_ms: int,
    turn_age_ms: int = 0,
) -> bool:
    """Say that a worker is alive for ``lease_ms`` more, and how long ago its claim loop turned.

    False when its row is gone.
    """
    database = open_database(scope)
    return (
        database.change(
            f"UPDATE {WORKERS} SET heartbeat_at = {{now}}, state = %(state)s,"  # noqa: S608
            " clock_skew_ms = %(skew)s,"
            f" turned_at = {database.plus_ms('{now}', '%(turned_ms)s')},"
            f" lease_at = {database.plus_ms('{now}', '%(lease_ms)s')} WHERE id = %(worker_id)s",
            {
                "worker_id": worker_id,
                "lease_ms": lease_ms,
                "state": state,
                "skew": clock_skew_ms,
                "turned_ms": -turn_age_ms,
            },
        )
        > 0
    )


def remove(scope: Scope, worker_id: str) -> None:
    """Delete the row of a worker that stops."""
    open_database(scope).change(
        f"DELETE FROM {WORKERS} WHERE id = %(worker_id)s",  # noqa: S608
        {"worker_id": worker_id},
    )


def remove_gone(scope: Scope) -> int:
    """Delete the rows of workers that have not been heard of for an hour; how many.

    Their jobs do not depend on it: those come back by their own leases.
    """
    database = open_database(scope)
    return database.change(
        f"DELETE FROM {WORKERS} WHERE namespace = %(namespace)s"  # noqa: S608
        f" AND lease_at < {database.plus_ms('{now}', '-3600000')}"
    )


def live(scope: Scope) -> list[LiveWorker]:
    """The workers of the namespace that are alive, oldest first."""
    database = open_database(scope)
    names = [name for name in LiveWorker.__dataclass_fields__ if name != "namespace"]
    rows = database.fetch(
        f"SELECT {', '.join(names)} FROM {WORKERS} WHERE namespace = %(namespace)s"  # noqa: S608
        " AND lease_at > {now} ORDER BY started_at, id"
    )
    return [_worker(scope, dict(zip(names, row, strict=True)), database.read) for row in rows]


def _worker(scope: Scope, row: dict[str, Any], read: Any) -> LiveWorker:
    queues = json.loads(row["queues"])
    row["queues"] = None if queues is None else tuple(queues)
    row["config"] = json.loads(row["config"])
    row["started_at"] = read(row["started_at"])
    row["heartbeat_at"] = read(row["heartbeat_at"])
    row["turned_at"] = read(row["turned_at"])
    return LiveWorker(namespace=scope.namespace, **row)
