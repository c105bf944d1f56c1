"""The one move from ``jobs`` to ``archived_jobs``."""

from __future__ import annotations

from flexiq_django.models import ArchivedJob
from flexiq_django.models.job import BaseJob
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS

ARCHIVE = ArchivedJob._meta.db_table
_KEPT = [str(field.column) for field in BaseJob._meta.local_fields]


def archive_batch(scope: Scope, *, older_than_ms: int, limit: int | None = None) -> int:
    """Move up to ``limit`` jobs that ended more than ``older_than_ms`` ago; how many moved.

    A negative age reaches into the future and moves every job that has ended. One short
    transaction: a job is always in exactly one of the two tables. Repeat until it returns 0.
    """
    database = open_database(scope)
    cutoff = database.plus_ms("{now}", "%(age_ms)s")
    params = {"age_ms": -older_than_ms, "limit": limit or database.batch_size}
    kept = ", ".join(_KEPT)
    with database.transaction():
        picked = [
            database.read_id(key)
            for (key,) in database.fetch(
                f"SELECT id FROM {JOBS} WHERE namespace = %(namespace)s"  # noqa: S608
                f" AND completed_at < {cutoff} ORDER BY completed_at LIMIT %(limit)s",
                params,
            )
        ]
        # Locking in id order keeps two sweepers, or a sweeper and a requeue, from deadlocking; what
        # is no longer terminal by then stays.
        ended = (
            [
                database.read_id(key)
                for key, completed_at in database.lock_rows("id, completed_at", picked)
                if completed_at is not None
            ]
            if picked
            else []
        )
        if not ended:
            return 0
        condition, params = database.among("id", ended)
        database.change(
            f"INSERT INTO {ARCHIVE} (archived_at, {kept})"  # noqa: S608
            f" SELECT {{now}}, {kept} FROM {JOBS} WHERE {condition}",
            params,
        )
        database.delete_rows(JOBS, ended)
    return len(ended)
