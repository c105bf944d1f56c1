"""The one move from ``jobs`` to ``archived_jobs``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from flexiq_django.models import ArchivedJob
from flexiq_django.models.job import BaseJob
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.walk import moment_ago, pages

ARCHIVE = ArchivedJob._meta.db_table
_KEPT = [str(field.column) for field in BaseJob._meta.local_fields]
_COLUMNS = ", ".join(_KEPT)


def archive_ended(
    scope: Scope, *, older_than_ms: int, limit: int | None = None, only_free: bool = False
) -> Iterator[int]:
    """Move the jobs that ended more than ``older_than_ms`` ago; how many, batch by batch.

    A negative age reaches into the future and moves every job that has ended. Each batch is a short
    transaction: a job is always in exactly one of the two tables. One of which others have moved
    all jobs meanwhile counts 0. It ends with what was old when it began. ``limit`` bounds a batch;
    by default it is what suits the database. ``only_free`` leaves jobs that somebody has locked.
    """
    database = open_database(scope)
    before = moment_ago(database, older_than_ms)
    for page in pages(database, JOBS, "completed_at", "status", before, limit):
        with database.transaction():
            moved = _move(database, [each.id for each in page], only_free)
        yield moved


def archive_batch(scope: Scope, *, older_than_ms: int, limit: int | None = None) -> int | None:
    """The first batch alone, but for jobs that are locked; ``None`` when nothing is old enough."""
    batches = archive_ended(scope, older_than_ms=older_than_ms, limit=limit, only_free=True)
    return next(batches, None)


def _move(database: Database, ids: Sequence[UUID], only_free: bool) -> int:
    # Locking in id order keeps two sweepers, or a sweeper and a requeue, from deadlocking; what is
    # no longer terminal by then stays.
    ended = [
        database.read_id(key)
        for key, completed_at in database.lock_rows("id, completed_at", ids, only_free=only_free)
        if completed_at is not None
    ]
    if not ended:
        return 0
    condition, params = database.among("id", ended)
    database.change(
        f"INSERT INTO {ARCHIVE} (archived_at, {_COLUMNS})"  # noqa: S608
        f" SELECT {{now}}, {_COLUMNS} FROM {JOBS} WHERE {condition}",
        params,
    )
    database.delete_rows(JOBS, ended)
    return len(ended)
