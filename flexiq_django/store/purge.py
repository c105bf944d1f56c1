"""Delete what a person no longer wants: old dead letters with their jobs, old completed jobs.

In small batches, each a transaction of its own, so that the whole may run beside busy workers. What
came after the start stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from flexiq_django.core.status import JobStatus
from flexiq_django.models import ArchivedJob
from flexiq_django.store.history import DEAD
from flexiq_django.store.retention import delete_jobs
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database

#: Where ended jobs are. In this order: what is archived between the two walks is met by the second.
_TABLES = (JOBS, ArchivedJob._meta.db_table)


class _Ended(NamedTuple):
    id: UUID
    status: str
    at: datetime


def purge_dead(scope: Scope, *, older_than_ms: int) -> Iterator[int]:
    """Delete dead letters that are older, and their jobs; how many letters, batch by batch.

    A job goes with all that belongs to it, unless it is not dead any more.
    """
    database = open_database(scope)
    before = _cutoff(database, older_than_ms)
    while True:
        letters = database.fetch(
            f"SELECT id FROM {DEAD} WHERE namespace = %(namespace)s"  # noqa: S608
            " AND failed_at < %(before)s ORDER BY failed_at, id LIMIT %(limit)s",
            {"before": before, "limit": database.batch_size},
        )
        if not letters:
            return
        with database.transaction():
            removed = _delete_letters(database, [database.read_id(key) for (key,) in letters])
        yield removed


def purge_completed(scope: Scope, *, older_than_ms: int) -> Iterator[int]:
    """Delete jobs that completed earlier, live and archived; how many, batch by batch.

    Each goes with all that belongs to it. What waited for one goes on.
    """
    database = open_database(scope)
    before = _cutoff(database, older_than_ms)
    for table in _TABLES:
        last: _Ended | None = None
        # Walks on past jobs that stay, however many dead ones are older.
        while page := _page(database, table, before, last):
            last = page[-1]
            done = [each.id for each in page if each.status == JobStatus.COMPLETE.value]
            removed = 0
            if done:
                with database.transaction():
                    removed = delete_jobs(database, table, _locked(database, table, done))
            yield removed


def _cutoff(database: Database, older_than_ms: int) -> object:
    """The moment so many milliseconds ago, as a parameter."""
    moment = database.plus_ms("{now}", "%(age_ms)s")
    rows = database.fetch(f"SELECT {moment}", {"age_ms": -older_than_ms})
    before = database.read(rows[0][0])
    assert before is not None  # noqa: S101 - a clock never answers NULL
    return database.moment(before)


def _page(database: Database, table: str, before: object, last: _Ended | None) -> list[_Ended]:
    after, params = "", {}
    if last is not None:
        after = " AND completed_at >= %(at)s AND (completed_at > %(at)s OR id > %(id)s)"
        params = {"at": database.moment(last.at), "id": database.id_text(last.id)}
    return [
        _Ended(database.read_id(key), status, database.read(ended_at))  # type: ignore[arg-type]
        for key, status, ended_at in database.fetch(
            f"SELECT id, status, completed_at FROM {table} WHERE namespace = %(namespace)s"  # noqa: S608
            f" AND completed_at < %(before)s{after} ORDER BY completed_at, id LIMIT %(limit)s",
            {**params, "before": before, "limit": database.batch_size},
        )
    ]


def _locked(database: Database, table: str, ids: list[UUID]) -> dict[UUID, str]:
    """Those of the jobs that are still there, with their statuses."""
    # In id order, as the archiving does: so the two cannot deadlock.
    rows = database.lock_rows("id, status", sorted(ids), table=table) if ids else []
    return {database.read_id(key): status for key, status in rows}


def _delete_letters(database: Database, ids: list[UUID]) -> int:
    # Locked first: a letter that somebody has just retried is gone, and its job stays.
    letters = {
        database.read_id(key): database.read_id(job_id)
        for key, job_id in database.lock_rows("id, original_job_id", sorted(ids), table=DEAD)
    }
    if not letters:
        return 0
    left = set(letters.values())
    for table in _TABLES:
        found = _locked(database, table, list(left))
        left -= set(found)
        dead = {key: status for key, status in found.items() if status == JobStatus.DEAD.value}
        delete_jobs(database, table, dead)
    # The job itself may have been deleted before, and have left errors and log lines behind.
    delete_jobs(database, _TABLES[-1], dict.fromkeys(left, JobStatus.DEAD.value))
    condition, params = database.among("id", letters)
    return database.change(f"DELETE FROM {DEAD} WHERE {condition}", params)  # noqa: S608
