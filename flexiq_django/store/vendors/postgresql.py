"""PostgreSQL: SKIP LOCKED, RETURNING, LISTEN and NOTIFY."""

from __future__ import annotations

import contextlib
import hashlib
import select
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.postgresql.psycopg_any import IsolationLevel, is_psycopg3

from flexiq_django.store.vendors.arrays import array_batches, array_text
from flexiq_django.store.vendors.base import JOBS, Sign, Trouble
from flexiq_django.store.vendors.lock_waits import LimitOfTransaction
from flexiq_django.store.vendors.phrases import CLAIMED_COLUMNS, ordered, promotion
from flexiq_django.store.vendors.returning import ReturningMixin
from flexiq_django.store.vendors.silence import libpq_options, set_postgresql_server

# Serialization failure, deadlock, lock not available.
_CONFLICTS = {"40001", "40P01", "55P03"}
# Connection lost (08), shutting down (57P), too many connections (53): the server comes back. So
# does one that cancels statements (57014: somebody, or a statement_timeout), and one that can only
# be read (25006: it was the standby a moment ago).
_OUTAGE_CLASSES = ("08", "57P", "53", "57014", "25006")


class PostgreSQL(ReturningMixin, LimitOfTransaction):
    """PostgreSQL 14 and newer, through psycopg 3."""

    types = {
        "id": "uuid",
        "text": "text",
        "int": "integer",
        "big": "bigint",
        "float": "double precision",
        "bool": "boolean",
        "moment": "timestamptz",
    }
    clock = "statement_timestamp()"
    moment_literal = "%(now)s::timestamptz"
    true = "true"
    zone_suffix = "+00:00"
    # The driver reads timestamps in Python, row by row; a float costs it nothing.
    due_order = "extract(epoch from scheduled_at)::float8"
    batch_size = 1000
    # Two thirds of the time go to the others: a sweep and a busy worker share the processors.
    rest_factor = 2.0

    def moment(self, value: datetime) -> Any:
        return value

    def plus_ms(self, moment: str, ms: str) -> str:
        return f"({moment} + ({ms}) * interval '1 millisecond')"

    def spans_between(self, start: str, moment: str, ms: str) -> str:
        return f"floor(extract(epoch FROM {moment} - {start}::timestamptz) * 1000 / {ms})::bigint"

    def rows_from_json(self, parameter: str, columns: Mapping[str, str]) -> str:
        spec = ", ".join(f"{name} {self.types[kind]}" for name, kind in columns.items())
        return f"json_to_recordset(%({parameter})s::json) AS b({spec})"

    def among(self, column: str, ids: Iterable[UUID]) -> tuple[str, dict[str, Any]]:
        texts = [self.id_text(key) for key in ids]
        return f"{column} = ANY(%(ids)s::uuid[])", {"ids": array_text("id", texts)}

    def update_and_record(
        self,
        table: str,
        assignments: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Mapping[str, Any]],
        where: str,
        *,
        into: str,
        values: Mapping[str, str],
        recorded: str,
    ) -> set[UUID]:
        changes = ", ".join(f"{name} = {value}" for name, value in assignments.items())
        done: set[UUID] = set()
        for arrays in array_batches(columns, rows):
            params = {f"b_{name}": text for name, text in arrays.items()}
            sql = f"""
                WITH b AS MATERIALIZED ({self._rows_from_arrays(columns, arrays)}),
                moved AS (
                    UPDATE {table} AS j SET {changes} FROM b WHERE j.id = b.id AND {where}
                    RETURNING j.id),
                noted AS (
                    INSERT INTO {into} ({", ".join(values)})
                    SELECT {", ".join(values.values())} FROM b JOIN moved ON moved.id = b.id
                    WHERE b.{recorded} IS NOT NULL)
                SELECT id FROM moved
                """  # noqa: S608 - names are our own
            done.update(row[0] for row in self.fetch(sql, params))
        return done

    def _rows_from_arrays(self, columns: Mapping[str, str], arrays: Collection[str]) -> str:
        """A select of a batch sent as arrays; NULL for the columns that have none."""
        present = [name for name in columns if name in arrays]
        unnested = ", ".join(f"%(b_{name})s::{self.types[columns[name]]}[]" for name in present)
        absent = [
            f"NULL::{self.types[kind]} AS {name}"
            for name, kind in columns.items()
            if name not in arrays
        ]
        chosen = ", ".join(["*", *absent])
        return f"SELECT {chosen} FROM unnest({unnested}) AS b({', '.join(present)})"  # noqa: S608

    def take(
        self, lane: str, limit: int, condition: str, params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        # The ARRAY form evaluates the locking sub-select exactly once, whatever the planner thinks;
        # IS NOT NULL lets a generic plan use the partial index. RETURNING has no order.
        return self.fetch(
            f"""
            UPDATE {JOBS} SET {self.claim_assignments()}
            WHERE id = ANY(ARRAY(
                SELECT id FROM {JOBS}
                WHERE namespace = %(namespace)s AND ready_lane = %(lane)s AND ready_lane IS NOT NULL
                  AND {condition}
                ORDER BY rank, scheduled_at, id LIMIT %(limit)s
                FOR UPDATE SKIP LOCKED))
            RETURNING {CLAIMED_COLUMNS}, {self.is_expired}, cancel_requested_at, rank,
                {self.due_order}
            """,  # noqa: S608 - names are our own
            {**params, "lane": lane, "limit": limit},
        )

    def heads(self, lanes: Sequence[str], limit: int) -> list[str]:
        rows = self.fetch(
            f"""
            SELECT lane.name FROM unnest(%(lanes)s::text[]) AS lane(name) CROSS JOIN LATERAL (
                SELECT rank, scheduled_at, id FROM {JOBS}
                WHERE namespace = %(namespace)s AND ready_lane = lane.name
                  AND ready_lane IS NOT NULL
                ORDER BY rank, scheduled_at, id LIMIT %(limit)s) AS head
            ORDER BY head.rank, head.scheduled_at, head.id LIMIT %(limit)s
            """,  # noqa: S608
            {"lanes": list(lanes), "limit": limit},
        )
        return [name for (name,) in rows]

    def promote(self, lane: str, limit: int) -> list[str | None]:
        rows = self.fetch(
            f"""
            UPDATE {JOBS} SET {promotion(lane)}, promote_at = NULL, updated_at = {{now}}
            WHERE id = ANY(ARRAY(
                SELECT id FROM {JOBS}
                WHERE namespace = %(namespace)s AND promote_at <= {{now}}
                ORDER BY promote_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
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
            " ORDER BY lease_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED",
            {**params, "limit": limit},
        )

    def lock_rows(
        self, columns: str, ids: Sequence[UUID], *, table: str = JOBS, only_free: bool = False
    ) -> list[tuple[Any, ...]]:
        return self.fetch(
            f"SELECT {columns} FROM {table} WHERE id = ANY(%(ids)s)"  # noqa: S608
            f" ORDER BY id FOR UPDATE{' SKIP LOCKED' if only_free else ''}",
            {"ids": list(ids)},
        )

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        # Of the transaction, not the session: behind a pooler the session is somebody else's next.
        digest = hashlib.sha256(f"flexiq:{name}".encode()).digest()
        key = int.from_bytes(digest[:8], "big", signed=True)
        with self.transaction():
            self.fetch("SELECT pg_advisory_xact_lock(%(key)s)", {"key": key})
            yield

    def delete_batch(
        self,
        table: str,
        condition: str,
        limit: int,
        params: Mapping[str, Any] | None = None,
        *,
        order: str | None = None,
    ) -> int:
        # The ARRAY keeps the planner from joining the table with itself, whole.
        return self.change(
            f"DELETE FROM {table} WHERE id = ANY(ARRAY("  # noqa: S608
            f" SELECT id FROM {table} WHERE {condition}{ordered(order)} LIMIT %(limit)s))",
            {**(params or {}), "limit": limit},
        )

    def limit_silence(self, seconds: float) -> None:
        self.set_options(libpq_options(seconds))

    def prepare_worker(self, silence: float) -> None:
        # Above it a count would see a snapshot that is older than the lock it holds.
        self.connection.connection.isolation_level = IsolationLevel.READ_COMMITTED
        self.fetch(*set_postgresql_server(silence))

    # --- waking -----------------------------------------------------------------------------------

    @property
    def channel(self) -> str:
        """The channel of the namespace. Hashed, as a channel name is short and unquoted."""
        digest = hashlib.sha256(self.scope.namespace.encode()).hexdigest()[:32]
        return f"flexiq_{digest}"

    def notify(self) -> None:
        self.change(f"NOTIFY {self.channel}")

    def with_notify(self, insert: str) -> str:
        # One round trip and one commit less than a NOTIFY of its own.
        return (
            f"WITH stored AS ({insert} RETURNING 1)"  # noqa: S608
            f" SELECT pg_notify('{self.channel}', '') FROM (SELECT 1 FROM stored LIMIT 1) AS one"
        )

    @property
    def sign(self) -> Sign | None:  # type: ignore[override]
        """Psycopg 3 can wait for notifications."""
        return "notification" if is_psycopg3 else None

    def wait_for_notify(self, wake_fd: int, seconds: float) -> bool:
        raw = self.connection.connection
        if getattr(raw, "flexiq_channel", None) != self.channel:
            self.change(f"LISTEN {self.channel}")
            raw = self.connection.connection
            raw.flexiq_channel = self.channel
            # One that comes with the answer to another statement is read by the driver.
            raw.flexiq_notified = came = threading.Event()
            raw.add_notify_handler(lambda _notification: came.set())
            return True
        if raw.flexiq_notified.is_set():
            raw.flexiq_notified.clear()
            return True
        if self._drain(raw):
            return True
        readable, _, _ = select.select([raw.fileno(), wake_fd], [], [], max(0.0, seconds))
        return raw.fileno() in readable and self._drain(raw)

    def _drain(self, raw: Any) -> bool:
        try:
            raw.pgconn.consume_input()
        except Exception as error:  # the driver's own, which Django does not wrap here
            raise OperationalError(*error.args) from error
        came = False
        while raw.pgconn.notifies() is not None:
            came = True
        return came

    @classmethod
    def trouble(cls, error: BaseException) -> Trouble | None:
        if isinstance(error, InterfaceError):
            return "outage"
        if not isinstance(error, DatabaseError):
            return None
        state = getattr(error.__cause__, "sqlstate", None)
        if state in _CONFLICTS:
            return "conflict"
        if state is None:
            # The driver itself lost the connection: the server had no chance to send a state.
            return "outage" if isinstance(error, OperationalError) else None
        return "outage" if state.startswith(_OUTAGE_CLASSES) else None
