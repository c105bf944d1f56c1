"""MariaDB and MySQL: SKIP LOCKED, but neither UPDATE ... RETURNING nor partial indexes.

``rank`` is quoted because MySQL 8 reserves the word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError

from flexiq_django.models.fields import to_naive_text
from flexiq_django.store.vendors.base import JOBS, Trouble
from flexiq_django.store.vendors.batches import json_batches
from flexiq_django.store.vendors.lock_waits import LimitOfSession
from flexiq_django.store.vendors.named_locks import NamedLocks
from flexiq_django.store.vendors.phrases import CLAIMED_COLUMNS, ordered, promotion
from flexiq_django.store.vendors.silence import limit_socket

# Lock wait timeout, deadlock.
_CONFLICTS = {1205, 1213}
# Refused, gone, lost, shutting down, too many connections, killed; interrupted, out of time (of
# MariaDB, of MySQL), read-only for now (by option, by mode).
_OUTAGES = {1040, 1053, 1927, 2002, 2003, 2006, 2013, 2055, 0, 1317, 1969, 3024, 1290, 1836}


class MySQL(NamedLocks, LimitOfSession):
    """MariaDB 10.6 and MySQL 8.0.11 and newer."""

    types = {
        "id": "char(36)",
        "text": "longtext",
        "int": "int",
        "big": "bigint",
        "float": "double",
        "bool": "tinyint",
        "moment": "datetime(6)",
    }
    clock = "UTC_TIMESTAMP(6)"
    latest = " LOCK IN SHARE MODE"
    rank = "`rank`"
    # It takes any index that seems as good, and reads a table of a few rows whole. Then it locks
    # the entry of that index first and the row after it, while whoever changes the row has locked
    # that first and waits for the entry: a deadlock. Or it waits for rows that are not meant.
    by_key = " FORCE INDEX (PRIMARY)"
    batch_size = 500
    rest_factor = 0.5

    def by_index(self, name: str) -> str:
        return f" FORCE INDEX ({name})"

    def moment(self, value: datetime) -> Any:
        return to_naive_text(value)

    def plus_ms(self, moment: str, ms: str) -> str:
        return f"({moment} + INTERVAL ({ms}) * 1000 MICROSECOND)"

    def spans_between(self, start: str, moment: str, ms: str) -> str:
        return f"TIMESTAMPDIFF(MICROSECOND, {start}, {moment}) DIV ({ms} * 1000)"

    def concat(self, *parts: str) -> str:
        return f"CONCAT({', '.join(parts)})"

    def rows_from_json(self, parameter: str, columns: Mapping[str, str]) -> str:
        spec = ", ".join(
            f"{name} {self.types[kind]} PATH '$.{name}'" for name, kind in columns.items()
        )
        return f"JSON_TABLE(%({parameter})s, '$[*]' COLUMNS ({spec})) AS b"

    def among(self, column: str, ids: Iterable[UUID]) -> tuple[str, dict[str, Any]]:
        return f"{column} IN %(ids)s", {"ids": tuple(self.id_text(key) for key in ids)}

    def update_joined(
        self,
        table: str,
        assignments: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Mapping[str, Any]],
        where: str,
        params: Mapping[str, Any] | None = None,
    ) -> set[UUID]:
        # There is no UPDATE ... RETURNING: lock and read who matches, then update exactly those,
        # whatever the condition would say a moment later.
        source = self.rows_from_json("batch", columns)
        joined = f"{source} STRAIGHT_JOIN {table} AS j{self.by_key} ON j.id = b.id"
        changes = ", ".join(f"j.{name} = {value}" for name, value in assignments.items())
        updated: set[UUID] = set()
        for batch in json_batches(rows):
            bound = {**(params or {}), "batch": batch}
            with self.transaction():
                matched = self.fetch(
                    f"SELECT j.id FROM {joined} WHERE {where} FOR UPDATE",  # noqa: S608
                    bound,
                )
                if matched:
                    self.change(
                        f"UPDATE {joined} SET {changes} WHERE j.id IN %(matched)s",  # noqa: S608
                        {**bound, "matched": self._id_list(key for (key,) in matched)},
                    )
                updated.update(self.read_id(key) for (key,) in matched)
        return updated

    def insert_unless_active(
        self,
        values: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Mapping[str, Any]],
        where: str,
    ) -> set[UUID]:
        # IGNORE would also cut long text and turn NULL into '': everything is validated before.
        # MySQL cannot return what it inserted, so ask which of our ids are there; our own rows are
        # visible to us whatever the isolation level.
        sql = (
            f"INSERT IGNORE INTO {JOBS} ({', '.join(values)})"  # noqa: S608
            f" SELECT {', '.join(values.values())} FROM {self.rows_from_json('batch', columns)}"
            f" WHERE {where}"
        )
        there = (
            f"SELECT j.id FROM {self.rows_from_json('batch', {'id': 'id'})}"  # noqa: S608
            f" STRAIGHT_JOIN {JOBS} AS j ON j.id = b.id"
        )
        inserted: set[UUID] = set()
        for batch in json_batches(rows):
            with self.alone_with([row["active_key"] for row in rows]):
                self.change(sql, {"batch": batch})
            inserted.update(self.read_id(key) for (key,) in self.fetch(there, {"batch": batch}))
        return inserted

    def active_holder(self, active_key: str) -> UUID | None:
        rows = self.fetch(
            f"SELECT id FROM {JOBS} WHERE namespace = %(namespace)s"  # noqa: S608
            " AND active_key = %(active_key)s LOCK IN SHARE MODE",
            {"active_key": active_key},
        )
        return self.read_id(rows[0][0]) if rows else None

    def take(
        self, lane: str, limit: int, condition: str, params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        with self.transaction():
            rows = self.fetch(
                f"""
                SELECT {CLAIMED_COLUMNS}, (expires_at IS NOT NULL AND expires_at <= {{now}}),
                       cancel_requested_at, `rank`, scheduled_at
                FROM {JOBS}
                WHERE namespace = %(namespace)s AND ready_lane = %(lane)s AND {condition}
                ORDER BY `rank`, scheduled_at, id LIMIT %(limit)s
                FOR UPDATE SKIP LOCKED
                """,  # noqa: S608 - names are our own
                {**params, "lane": lane, "limit": limit},
            )
            if rows:
                self.change(
                    f"""
                    UPDATE {JOBS}{self.by_key} SET status = 'running', ready_lane = NULL,
                        attempt = attempt + 1, token = %(token)s, worker_id = %(worker_id)s,
                        started_at = {{now}}, updated_at = {{now}},
                        lease_at = {self.plus_ms("{now}", "%(lease_ms)s")}
                    WHERE id IN %(ids)s
                    """,  # noqa: S608
                    {**params, "ids": self._id_list(row[0] for row in rows)},
                )
        # The rows were read before the update: the claim's own attempt is one more.
        return [(*row[:4], row[4] + 1, *row[5:]) for row in rows]

    def heads(self, lanes: Sequence[str], limit: int) -> list[str]:
        named = {f"lane{number}": lane for number, lane in enumerate(lanes)}
        arms = " UNION ALL ".join(
            f"(SELECT ready_lane, `rank`, scheduled_at, id FROM {JOBS}"  # noqa: S608
            f" WHERE namespace = %(namespace)s AND ready_lane = %({name})s"
            " ORDER BY `rank`, scheduled_at, id LIMIT %(limit)s)"
            for name in named
        )
        rows = self.fetch(
            f"SELECT ready_lane FROM ({arms}) AS head"  # noqa: S608
            " ORDER BY `rank`, scheduled_at, id LIMIT %(limit)s",
            {**named, "limit": limit},
        )
        return [name for (name,) in rows]

    def lanes(self) -> list[str]:
        # Step by step in Python: MariaDB evaluates a recursive walk in seconds.
        # Comparing also at the start: IS NOT NULL would read every entry of the index.
        found: list[str] = []
        while True:
            rows = self.fetch(
                f"SELECT MIN(ready_lane) FROM {JOBS}"  # noqa: S608
                " WHERE namespace = %(namespace)s AND ready_lane > %(after)s",
                {"after": found[-1] if found else ""},
            )
            if rows[0][0] is None:
                return found
            found.append(rows[0][0])

    def promote(self, lane: str, limit: int) -> list[str | None]:
        with self.transaction():
            rows = self.fetch(
                "SELECT id, CASE WHEN session_slot IS NULL THEN session_id END"  # noqa: S608
                f" FROM {JOBS} WHERE namespace = %(namespace)s"
                " AND promote_at <= {now} ORDER BY promote_at LIMIT %(limit)s"
                " FOR UPDATE SKIP LOCKED",
                {"limit": limit},
            )
            if rows:
                self.change(
                    f"UPDATE {JOBS}{self.by_key} SET {promotion(lane)}, promote_at = NULL,"  # noqa: S608
                    " updated_at = {now} WHERE id IN %(ids)s",
                    {"ids": self._id_list(row[0] for row in rows)},
                )
        return [line for _, line in rows]

    def pick_expired_leases(
        self, limit: int, condition: str, params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        return self.fetch(
            f"SELECT {CLAIMED_COLUMNS}, token FROM {JOBS}"  # noqa: S608
            f" WHERE lease_at <= {{now}} AND namespace = %(namespace)s{condition}"
            " ORDER BY lease_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED",
            {**params, "limit": limit},
        )

    def lock_rows(
        self, columns: str, ids: Sequence[UUID], *, table: str = JOBS, only_free: bool = False
    ) -> list[tuple[Any, ...]]:
        return self.fetch(
            f"SELECT {columns} FROM {table}{self.by_key}"  # noqa: S608
            f" WHERE id IN %(ids)s ORDER BY id FOR UPDATE{' SKIP LOCKED' if only_free else ''}",
            {"ids": tuple(self.id_text(key) for key in sorted(ids))},
        )

    def lock_free(self, rows: Sequence[Mapping[str, Any]]) -> set[str] | None:
        # MariaDB knows no "OF", and locks nothing of a JSON_TABLE anyway.
        ids = tuple(row["id"] for row in rows)
        if not ids:
            return set()
        return {
            self.id_text(self.read_id(key))
            for (key,) in self.fetch(
                f"SELECT id FROM {JOBS}{self.by_key}"  # noqa: S608
                " WHERE id IN %(ids)s FOR UPDATE SKIP LOCKED",
                {"ids": ids},
            )
        }

    def deletion(self, table: str) -> str:
        # A hint is taken only in the form for several tables.
        return f"DELETE {table} FROM {table}{self.by_key}"

    def order_beside_null(self, absent: str, column: str) -> str:
        return column  # it chooses that index anyway, and would sort by hand for the other

    def delete_batch(
        self,
        table: str,
        condition: str,
        limit: int,
        params: Mapping[str, Any] | None = None,
        *,
        order: str | None = None,
    ) -> int:
        # Not DELETE ... ORDER BY ... LIMIT: that reads, and locks, every row that meets the
        # condition. Nor a sub-select on the table that is deleted from, which is refused.
        picked = self.fetch(
            f"SELECT id FROM {table} WHERE {condition}{ordered(order)} LIMIT %(limit)s",  # noqa: S608
            {**(params or {}), "limit": limit},
        )
        if not picked:
            return 0
        return self.change(
            f"{self.deletion(table)} WHERE id IN %(ids)s AND {condition}",
            {**(params or {}), "ids": tuple(key for (key,) in picked)},
        )

    def limit_silence(self, seconds: float) -> None:
        self.set_options({"connect_timeout": max(2, round(seconds))})

    def prepare_worker(self, silence: float) -> None:
        # Not the driver's read_timeout, which would also cut off statements that take their time.
        limit_socket(self.connection.connection.fileno(), silence)
        # At REPEATABLE READ claims deadlock each other, and a count sees a snapshot that is older
        # than the lock it holds.
        self.change("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def _id_list(self, keys: Iterable[Any]) -> tuple[str, ...]:
        return tuple(self.id_text(self.read_id(key)) for key in keys)

    @classmethod
    def trouble(cls, error: BaseException) -> Trouble | None:
        if isinstance(error, InterfaceError):
            return "outage"
        if not isinstance(error, DatabaseError) or not error.args:
            return None
        code = error.args[0]
        if code in _CONFLICTS:
            return "conflict"
        return "outage" if isinstance(error, OperationalError) and code in _OUTAGES else None
