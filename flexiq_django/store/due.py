"""How long it is until something is due, by the clock of the database."""

from __future__ import annotations

from datetime import datetime

from flexiq_django.store.vendors.base import Database


def seconds_until_first(database: Database, table: str, column: str) -> float | None:
    """Seconds until the earliest moment in a column of our own, 0 if that is over.

    ``None`` when no row has one. The column needs an index behind ``namespace``.
    """
    rows = database.fetch(
        f"SELECT {column}, {{now}} FROM {table} WHERE namespace = %(namespace)s"  # noqa: S608
        f" AND {column} IS NOT NULL ORDER BY {column} LIMIT 1"
    )
    if not rows:
        return None
    due, now = (database.read(moment) for moment in rows[0])
    if not isinstance(due, datetime) or not isinstance(now, datetime):
        return None
    return max(0.0, (due - now).total_seconds())
