"""Walk over the rows of a table that are from before a moment, the oldest first, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.store.vendors.base import Database


class Old(NamedTuple):
    """A row on the way of a walk; ``about`` is whatever was asked of it."""

    id: UUID
    about: Any
    at: datetime


def moment_ago(database: Database, ms: int) -> object:
    """The moment so many milliseconds ago, as a parameter.

    Asked once for a whole walk: it ends although jobs keep crossing a line that moves.
    """
    moment = database.plus_ms("{now}", "%(age_ms)s")
    rows = database.fetch(f"SELECT {moment}", {"age_ms": -ms})
    before = database.read(rows[0][0])
    assert before is not None  # noqa: S101 - a clock never answers NULL
    return database.moment(before)


def pages(
    database: Database, table: str, column: str, about: str, before: object, limit: int | None
) -> Iterator[list[Old]]:
    """The rows from before a moment in pages, the oldest first.

    It goes on from where it is, past rows that stay: they cost each page nothing, and a row that
    somebody else takes away under its hands neither ends it nor holds it up.
    """
    size = limit or database.batch_size
    last: Old | None = None
    while True:
        found = page(database, table, column, about, before, size, after=last)
        if found:
            yield found
        if len(found) < size:
            return
        last = found[-1]


def page(
    database: Database,
    table: str,
    column: str,
    about: str,
    before: object,
    size: int,
    *,
    after: Old | None = None,
) -> list[Old]:
    """One page of such a walk: the first, or the one behind ``after``."""
    params: dict[str, Any] = {"before": before, "limit": size}
    behind = ""
    if after is not None:
        behind = f" AND {column} >= %(at)s AND ({column} > %(at)s OR id > %(id)s)"
        params |= {"at": database.moment(after.at), "id": database.id_text(after.id)}
    return [
        Old(database.read_id(key), told, database.read(at))  # type: ignore[arg-type]
        for key, told, at in database.fetch(
            f"SELECT id, {about}, {column} FROM {table} WHERE namespace = %(namespace)s"  # noqa: S608
            f" AND {column} < %(before)s{behind} ORDER BY {column}, id LIMIT %(limit)s",
            params,
        )
    ]
