"""SQLite: one writer at a time, so every write is one short statement or BEGIN IMMEDIATE."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, IntegrityError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from flexiq_django.models.fields import to_naive_text
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors.base import JOBS, Database, Trouble
from flexiq_django.store.vendors.batches import json_batches
from flexiq_django.store.vendors.phrases import CLAIMED_COLUMNS, promotion
from flexiq_django.store.vendors.returning import ReturningMixin


class SQLite(ReturningMixin, Database):
    """SQLite 3.37 and newer.

    SQLite has no clock of its own: it asks the machine, as every process that opens the file does.
    So the machine's clock, read here with microseconds, is the database's clock.
    """

    types = {
        "id": "text",
        "text": "text",
        "int": "integer",
        "big": "integer",
        "float": "real",
        "bool": "integer",
        "moment": "text",
    }
    clock = "%(now)s"
    for_update = for_update_of_free = ""  # BEGIN IMMEDIATE has locked everything
    returned_id = "id"  # the alias is out of scope in RETURNING
    # The write lock is held for the whole statement: keep each under about 5 ms.
    batch_size = 200
    rest_factor = 3.0
    has_one_writer = True
    sign = "data version"

    def __init__(self, connection: BaseDatabaseWrapper, scope: Scope) -> None:
        super().__init__(connection, scope)
        self.now = self.moment_literal

    def bind(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        moment = self.scope.now or datetime.now(UTC)
        return {
            "namespace": self.scope.namespace,
            "now": to_naive_text(moment),
            **(params or {}),
        }

    def moment(self, value: datetime) -> Any:
        return to_naive_text(value)

    def plus_ms(self, moment: str, ms: str) -> str:
        # strftime gives three fractional digits; three zeros keep texts comparable.
        return (
            f"strftime('%%Y-%%m-%%d %%H:%%M:%%f000', {moment},"
            f" printf('%%+.3f seconds', ({ms}) / 1000.0), CASE WHEN ({ms}) IS NULL THEN NULL"
            " ELSE '+0 days' END)"
        )

    def spans_between(self, start: str, moment: str, ms: str) -> str:
        # In whole microseconds: as days or seconds with a fraction they would be rounded.
        seconds = f"(strftime('%%s', {moment}) - strftime('%%s', {start}))"
        return f"({seconds} * 1000000 + substr({moment}, 21) - substr({start}, 21)) / ({ms} * 1000)"

    def rows_from_json(self, parameter: str, columns: Mapping[str, str]) -> str:
        fields = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
        return f"(SELECT {fields} FROM json_each(%({parameter})s)) AS b"  # noqa: S608

    @contextlib.contextmanager
    def _begin(self) -> Iterator[None]:
        # A deferred transaction that reads before it writes is refused at once when another process
        # wrote in between. Taking the write lock first waits instead.
        connection: Any = self.connection
        if connection.in_atomic_block:
            with super()._begin():
                yield
            return
        connection.ensure_connection()
        mode, connection.transaction_mode = connection.transaction_mode, "IMMEDIATE"
        try:
            with super()._begin():
                yield
        finally:
            connection.transaction_mode = mode

    def among(self, column: str, ids: Iterable[UUID]) -> tuple[str, dict[str, Any]]:
        texts = [self.id_text(key) for key in ids]
        return (
            f"{column} IN (SELECT value FROM json_each(%(ids)s))",  # noqa: S608
            {"ids": json.dumps(texts)},
        )

    def take(
        self, lane: str, limit: int, condition: str, params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        return self.fetch(
            f"""
            UPDATE {JOBS} SET {self.claim_assignments()}
            WHERE id IN (
                SELECT id FROM {JOBS}
                WHERE namespace = %(namespace)s AND ready_lane = %(lane)s AND ready_lane IS NOT NULL
                  AND {condition}
                ORDER BY rank, scheduled_at, id LIMIT %(limit)s)
            RETURNING {CLAIMED_COLUMNS}, {self.is_expired}, cancel_requested_at, rank, scheduled_at
            """,  # noqa: S608 - names are our own
            {**params, "lane": lane, "limit": limit},
        )

    def heads(self, lanes: Sequence[str], limit: int) -> list[str]:
        named = {f"lane{number}": lane for number, lane in enumerate(lanes)}
        places = ", ".join(f"%({name})s" for name in named)
        rows = self.fetch(
            f"SELECT ready_lane FROM {JOBS} WHERE namespace = %(namespace)s"  # noqa: S608
            f" AND ready_lane IN ({places})"
            " ORDER BY rank, scheduled_at, id LIMIT %(limit)s",
            {**named, "limit": limit},
        )
        return [name for (name,) in rows]

    def promote(self, lane: str, limit: int) -> list[str | None]:
        rows = self.fetch(
            f"""
            UPDATE {JOBS} SET {promotion(lane)}, promote_at = NULL, updated_at = {{now}}
            WHERE id IN (
                SELECT id FROM {JOBS}
                WHERE namespace = %(namespace)s AND promote_at <= {{now}}
                ORDER BY promote_at LIMIT %(limit)s)
            RETURNING session_line
            """,  # noqa: S608
            {"limit": limit},
        )
        return [line for (line,) in rows]

    def pick_expired_leases(
        self, limit: int, condition: str, params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        return self.fetch(
            f"SELECT {CLAIMED_COLUMNS}, token FROM {JOBS}"  # noqa: S608
            f" WHERE lease_at <= {{now}} AND namespace = %(namespace)s{condition}"
            " ORDER BY lease_at LIMIT %(limit)s",
            {**params, "limit": limit},
        )

    def lock_rows(
        self, columns: str, ids: Sequence[UUID], *, table: str = JOBS, only_free: bool = False
    ) -> list[tuple[Any, ...]]:
        # The transaction already holds the only write lock there is.
        rows: list[tuple[Any, ...]] = []
        for batch in json_batches([{"id": self.id_text(key)} for key in sorted(ids)]):
            rows += self.fetch(
                f"SELECT {columns} FROM {table} WHERE id IN"  # noqa: S608
                " (SELECT json_extract(value, '$.id') FROM json_each(%(batch)s)) ORDER BY id",
                {"batch": batch},
            )
        return rows

    def lock_free(self, rows: Sequence[Mapping[str, Any]]) -> set[str] | None:
        return None

    def prepare_worker(self, silence: float) -> None:
        # SQLite's own busy handler sleeps up to 100 ms a try and can starve one process for a
        # second; the worker's retry waits a few milliseconds with jitter instead.
        self.change("PRAGMA busy_timeout = 0")

    def data_version(self) -> int:
        """A number that changes whenever another connection commits to the file."""
        raw = self.connection.connection
        with self.connection.wrap_database_errors:
            return int(raw.execute("PRAGMA data_version").fetchone()[0])

    @classmethod
    def trouble(cls, error: BaseException) -> Trouble | None:
        if isinstance(error, IntegrityError):  # its text quotes names, which may hold these words
            return None
        if isinstance(error, InterfaceError | DatabaseError):
            text = str(error)
            if "locked" in text or "busy" in text:
                return "conflict"
            if any(sign in text for sign in ("full", "unable to open", "disk I/O", "closed")):
                return "outage"
        return None
