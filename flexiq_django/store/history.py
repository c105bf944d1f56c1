"""What is kept of attempts that failed: error rows, dead letters, the fate of replays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from flexiq_django.core.records import Settlement
from flexiq_django.core.status import JobStatus
from flexiq_django.models import DeadLetter, JobError, ReplayHistory
from flexiq_django.store.ids import new_ids
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.vendors.batches import json_batches

ERRORS = JobError._meta.db_table
DEAD = DeadLetter._meta.db_table
REPLAYS = ReplayHistory._meta.db_table


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
    "purge_at",
)


def append_dead_letters(database: Database, ended: Mapping[UUID, str]) -> None:
    """A dead letter for each job that has just died. ``ended`` maps jobs to statuses."""
    dead = sorted(key for key, status in ended.items() if status == JobStatus.DEAD.value)
    copies = ", ".join(_DEAD_COPIES)
    sql = (
        f"INSERT INTO {DEAD} (id, original_job_id, failed_at, dlq_retry_count, {copies})"  # noqa: S608
        f" SELECT b.id, j.id, {{now}}, b.chain, {', '.join(f'j.{name}' for name in _DEAD_COPIES)}"
        f" FROM {database.rows_from_json('batch', {'id': 'id', 'job_id': 'id', 'chain': 'int'})}"
        f" JOIN {JOBS} AS j ON j.id = b.job_id"
    )
    rows = [
        {"id": database.id_text(key), "job_id": database.id_text(job_id), "chain": 0}
        for key, job_id in zip(new_ids(len(dead)), dead, strict=True)
    ]
    for batch in json_batches(rows):
        database.change(sql, {"batch": batch})


def note_replay_errors(database: Database, ended: Iterable[UUID]) -> None:
    """Tell the replay history of a copy that ended badly."""
    sql = (
        f"UPDATE {REPLAYS} SET replay_error = (SELECT j.error FROM {JOBS} AS j"  # noqa: S608
        f" WHERE j.id = {REPLAYS}.replay_job_id) WHERE replay_job_id IN"
        f" (SELECT b.id FROM {database.rows_from_json('batch', {'id': 'id'})})"
    )
    for batch in json_batches([{"id": database.id_text(key)} for key in sorted(ended)]):
        database.change(sql, {"batch": batch})
