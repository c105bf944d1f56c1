"""What every database must be able to do, and the SQL they share.

A verb sends whole batches as one JSON parameter and joins against it: one text and one parameter
whatever the batch size, no limit on variables, and one transaction for many jobs.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from flexiq_django.models.fields import read_moment
from flexiq_django.store.vendors.batches import json_batches
from flexiq_django.store.vendors.link import JOBS, Link, Sign, Trouble
from flexiq_django.store.vendors.phrases import ordered


class Database(Link):
    """A database in its own dialect, on one connection in one scope."""

    #: SQL type for each kind of column in a JSON batch.
    types: ClassVar[Mapping[str, str]]
    #: The literal for a true boolean.
    true: ClassVar[str] = "1"
    #: What makes a SELECT see what is committed now, also where a snapshot of the past is the rule.
    latest: ClassVar[str] = ""
    #: What a naive UTC text needs to be read as UTC.
    zone_suffix: ClassVar[str] = ""
    #: The column ``rank``, quoted where that is a reserved word.
    rank: ClassVar[str] = "rank"
    #: What locks the rows a SELECT reads.
    for_update: ClassVar[str] = " FOR UPDATE"
    #: The same for those rows only that nobody else has locked.
    for_update_of_free: ClassVar[str] = " FOR UPDATE SKIP LOCKED"
    #: After the table of an UPDATE by id: finds the rows by their key, and locks no others.
    by_key: ClassVar[str] = ""
    #: When a ready job was due, in a form that sorts and is cheap to read.
    due_order: ClassVar[str] = "scheduled_at"
    #: Whether all writers of the database wait for each other.
    has_one_writer: ClassVar[bool] = False
    #: Rows moved by one promotion or retention statement: large, but short of stalling others.
    batch_size: ClassVar[int]
    #: Seconds a sweep rests after each batch, as a multiple of the time that batch took.
    rest_factor: ClassVar[float] = 0.0

    def by_index(self, name: str) -> str:
        """The same for an index by which some rows are always found, and so locked in one order."""
        return ""

    # --- values -----------------------------------------------------------------------------------

    @abstractmethod
    def plus_ms(self, moment: str, ms: str) -> str:
        """SQL for ``moment`` plus ``ms`` milliseconds, or NULL where ``ms`` is NULL."""

    @abstractmethod
    def spans_between(self, start: str, moment: str, ms: str) -> str:
        """SQL for how many whole spans of ``ms`` milliseconds lie between two moments."""

    def read(self, value: Any) -> datetime | None:
        """An aware datetime from a column."""
        return read_moment(value, self.connection)

    def id_text(self, value: UUID) -> str:
        """An id as every database reads it: 32 hexadecimal digits, which is what most store."""
        return value.hex

    @staticmethod
    def read_id(value: Any) -> UUID:
        """A UUID from what the driver returned for an id column."""
        return value if isinstance(value, UUID) else UUID(value)

    def concat(self, *parts: str) -> str:
        """SQL that joins texts."""
        return " || ".join(parts)

    # --- batches ----------------------------------------------------------------------------------

    @abstractmethod
    def rows_from_json(self, parameter: str, columns: Mapping[str, str]) -> str:
        """SQL for a table read from a JSON parameter: an array of objects.

        ``columns`` maps a name to a kind: id, text, int, big, float, bool or moment. A key that an
        object lacks reads as NULL.
        """

    @abstractmethod
    def among(self, column: str, ids: Iterable[UUID]) -> tuple[str, dict[str, Any]]:
        """SQL that says ``column`` is one of these ids, and its parameters. For a few hundred."""

    @abstractmethod
    def update_joined(
        self,
        table: str,
        assignments: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Mapping[str, Any]],
        where: str,
        params: Mapping[str, Any] | None = None,
    ) -> set[UUID]:
        """Update ``table AS j`` from the batch ``b``, matched by id; the ids that were updated."""

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
        """``update_joined``, and a row in ``into`` for each updated row with a ``recorded``."""
        with self.transaction():
            done = self.update_joined(table, assignments, columns, rows, where)
            texts = {self.id_text(key) for key in done}
            self.insert_rows(
                into,
                values,
                columns,
                [row for row in rows if row["id"] in texts and recorded in row],
            )
        return done

    def insert_rows(
        self,
        table: str,
        values: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Iterable[Mapping[str, Any]],
        *,
        where: str = "1 = 1",
        notify: bool = False,
    ) -> bool:
        """Insert one row per batch row ``b``; ``values`` maps a column to its SQL expression.

        All or none, also where they take more than one statement. ``where`` must hold for all rows
        alike: False when it did not and nothing was inserted. ``notify`` wakes listening workers
        with the commit.
        """
        sql = (
            f"INSERT INTO {table} ({', '.join(values)})"  # noqa: S608 - names are our own
            f" SELECT {', '.join(values.values())} FROM {self.rows_from_json('batch', columns)}"
            f" WHERE {where}"
        )
        if notify:
            sql = self.with_notify(sql)
        batches = list(json_batches(rows))
        with self.transaction() if len(batches) > 1 else contextlib.nullcontext():
            return all(self.change(sql, {"batch": batch}) for batch in batches)

    def alone(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Let one connection at a time in, where the database has a lock for that.

        Elsewhere whoever comes second fails on what the first has done, and may look again.
        """
        return contextlib.nullcontext()

    @abstractmethod
    def insert_unless_active(
        self,
        values: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Mapping[str, Any]],
        where: str,
    ) -> set[UUID]:
        """Insert keyed jobs whose ``active_key`` is free, if ``where`` holds; the ids inserted.

        Never aborts the transaction.
        """

    @abstractmethod
    def active_holder(self, active_key: str) -> UUID | None:
        """The id of the job that holds the key now, as committed or our own."""

    # --- claiming ---------------------------------------------------------------------------------

    @abstractmethod
    def take(
        self, lane: str, limit: int, condition: str, params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """Claim up to ``limit`` jobs of one lane that meet ``condition``, best first.

        Returns ``CLAIMED_COLUMNS``, whether the job has expired, when it was asked to stop, rank
        and due time.
        """

    @abstractmethod
    def heads(self, lanes: Sequence[str], limit: int) -> list[str]:
        """The lanes of the best ``limit`` ready jobs over several lanes; nothing is locked."""

    @abstractmethod
    def lanes(self) -> list[str]:
        """Every lane in which a job waits, found by skipping through the index."""

    @abstractmethod
    def promote(self, lane: str, limit: int) -> list[str | None]:
        """Make up to ``limit`` due jobs ready, or put them into line; the line of each.

        ``lane`` is SQL for the lane of a row. A job that holds the line of its session, as one that
        waits for a retry does, goes to its lane; another job of a session goes into line.
        """

    @abstractmethod
    def pick_expired_leases(
        self, limit: int, condition: str, params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """Up to ``limit`` running jobs whose lease is over: ``CLAIMED_COLUMNS``, token.

        ``condition`` is what else must hold, as SQL that begins with ``AND``, or nothing, with its
        ``params``.
        """

    @abstractmethod
    def lock_rows(
        self, columns: str, ids: Sequence[UUID], *, table: str = JOBS, only_free: bool = False
    ) -> list[tuple[Any, ...]]:
        """Lock rows by id, in id order, and read ``columns`` of them.

        ``only_free`` passes over those that somebody else has locked instead of waiting for them.
        """

    def lock_free(self, rows: Sequence[Mapping[str, Any]]) -> set[str] | None:
        """Lock those of the jobs that nobody else has locked; their ids as the batch spells them.

        ``None`` where rows cannot be locked one by one.
        """
        source = self.rows_from_json("batch", {"id": "id"})
        sql = (
            f"SELECT b.id FROM {source} JOIN {JOBS} AS j ON j.id = b.id"  # noqa: S608
            " FOR UPDATE OF j SKIP LOCKED"
        )
        return {
            self.id_text(self.read_id(key))
            for batch in json_batches(rows)
            for (key,) in self.fetch(sql, {"batch": batch})
        }

    def update_job(
        self, job_id: UUID, changes: str, condition: str, params: Mapping[str, Any]
    ) -> bool:
        """Change a job of the namespace if it meets ``condition``, SQL; whether it was changed."""
        # Of a ready job ``updated_at`` says since when it has been ready, so there it stays.
        changed = "CASE WHEN ready_lane IS NULL THEN {now} ELSE updated_at END"
        sql = (
            f"UPDATE {JOBS}{self.by_key} SET {changes}, updated_at = {changed}"  # noqa: S608
            f" WHERE id = %(id)s AND namespace = %(namespace)s AND {condition}"
        )
        return self.change(sql, {**params, "id": self.id_text(job_id)}) > 0

    def delete_rows(self, table: str, ids: Iterable[UUID], condition: str = "") -> int:
        """Delete rows by id, if they meet ``condition``, SQL that begins with ``AND``; how many."""
        among, params = self.among("id", ids)
        return self.change(f"{self.deletion(table)} WHERE {among}{condition}", params)

    def deletion(self, table: str) -> str:
        """What a statement begins with that deletes rows of a table by their id."""
        return f"DELETE FROM {table}"  # noqa: S608

    def order_beside_null(self, absent: str, column: str) -> str:
        """The order by ``column`` of rows whose ``absent`` is NULL, for an index that holds both.

        Naming both keeps the planner from an index that has other rows in between.
        """
        return f"{absent}, {column}"

    def delete_batch(
        self,
        table: str,
        condition: str,
        limit: int,
        params: Mapping[str, Any] | None = None,
        *,
        order: str | None = None,
    ) -> int:
        """Delete up to ``limit`` rows that meet ``condition``, the first of ``order``; how many."""
        return self.change(
            f"DELETE FROM {table} WHERE id IN"  # noqa: S608 - names are our own
            f" (SELECT id FROM {table} WHERE {condition}{ordered(order)} LIMIT %(limit)s)",
            {**(params or {}), "limit": limit},
        )


__all__ = ["JOBS", "Database", "Sign", "Trouble"]
