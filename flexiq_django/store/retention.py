"""Delete what has outlived its own lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

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
from flexiq_django.store import dependencies
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Database

#: Everything that belongs to a job, and the column that names the job.
CHILDREN = (
    (JobError._meta.db_table, "job_id"),
    (TaskLog._meta.db_table, "job_id"),
    (TaskMetric._meta.db_table, "job_id"),
    (JobDependency._meta.db_table, "job_id"),
    (JobDependency._meta.db_table, "parent_id"),
    (ReplayHistory._meta.db_table, "original_job_id"),
)


def purge_outlived(scope: Scope, *, limit: int | None = None) -> int:
    """Delete up to ``limit`` ended jobs, and dead letters, whose own ``result_ttl`` has passed.

    A job goes together with everything that belongs to it. Repeat until it returns 0.
    """
    database = open_database(scope)
    size = limit or database.batch_size
    removed = 0
    for table in (Job._meta.db_table, ArchivedJob._meta.db_table):
        outlived = {
            database.read_id(key): status
            for key, status in database.fetch(
                f"SELECT id, status FROM {table} WHERE namespace = %(namespace)s"  # noqa: S608
                " AND purge_at <= {now} AND completed_at IS NOT NULL"
                " ORDER BY purge_at LIMIT %(limit)s",
                {"limit": size},
            )
        }
        if outlived:
            with database.transaction():
                removed += delete_jobs(database, table, outlived)
    return removed + database.delete_batch(
        DeadLetter._meta.db_table, "namespace = %(namespace)s AND purge_at <= {now}", size
    )


def delete_jobs(database: Database, table: str, ended: Mapping[UUID, str]) -> int:
    """Delete ended jobs of one table with all that belongs to them; how many jobs went.

    ``ended`` maps their ids to their statuses. A dependent that was enqueued while its parent ended
    may still wait for it: it moves now, as nobody could tell afterwards whom it waited for.
    """
    if not ended:
        return 0
    dependencies.resolve(database, ended)
    condition, params = database.among("id", ended)
    removed = database.change(
        f"DELETE FROM {table} WHERE {condition} AND completed_at IS NOT NULL",  # noqa: S608
        params,
    )
    for child, column in CHILDREN:
        condition, params = database.among(column, ended)
        database.change(f"DELETE FROM {child} WHERE {condition}", params)  # noqa: S608
    return removed
