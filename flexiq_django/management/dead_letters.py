"""Dead letters as text for people and as JSON for programs.

A letter in a list has the keys of ``queue.dead_letters()`` and ``auto_retry_at``; shown alone also
``payload``, ``priority``, ``max_retries``, ``timeout_ms``, ``result_ttl_ms``, ``notes``,
``session_id``, ``user_id``, ``deployment_id``, ``trace_id``, ``origin``, ``schedule``,
``origin_job_id`` and ``traceback`` (a list of lines). ``error`` is a single line. A ``*_at`` is in
Unix milliseconds. The keys only ever become more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from flexiq_django.api.result import plain_row
from flexiq_django.core.errors import parse_error, summarise_error
from flexiq_django.management.tables import as_moment, printable, table

#: Longest error in a table.
_ERROR_LENGTH = 100


def plain(letter: Mapping[str, Any]) -> dict[str, Any]:
    """A letter in the shape of its JSON."""
    return {**plain_row(letter), "error": summarise_error(letter["error"])}


def plain_details(letter: Mapping[str, Any]) -> dict[str, Any]:
    """A letter with all that is known of it, in the shape of its JSON."""
    return {**plain(letter), "traceback": list(parse_error(letter["error"]).traceback)}


def as_json(letter: Mapping[str, Any]) -> str:
    """One line."""
    return json.dumps(letter)


def as_table(letters: Iterable[Mapping[str, Any]]) -> str:
    """Letters for people."""
    return table(
        "dead letter", ("task", "queue", "failed", "attempts", "retried", "error"),
        [
            (each["id"], each["task_name"], each["queue"], as_moment(each["failed_at"]),
             each["retry_count"] + 1, each["dlq_retry_count"], _short(each["error"]))
            for each in letters
        ],
    ).lstrip("\n")  # fmt: skip


def as_text(letter: Mapping[str, Any]) -> str:
    """All of a letter, for people."""
    shown = {
        "dead letter": letter["id"],
        "job": letter["original_job_id"],
        "first job": letter["origin_job_id"],
        "task": letter["task_name"],
        "queue": letter["queue"],
        "failed": as_moment(letter["failed_at"]),
        "attempts": letter["retry_count"] + 1,
        "retried": letter["dlq_retry_count"],
        "next retry": as_moment(letter["auto_retry_at"]),
        "priority": letter["priority"],
        "schedule": letter["schedule"],
        "deployment": letter["deployment_id"],
        "user": letter["user_id"],
        "session": letter["session_id"],
        "trace": letter["trace_id"],
        "metadata": letter["metadata"],
        "notes": letter["notes"],
        "arguments": letter["payload"],
        "error": letter["error"],
    }
    lines = [
        f"{name:<12} {printable(str(value))}" for name, value in shown.items() if value is not None
    ]
    traceback = "\n".join(letter["traceback"]).splitlines()
    return "\n".join([*lines, *(["", *map(printable, traceback)] if traceback else [])])


def number(count: int) -> str:
    """As in ``1 dead letter`` and ``1,200 dead letters``."""
    return f"{count:,} dead letter{'' if count == 1 else 's'}"


def _short(error: str | None) -> str | None:
    if error is None or len(error) <= _ERROR_LENGTH:
        return error
    return error[: _ERROR_LENGTH - 3] + "..."
