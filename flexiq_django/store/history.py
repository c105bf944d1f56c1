"""What is kept of attempts that failed: error rows, dead letters, the fate of replays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from flexiq_django.core.records import AutoRetry, Settlement
from flexiq_django.core.status import JobStatus
from flexiq_django.models import DeadLetter, JobError, ReplayHistory
from flexiq_django.store.ids import new_id, new_ids
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.vendors.batches import json_batches

ERRORS = JobError._meta.db_table
DEAD = DeadLetter._meta.db_table
REPLAYS = ReplayHistory._meta.db_table

#: Ids in one list of a statement.
_CHUNK = 500


def append_errors(database: Database, settlements: Sequence[Settlement]) -> None:
    """An error row for each failed attempt."""
    columns = {"id": "id", "job_id": "id", "attempt": "int", "error": "text"}
    values = {name: f"b.{name}" for name in columns}
    database.insert_rows(
        ERRORS,
        {
            **values,
            "namespace": "%(namespace)s",
            "failed_at": "{now}",
            "worker_id": f"(SELECT j.worker_id FROM {JOBS} AS j WHERE j.id = b.job_id)",  # noqa: S608
        },
        columns,
        [
            {
                "id": database.id_text(key),
                "job_id": database.id_text(each.job_id),
                "attempt": each.retry_count,
                "error": each.attempt_error,
            }
            for key, each in zip(new_ids(len(settlements)), settlements, strict=True)
        ],
    )


#: What a dead letter copies from its job.
_DEAD_COPIES = (
    "namespace",
    "queue",
    "task_name",
    "payload",
    "priority",
    "error",
    "retry_count",
    "max_retries",
    "timeout_ms",
    "result_ttl_ms",
    "metadata",
    "notes",
    "session_id",
    "user_id",
    "deployment_id",
    "trace_id",
    "origin",
    "schedule",
    "dlq_retry_count",
    "origin_job_id",
    "purge_at",
)


def append_dead_letters(
    database: Database, ended: Mapping[UUID, str], auto_retry: AutoRetry | None
) -> None:
    """A dead letter for each job that has just died. ``ended`` maps jobs to statuses."""
    dead = sorted(key for key, status in ended.items() if status == JobStatus.DEAD.value)
    copies = ", ".join(_DEAD_COPIES)
    sql = (
        f"INSERT INTO {DEAD} (id, original_job_id, failed_at, auto_retry_at, {copies})"  # noqa: S608
        f" SELECT b.id, j.id, {{now}}, {_retry_time(database, auto_retry)},"
        f" {', '.join(f'j.{name}' for name in _DEAD_COPIES)}"
        f" FROM {database.rows_from_json('batch', {'id': 'id', 'job_id': 'id'})}"
        f" JOIN {JOBS} AS j ON j.id = b.job_id"
    )
    rows = [
        {"id": database.id_text(key), "job_id": database.id_text(job_id)}
        for key, job_id in zip(new_ids(len(dead)), dead, strict=True)
    ]
    for batch in json_batches(rows):
        database.change(sql, {"batch": batch, **(auto_retry._asdict() if auto_retry else {})})


def _retry_time(database: Database, auto_retry: AutoRetry | None) -> str:
    """SQL for when the dead letter of job ``j`` is retried by itself, if it is."""
    if auto_retry is None:
        return "NULL"
    due = database.plus_ms("{now}", "%(delay_ms)s")
    return f"CASE WHEN j.dlq_retry_count < %(most)s THEN {due} END"


def append_replay(
    database: Database, original: UUID, replay: UUID, *, error: str | None, actor: str | None
) -> None:
    """The row that says which job was run again as which, and how the original stood then."""
    columns = {
        "id": "id",
        "original_job_id": "id",
        "replay_job_id": "id",
        "original_error": "text",
        "actor": "text",
    }
    row = {
        "id": database.id_text(new_id()),
        "original_job_id": database.id_text(original),
        "replay_job_id": database.id_text(replay),
        "original_error": error,
        "actor": actor,
    }
    database.insert_rows(
        REPLAYS,
        {
            **{name: f"b.{name}" for name in columns},
            "namespace": "%(namespace)s",
            "replayed_at": "{now}",
        },
        columns,
        [{name: value for name, value in row.items() if value is not None}],
    )


def note_replay_errors(database: Database, ended: Iterable[UUID]) -> None:
    """Tell the replay history of copies that ended badly, in the transaction that ends them.

    Whatever ends a job other than well calls it, but for the cascade over dependents: a copy
    depends on nothing.
    """
    ids = sorted(ended)
    for start in range(0, len(ids), _CHUNK):
        # By a list: for a sub-select MariaDB would read the whole history.
        condition, params = database.among("replay_job_id", ids[start : start + _CHUNK])
        database.change(
            f"UPDATE {REPLAYS} SET replay_error = (SELECT COALESCE(j.error, j.status)"  # noqa: S608
            f" FROM {JOBS} AS j WHERE j.id = {REPLAYS}.replay_job_id) WHERE {condition}",
            params,
        )


def forget_replay_error(database: Database, job_id: UUID) -> None:
    """Tell the replay history of a copy that goes on after it had ended badly."""
    database.change(
        f"UPDATE {REPLAYS} SET replay_error = NULL WHERE replay_job_id = %(id)s",  # noqa: S608
        {"id": database.id_text(job_id)},
    )
