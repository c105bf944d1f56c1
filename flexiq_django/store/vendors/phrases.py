"""Parts of statements that read the same on every database."""

from __future__ import annotations

#: Columns a claim hands out, in the order of the first fields of ``ClaimedJob``.
CLAIMED_COLUMNS = (
    "id, queue, task_name, payload, attempt, retry_count, max_retries, timeout_ms, deployment_id,"
    " metadata, session_id"
)


def ordered(column: str | None) -> str:
    """SQL that sorts by a column, if there is one."""
    return f" ORDER BY {column}" if column else ""


def promotion(lane: str) -> str:
    """SQL that makes a due job ready, or puts it into the line of its session."""
    waits = "session_id IS NOT NULL AND session_slot IS NULL"
    return (
        f"session_line = CASE WHEN {waits} THEN session_id END,"
        f" ready_lane = CASE WHEN NOT ({waits}) THEN {lane} END"
    )
