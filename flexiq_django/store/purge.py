"""Delete what a person no longer wants: old dead letters with their jobs, old jobs that ended.

In small batches, each a transaction of its own, so that the whole may run beside busy workers. What
came after the start stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.models import ArchivedJob
from flexiq_django.store.history import DEAD
from flexiq_django.store.retention import delete_jobs
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.walk import moment_ago, pages

#: Where ended jobs are. In this order: what is archived between the two walks is met by the second.
_TABLES = (JOBS, ArchivedJob._meta.db_table)

_ENDED = {status.value for status in TERMINAL}


def purge_dead(scope: Scope, *, older_than_ms: int, limit: int | None = None) -> Iterator[int]:
    """Delete dead letters that are older, and their jobs; how many letters, batch by batch.

    A job goes with all that belongs to it, unless it is not dead any more. ``limit`` bounds a
    batch; by default it is what suits the database.
    """
    database = open_database(scope)
    before = moment_ago(database, older_than_ms)
    for page in pages(database, DEAD, "failed_at", "queue", before, limit):
        with database.transaction():
            removed = _delete_letters(database, [each.id for each in page])
        yield removed


def purge_completed(scope: Scope, *, older_than_ms: int, limit: int | None = None) -> Iterator[int]:
    """Delete jobs that completed earlier, live and archived; how many, batch by batch.

    Each goes with all that belongs to it. What waited for one goes on. ``limit`` as above.
    """
    database = open_database(scope)
    before = moment_ago(database, older_than_ms)
    for table in _TABLES:
        for page in pages(database, table, "completed_at", "status", before, limit):
            done = [each.id for each in page if each.about == JobStatus.COMPLETE.value]
            removed = 0
            if done:
                with database.transaction():
                    removed = delete_jobs(database, table, _locked(database, table, done))
            yield removed


def purge_ended(scope: Scope, *, older_than_ms: int, limit: int | None = None) -> Iterator[int]:
    """Delete jobs that ended earlier, however they did, live and archived; how many by batch.

    Each goes with all that belongs to it, its dead letter included. ``limit`` as above.
    """
    database = open_database(scope)
    before = moment_ago(database, older_than_ms)
    for table in _TABLES:
        for page in pages(database, table, "completed_at", "status", before, limit):
            with database.transaction():
                removed = _delete_ended(database, table, [each.id for each in page])
            yield removed


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
    return database.delete_rows(DEAD, letters)


def _delete_ended(database: Database, table: str, ids: list[UUID]) -> int:
    # Letters before jobs, as above: so the two cannot deadlock.
    condition, params = database.among("original_job_id", ids)
    found = database.fetch(f"SELECT id FROM {DEAD} WHERE {condition}", params)  # noqa: S608
    keys = sorted(database.read_id(key) for (key,) in found)
    letters = database.lock_rows("id, original_job_id", keys, table=DEAD) if keys else []
    ended = {
        key: status for key, status in _locked(database, table, ids).items() if status in _ENDED
    }
    removed = delete_jobs(database, table, ended)
    gone = [database.read_id(key) for key, job_id in letters if database.read_id(job_id) in ended]
    if gone:
        database.delete_rows(DEAD, gone)
    return removed
