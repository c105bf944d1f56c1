"""Delete history: what is older than its table's window, and what has outlived its own lifetime.

``sweeps`` says what there is to do, ``sweep_batch`` does a bit of it, ``count`` says how much there
is. All three look at rows by the same conditions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.core.retention import (
    TABLES,
    EffectiveRetention,
    RetentionPolicy,
    decode_report,
    encode_report,
)
from flexiq_django.models import (
    ArchivedJob,
    DeadLetter,
    Job,
    JobDependency,
    JobError,
    ReplayHistory,
    TaskLog,
    TaskMetric,
)
from flexiq_django.store import dependencies, inspect, settings
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Database
from flexiq_django.store.walk import Old, moment_ago, page

JOBS = Job._meta.db_table
ARCHIVE = ArchivedJob._meta.db_table
DEAD = DeadLetter._meta.db_table

#: What makes no sense without its job, and the column that names the job.
EDGES_AND_REPLAYS = (
    (JobDependency._meta.db_table, "job_id"),
    (JobDependency._meta.db_table, "parent_id"),
    (ReplayHistory._meta.db_table, "original_job_id"),
)
#: Everything that belongs to a job, and the column that names the job.
CHILDREN = (
    (JobError._meta.db_table, "job_id"),
    (TaskLog._meta.db_table, "job_id"),
    (TaskMetric._meta.db_table, "job_id"),
    *EDGES_AND_REPLAYS,
)

#: By window: the tables it bounds, each with the time its rows are judged by.
_AGED = {
    "archived_jobs": ((JOBS, "completed_at"), (ARCHIVE, "completed_at")),
    "dead_letter": ((DEAD, "failed_at"),),
    "task_logs": ((TaskLog._meta.db_table, "logged_at"),),
    "task_metrics": ((TaskMetric._meta.db_table, "recorded_at"),),
    "job_errors": ((JobError._meta.db_table, "failed_at"),),
}
#: Tables whose rows can have a lifetime of their own. Those that have ignore the window.
_MORTAL = {JOBS: "archived_jobs", ARCHIVE: "archived_jobs", DEAD: "dead_letter"}


Moment = datetime | None


class Sweep(NamedTuple):
    """Rows of one table to delete: older than ``window_ms``, or with ``None`` past ``purge_at``.

    ``name`` is the window they are counted under.
    """

    name: str
    table: str
    column: str
    window_ms: int | None = None


#: Where the next batch goes on.
Place = datetime | Old | None


class Swept(NamedTuple):
    """How many rows went, and where to look for more; ``None`` when there are none."""

    removed: int
    after: Place


def sweeps(windows: Mapping[str, int | None]) -> list[Sweep]:
    """What there is to sweep. Rows past a lifetime of their own go whatever the windows are."""
    own = [Sweep(name, table, "purge_at") for table, name in _MORTAL.items()]
    aged = [
        Sweep(name, table, column, window_ms)
        for name, window_ms in windows.items()
        if window_ms is not None
        for table, column in _AGED[name]
    ]
    return own + aged


def sweep_batch(
    scope: Scope,
    sweep: Sweep,
    *,
    after: Place = None,
    as_of: Moment = None,
    limit: int | None = None,
    only_free: bool = False,
) -> Swept:
    """Delete up to ``limit`` rows, the oldest first, in one short transaction.

    ``after`` comes from the batch before: the next one need not step over what that deleted.
    ``as_of`` is the moment at which rows are old enough; without one it is the present.
    ``only_free`` leaves jobs that somebody has locked to a later sweep.
    A job takes its edges and its replay history with it, and the dependents that still wait for it
    move. One that is past its own lifetime takes along all that belongs to it.
    """
    database = _judging(scope, as_of)
    size = limit or database.batch_size
    if sweep.table == JOBS and sweep.window_ms is not None:
        picked = _pick_old_jobs(database, sweep.window_ms, after, size)
        return _sweep_jobs(scope, sweep, picked, only_free)
    where, params = _condition(database, sweep)
    if isinstance(after, datetime):
        where += f" AND {sweep.column} >= %(after)s"
        params["after"] = database.moment(after)
    if sweep.table in (JOBS, ARCHIVE):
        picked = _pick_jobs(database, sweep, where, params, size)
        return _sweep_jobs(scope, sweep, picked, only_free)
    oldest = database.fetch(
        f"SELECT {sweep.column} FROM {sweep.table} WHERE {where}"  # noqa: S608
        f" ORDER BY {sweep.column} LIMIT 1",
        params,
    )
    if not oldest:
        return Swept(0, None)
    removed = database.delete_batch(sweep.table, where, size, params, order=sweep.column)
    # Few or none may have gone because others deleted them first: that is not the end.
    return Swept(removed, database.read(oldest[0][0]))


def count(scope: Scope, windows: Mapping[str, int | None]) -> tuple[datetime, dict[str, int]]:
    """How many rows a sweep would delete now, by table, and what now is for the database."""
    now = inspect.read_clock(scope)
    database = _judging(scope, now)  # one moment for every table
    counts = dict.fromkeys(TABLES, 0)
    for sweep in sweeps(windows):
        where, params = _condition(database, sweep)
        rows = database.fetch(f"SELECT COUNT(*) FROM {sweep.table} WHERE {where}", params)  # noqa: S608
        counts[sweep.name] += int(rows[0][0])
    return now, counts


def delete_jobs(
    database: Database,
    table: str,
    ended: Mapping[UUID, str],
    *,
    children: Sequence[tuple[str, str]] = CHILDREN,
) -> int:
    """Delete ended jobs of one table with all that belongs to them; how many jobs went.

    ``ended`` maps their ids to their statuses. A dependent that was enqueued while its parent ended
    may still wait for it: it moves now, as nobody could tell afterwards whom it waited for.
    """
    if not ended:
        return 0
    dependencies.resolve(database, ended)
    removed = database.delete_rows(table, ended, " AND completed_at IS NOT NULL")
    for child, column in children:
        condition, params = database.among(column, ended)
        if column == "parent_id":
            # One that is open was committed since we looked. Whoever stored it looks at it next,
            # and finds that the parent is gone; without the edge the dependent would wait for ever.
            condition += " AND is_open = false"
        database.change(f"DELETE FROM {child} WHERE {condition}", params)  # noqa: S608
    return removed


# --- the report of the cleaner --------------------------------------------------------------------


def report(scope: Scope, policy: RetentionPolicy) -> None:
    """Say for the whole deployment which policy the cleaner of this namespace applies."""
    now = inspect.read_clock(scope)
    text = encode_report(policy, namespace=scope.namespace, reported_at=int(now.timestamp() * 1000))
    settings.put(scope, _report_key(scope), text)


def reported(scope: Scope) -> EffectiveRetention | None:
    """What the cleaner last said; ``None`` if it never did, or if that cannot be read."""
    return decode_report(settings.get(scope, _report_key(scope)))


# --- helpers --------------------------------------------------------------------------------------


def _judging(scope: Scope, as_of: Moment) -> Database:
    """The database with the clock by which rows are old enough."""
    return open_database(scope if as_of is None else dataclasses.replace(scope, now=as_of))


def _condition(database: Database, sweep: Sweep) -> tuple[str, dict[str, Any]]:
    """Which rows a sweep deletes, as SQL with its parameters."""
    if sweep.window_ms is None:
        ended = "" if sweep.table == DEAD else " AND completed_at IS NOT NULL"
        return f"namespace = %(namespace)s AND purge_at <= {{now}}{ended}", {}
    cutoff = database.plus_ms("{now}", "%(age_ms)s")
    is_mortal = " AND purge_at IS NULL" if sweep.table in _MORTAL else ""
    return (
        f"namespace = %(namespace)s AND {sweep.column} < {cutoff}{is_mortal}",
        {"age_ms": -sweep.window_ms},
    )


class _Picked(NamedTuple):
    """Jobs to delete if they stay as they were (``about`` is the status), and the next place."""

    jobs: list[Old]
    after: Place


def _pick_old_jobs(database: Database, window_ms: int, after: Place, size: int) -> _Picked:
    """Those of a page of the hot table that have no lifetime of their own.

    No index there tells them from those that have one: a million of these are read page by page.
    """
    found = page(
        database,
        JOBS,
        "completed_at",
        "CASE WHEN purge_at IS NULL THEN status END",
        moment_ago(database, window_ms),
        size,
        after=after if isinstance(after, Old) else None,
    )
    jobs = [each for each in found if each.about is not None]
    return _Picked(jobs, found[-1] if len(found) == size else None)


def _pick_jobs(
    database: Database, sweep: Sweep, where: str, params: Mapping[str, Any], size: int
) -> _Picked:
    order = sweep.column
    if sweep.table == ARCHIVE and sweep.window_ms is not None:
        order = database.order_beside_null("purge_at", sweep.column)
    rows = database.fetch(
        f"SELECT id, status, {sweep.column} FROM {sweep.table} WHERE {where}"  # noqa: S608
        f" ORDER BY {order} LIMIT %(limit)s",
        {**params, "limit": size},
    )
    jobs = [_as_old(database, row) for row in rows]
    return _Picked(jobs, jobs[-1].at if len(jobs) == size else None)


def _sweep_jobs(scope: Scope, sweep: Sweep, picked: _Picked, only_free: bool) -> Swept:
    if not picked.jobs:
        return Swept(0, picked.after)
    database = open_database(scope)
    columns = f"id, status, {sweep.column}"
    with database.transaction():
        # A job may come back to life meanwhile, also from the archive: only those that are still
        # as they were picked go.
        locked = database.lock_rows(
            columns, [each.id for each in picked.jobs], table=sweep.table, only_free=only_free
        )
        still = {_as_old(database, row) for row in locked} & set(picked.jobs)
        removed = delete_jobs(
            database,
            sweep.table,
            {each.id: each.about for each in sorted(still)},
            children=CHILDREN if sweep.window_ms is None else EDGES_AND_REPLAYS,
        )
    return Swept(removed, picked.after)


def _as_old(database: Database, row: tuple[Any, ...]) -> Old:
    key, status, at = row
    return Old(database.read_id(key), status, database.read(at))  # type: ignore[arg-type]


def _report_key(scope: Scope) -> str:
    return f"retention:effective:{scope.namespace}"
