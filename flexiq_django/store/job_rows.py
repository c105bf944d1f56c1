"""New jobs as a batch of rows: its columns, and the SQL for what is inserted from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from flexiq_django.core.lanes import lane_name
from flexiq_django.core.records import NewJob
from flexiq_django.models.fields import to_naive_text
from flexiq_django.store.edges import Parents
from flexiq_django.store.keys import active_key
from flexiq_django.store.vendors.base import Database

_COLUMNS = {
    "id": "id",
    "queue": "text",
    "task_name": "text",
    "payload": "text",
    "max_retries": "int",
    "priority": "int",
    "lane": "text",
    "waits": "int",
    "delay_ms": "big",
    "due": "moment",
    "timeout_ms": "big",
    "expires_ms": "big",
    "result_ttl_ms": "big",
    "unique_key": "text",
    "active_key": "text",
    "metadata": "text",
    "notes": "text",
    "origin": "text",
    "schedule": "text",
    "session_id": "text",
    "user_id": "text",
    "deployment_id": "text",
    "trace_id": "text",
    "attempt_id": "text",
    "trial_id": "text",
    "dlq_retry_count": "int",
    "origin_job_id": "id",
}

#: What the SQL below turns into something else; all other columns go into the table as they are.
_MEANT = {"lane", "waits", "delay_ms", "due", "expires_ms", "dlq_retry_count"}


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """The columns that a batch has. Most enqueues use few, and the statement is as long as these.

    A long statement takes longer to read and to plan than its row takes to insert.
    """
    return {name: kind for name, kind in _COLUMNS.items() if any(name in row for row in rows)}


def values_of(database: Database, columns: Collection[str]) -> Mapping[str, str]:
    """What is inserted, as SQL about a batch with these columns; the others stay empty."""
    waits_not = ["b.waits IS NULL"] if "waits" in columns else []
    without_session = ["b.session_id IS NULL"] if "session_id" in columns else []
    moments = ["b.due"] if "due" in columns else []
    if "delay_ms" in columns:
        moments.append(database.plus_ms("{now}", "b.delay_ms"))
    due = f"COALESCE({', '.join(moments)}, {{now}})" if moments else "{now}"
    is_due = [f"{due} <= {{now}}"] if moments else []
    values = {
        **{name: f"b.{name}" for name in columns if name not in _MEANT},
        "namespace": "%(namespace)s",
        "status": "'pending'",
        "attempt": "0",
        "retry_count": "0",
        "dlq_retry_count": "0",
        "created_at": "{now}",
        "updated_at": "{now}",
        "scheduled_at": due,
        "ready_lane": _when([*waits_not, *is_due, *without_session], "b.lane"),
    }
    if "dlq_retry_count" in columns:
        values["dlq_retry_count"] = "COALESCE(b.dlq_retry_count, 0)"
    if without_session:
        values["session_line"] = _when([*waits_not, *is_due], "b.session_id")
    if moments:
        values["promote_at"] = _when([*waits_not, f"{due} > {{now}}"], due)
    if "expires_ms" in columns:
        values["expires_at"] = database.plus_ms("{now}", "b.expires_ms")
    return values


def _when(conditions: Sequence[str], value: str) -> str:
    return f"CASE WHEN {' AND '.join(conditions)} THEN {value} END" if conditions else value


def rows_of(database: Database, jobs: Sequence[NewJob], parents: Parents) -> list[dict[str, Any]]:
    """The batch: of each job what it has."""
    rows = []
    for job in jobs:
        row: dict[str, Any] = {
            "id": database.id_text(job.id),
            "queue": job.queue,
            "task_name": job.task_name,
            "payload": job.payload,
            "max_retries": job.max_retries,
            "priority": job.priority,
            "lane": lane_name(
                job.queue, job.deployment_id, job.task_name if job.is_limited else None
            ),
            "origin": job.origin,
        }
        if job.delay_ms:
            row["delay_ms"] = job.delay_ms
        if job.run_at is not None:
            row["due"] = to_naive_text(job.run_at) + database.zone_suffix
        if parents.get(job.id):
            row["waits"] = 1
        if job.unique_key is not None:
            row["active_key"] = active_key(job.unique_key)
        if job.dlq_retry_count:
            row["dlq_retry_count"] = job.dlq_retry_count
        if job.origin_job_id is not None:
            row["origin_job_id"] = database.id_text(job.origin_job_id)
        for name in _OPTIONAL:
            value = getattr(job, name)
            if value is not None:
                row[name] = value
        rows.append(row)
    return rows


_OPTIONAL = (
    "timeout_ms",
    "expires_ms",
    "result_ttl_ms",
    "unique_key",
    "metadata",
    "notes",
    "schedule",
    "session_id",
    "user_id",
    "deployment_id",
    "trace_id",
    "attempt_id",
    "trial_id",
)
