"""Schedule rows: declare them, read what is due, move on and enqueue in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.core.records import NewJob
from flexiq_django.models import PeriodicTask
from flexiq_django.store import enqueue
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

SCHEDULES = PeriodicTask._meta.db_table

#: A schedule of the code that no worker has declared for this long no longer fires.
FORGOTTEN_AFTER_MS = 300_000

_NAMED = "namespace = %(namespace)s AND name = %(name)s"


#: Where a walk over the schedules stands: the next run and the id of the last that was read.
Place = tuple[datetime, int]


class ScheduleRow(NamedTuple):
    """A stored schedule."""

    id: int
    name: str
    task_name: str
    cron: str
    timezone: str
    payload: str
    queue: str | None
    misfire_policy: str
    misfire_window_ms: int
    enabled: bool
    next_run_at: datetime
    last_run_at: datetime | None
    missed_count: int


class Due(NamedTuple):
    """Schedules to fire, each with the database's time, and the seconds until the next is due.

    ``wait`` is ``None`` when no later one was read; ``after`` is where more may be due, if so.
    """

    ready: list[tuple[ScheduleRow, datetime]]
    wait: float | None
    after: Place | None


def declare(scope: Scope, row: dict[str, Any], next_run_at: datetime) -> None:
    """Store a schedule of the code, or bring the stored one up to date.

    ``next_run_at`` is used for a new schedule and for one whose timing changed: neither fires at
    once. Otherwise the stored next run stays, so that the misfire policy decides about runs that
    were missed while no worker was there. Whether it is enabled is the operator's choice and stays.
    """
    database = open_database(scope)
    names = ("task_name", "cron", "timezone", "payload", "queue", "misfire_policy",
             "misfire_window_ms")  # fmt: skip
    params = {**row, "next_run_at": database.moment(next_run_at)}
    changed = "(cron <> %(cron)s OR timezone <> %(timezone)s)"
    moved = f"CASE WHEN {changed} THEN %(next_run_at)s ELSE next_run_at END"
    found = database.change(
        f"UPDATE {SCHEDULES} SET"  # noqa: S608 - names are our own
        # MySQL assigns from left to right: judge the old timing before it is overwritten.
        f" next_run_at = {moved}, declared_at = {{now}},"
        f" {', '.join(f'{name} = %({name})s' for name in names)}"
        f" WHERE {_NAMED}",
        params,
    )
    if not found:
        _insert(scope, params, names)


def _insert(scope: Scope, params: dict[str, Any], names: Sequence[str]) -> None:
    database = open_database(scope)
    columns = ("name", *names, "next_run_at")
    with database.transaction():
        try:
            with database.savepoint():
                database.change(
                    f"INSERT INTO {SCHEDULES} ({', '.join(columns)}, namespace, enabled,"  # noqa: S608
                    " missed_count, declared_at)"
                    f" VALUES ({', '.join(f'%({name})s' for name in columns)}, %(namespace)s,"
                    f" {database.true}, 0, {{now}})",
                    params,
                )
        except Exception as error:
            if not database.clash(error):  # else another worker declared it first
                raise


def due(scope: Scope, *, limit: int = 100, after: Place | None = None) -> Due:
    """The next of the enabled schedules, in the order in which they are due."""
    database = open_database(scope)
    fresh = database.plus_ms("{now}", f"-{FORGOTTEN_AFTER_MS}")
    params: dict[str, Any] = {"limit": limit}
    behind = ""
    if after is not None:
        behind = " AND (next_run_at > %(at)s OR next_run_at = %(at)s AND id > %(id)s)"
        params |= {"at": database.moment(after[0]), "id": after[1]}
    rows = database.fetch(
        f"SELECT {', '.join(ScheduleRow._fields)}, {{now}} FROM {SCHEDULES}"  # noqa: S608
        f" WHERE namespace = %(namespace)s AND enabled = {database.true}"
        f" AND (declared_at IS NULL OR declared_at >= {fresh}){behind}"
        " ORDER BY next_run_at, id LIMIT %(limit)s",
        params,
    )
    if not rows:
        return Due([], None, None)
    now = database.read(rows[0][-1])
    assert now is not None  # noqa: S101 - a clock never answers NULL
    found = [_row(database, row[:-1]) for row in rows]
    ready = [(row, now) for row in found if row.next_run_at <= now]
    if len(ready) < len(found):
        return Due(ready, (found[len(ready)].next_run_at - now).total_seconds(), None)
    last = found[-1]
    return Due(ready, None, (last.next_run_at, last.id) if len(found) == limit else None)


def fire(
    scope: Scope,
    row: ScheduleRow,
    *,
    jobs: Sequence[NewJob],
    last_run_at: datetime | None,
    next_run_at: datetime,
    missed: int,
) -> list[UUID] | None:
    """Move a schedule on to its next run and store the jobs of this one, in one transaction.

    ``None``, and nothing written, when another process was faster: the old next run in the WHERE
    makes each occurrence fire once, however many processes try.
    """
    database = open_database(scope)
    with database.transaction():
        moved = database.change(
            f"UPDATE {SCHEDULES} SET next_run_at = %(next_run_at)s,"  # noqa: S608
            " missed_count = missed_count + %(missed)s,"
            " last_run_at = COALESCE(%(last_run_at)s, last_run_at),"
            " last_job_id = COALESCE(%(last_job_id)s, last_job_id)"
            " WHERE id = %(id)s AND next_run_at = %(due)s AND cron = %(cron)s"
            f" AND enabled = {database.true}",
            {
                "id": row.id,
                "cron": row.cron,
                "due": database.moment(row.next_run_at),
                "next_run_at": database.moment(next_run_at),
                "last_run_at": last_run_at and database.moment(last_run_at),
                "last_job_id": database.id_text(jobs[-1].id) if jobs else None,
                "missed": missed,
            },
        )
        return enqueue.insert_jobs(scope, jobs) if moved else None


def listing(scope: Scope) -> list[ScheduleRow]:
    """The schedules of the namespace by name."""
    database = open_database(scope)
    rows = database.fetch(
        f"SELECT {', '.join(ScheduleRow._fields)} FROM {SCHEDULES}"  # noqa: S608
        " WHERE namespace = %(namespace)s ORDER BY name"
    )
    return [_row(database, row) for row in rows]


def find(scope: Scope, name: str) -> ScheduleRow | None:
    """The schedule of this name, or ``None``."""
    database = open_database(scope)
    rows = database.fetch(
        f"SELECT {', '.join(ScheduleRow._fields)} FROM {SCHEDULES} WHERE {_NAMED}",  # noqa: S608
        {"name": name},
    )
    return _row(database, rows[0]) if rows else None


def pause(scope: Scope, name: str) -> bool:
    """Let a schedule fire no more. False if there is none of this name."""
    database = open_database(scope)
    sql = f"UPDATE {SCHEDULES} SET enabled = NOT {database.true} WHERE {_NAMED}"  # noqa: S608
    return database.change(sql, {"name": name}) > 0


def resume(scope: Scope, row: ScheduleRow, next_run_at: datetime) -> bool:
    """Let a schedule fire again, first at ``next_run_at``; one that is not paused stays as it is.

    False, and nothing done, if it is gone or its timing is not that of ``row`` any more.
    """
    database = open_database(scope)
    return (
        database.change(
            # MySQL assigns from left to right: whether it is paused is read first.
            f"UPDATE {SCHEDULES} SET"  # noqa: S608
            " next_run_at = CASE WHEN enabled THEN next_run_at ELSE %(next_run_at)s END,"
            f" enabled = {database.true}"
            f" WHERE {_NAMED} AND cron = %(cron)s AND timezone = %(timezone)s",
            {
                "name": row.name,
                "cron": row.cron,
                "timezone": row.timezone,
                "next_run_at": database.moment(next_run_at),
            },
        )
        > 0
    )


def delete(scope: Scope, name: str) -> bool:
    """Forget a schedule. False if there is none of this name."""
    database = open_database(scope)
    return database.change(f"DELETE FROM {SCHEDULES} WHERE {_NAMED}", {"name": name}) > 0  # noqa: S608


def _row(database: Any, values: tuple[Any, ...]) -> ScheduleRow:
    row = ScheduleRow._make(values)
    return row._replace(
        enabled=bool(row.enabled),
        next_run_at=database.read(row.next_run_at),
        last_run_at=database.read(row.last_run_at),
    )
