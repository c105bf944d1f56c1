"""How long history is kept: the windows that are asked for, and those that follow from it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from flexiq_django.exceptions import InvalidOptionError

Windows = dict[str, int | None]

_DAY = 86_400
#: A hundred years: a time that is longer is a mistake, and does not fit every database.
LONGEST_SECONDS = 3_153_600_000


@dataclass(frozen=True)
class Retention:
    """How many seconds of history each table keeps; ``None`` keeps it for ever.

    ``archived_jobs``: jobs that have ended, archived or not, by their end. ``dead_letter``: dead
    letters, by when they failed. ``task_logs``, ``task_metrics`` and ``job_errors``: by when they
    were written. ``Retention()`` deletes nothing by age. Raises ``InvalidOptionError`` (a
    ``ValueError``) for a window that is negative, no number, or longer than 100 years, and
    ``TypeError`` for a name that is no table.
    """

    archived_jobs: float | None = None
    dead_letter: float | None = None
    task_logs: float | None = None
    task_metrics: float | None = None
    job_errors: float | None = None

    def __post_init__(self) -> None:
        for table in TABLES:
            _check_window(table, getattr(self, table))


#: The tables that have a window, by the names of their fields.
TABLES = tuple(field.name for field in fields(Retention))


def _check_window(table: str, value: Any) -> None:
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= LONGEST_SECONDS:
        raise InvalidOptionError(
            f"{table} is {value!r}; allowed is a number of seconds from 0 to {LONGEST_SECONDS} (100"
            " years), or None to keep the table for ever"
        )


#: What is kept when nobody says. Dead letters longest: each is the only copy of a call that
#: somebody still has to look at.
RECOMMENDED = Retention(
    archived_jobs=7 * _DAY,
    dead_letter=30 * _DAY,
    task_logs=3 * _DAY,
    task_metrics=7 * _DAY,
    job_errors=7 * _DAY,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionPolicy:
    """The windows in force, in milliseconds, for every table.

    ``enabled``: there is any window. ``defaulted``: nobody configured them, so they are the
    recommended ones.
    """

    enabled: bool
    defaulted: bool
    windows: Windows


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectiveRetention(RetentionPolicy):
    """What the cleaner of a namespace applied when it last swept.

    ``windows`` are milliseconds by table, ``reported_at`` Unix milliseconds.
    """

    namespace: str
    reported_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionPreview(RetentionPolicy):
    """What a sweep would delete at one moment, by table.

    ``windows`` are milliseconds by table, ``reference_time`` Unix milliseconds.
    """

    namespace: str
    reference_time: int
    counts: dict[str, int]
    total: int


def resolve_retention(*levels: tuple[Retention | None, float | None]) -> RetentionPolicy:
    """The policy of the first level that says anything; the recommended one if none does.

    A level is its ``retention`` and its ``result_ttl``, the same window for every table. Where
    both are given, ``retention`` wins.
    """
    for retention, result_ttl in levels:
        if retention is not None:
            return policy_of(retention)
        if result_ttl is not None:
            return policy_of(Retention(**dict.fromkeys(TABLES, result_ttl)))
    return policy_of(RECOMMENDED, defaulted=True)


def policy_of(retention: Retention, *, defaulted: bool = False) -> RetentionPolicy:
    """The policy of these windows."""
    windows: Windows = {
        table: None if seconds is None else math.ceil(seconds * 1000)
        for table in TABLES
        for seconds in [getattr(retention, table)]
    }
    return RetentionPolicy(
        enabled=any(window is not None for window in windows.values()),
        defaulted=defaulted,
        windows=windows,
    )


def keep_longest(policies: Iterable[RetentionPolicy]) -> RetentionPolicy:
    """One policy that deletes nothing that any of these would keep."""
    chosen = list(policies)
    windows: Windows = {}
    for table in TABLES:
        asked = [policy.windows[table] for policy in chosen]
        known = [window for window in asked if window is not None]
        windows[table] = max(known) if len(known) == len(asked) else None
    return RetentionPolicy(
        enabled=any(window is not None for window in windows.values()),
        defaulted=all(policy.defaulted for policy in chosen),
        windows=windows,
    )


# --- the report of the cleaner --------------------------------------------------------------------


def encode_report(policy: RetentionPolicy, *, namespace: str, reported_at: int) -> str:
    """The text in which a cleaner says what it applies."""
    return json.dumps(
        {
            "enabled": policy.enabled,
            "defaulted": policy.defaulted,
            "namespace": namespace,
            "reported_at": reported_at,
            "windows": policy.windows,
        }
    )


def decode_report(text: str | None) -> EffectiveRetention | None:
    """What a cleaner said; ``None`` for nothing, and for what cannot be read."""
    try:
        found = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not _is_report(found):
        return None
    return EffectiveRetention(
        enabled=found["enabled"],
        defaulted=found["defaulted"],
        namespace=found["namespace"],
        reported_at=found["reported_at"],
        windows={table: found["windows"][table] for table in TABLES},
    )


def _is_report(found: Mapping[str, Any]) -> bool:
    windows = found.get("windows")
    return (
        type(found.get("enabled")) is bool
        and type(found.get("defaulted")) is bool
        and type(found.get("namespace")) is str
        and type(found.get("reported_at")) is int
        and isinstance(windows, dict)
        and all(
            table in windows and (windows[table] is None or type(windows[table]) is int)
            for table in TABLES
        )
    )
