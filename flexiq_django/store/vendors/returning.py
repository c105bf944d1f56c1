"""SQL shared by the two databases that have UPDATE ... RETURNING and ON CONFLICT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.vendors.batches import json_batches


class ReturningMixin(Database):
    """PostgreSQL and SQLite."""

    #: How an UPDATE of ``j`` names the id it returns.
    returned_id = "j.id"
    is_expired = "(expires_at IS NOT NULL AND expires_at <= {now})"

    def claim_assignments(self) -> str:
        """What a claim writes: the lease, the fence and who holds it."""
        return (
            "status = 'running', ready_lane = NULL, attempt = attempt + 1, token = %(token)s,"
            " worker_id = %(worker_id)s, started_at = {now}, updated_at = {now},"
            f" lease_at = {self.plus_ms('{now}', '%(lease_ms)s')}"
        )

    def update_joined(
        self,
        table: str,
        assignments: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Mapping[str, Any]],
        where: str,
        params: Mapping[str, Any] | None = None,
    ) -> set[UUID]:
        changes = ", ".join(f"{name} = {value}" for name, value in assignments.items())
        sql = (
            f"UPDATE {table} AS j SET {changes} FROM {self.rows_from_json('batch', columns)}"  # noqa: S608
            f" WHERE j.id = b.id AND {where} RETURNING {self.returned_id}"
        )
        return {
            self.read_id(row[0])
            for batch in json_batches(rows)
            for row in self.fetch(sql, {**(params or {}), "batch": batch})
        }

    def insert_unless_active(
        self,
        values: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Mapping[str, Any]],
        where: str,
    ) -> set[UUID]:
        # A WHERE keeps SQLite's parser from reading ON as the ON of a join.
        sql = (
            f"INSERT INTO {JOBS} ({', '.join(values)}) SELECT {', '.join(values.values())}"  # noqa: S608
            f" FROM {self.rows_from_json('batch', columns)} WHERE {where}"
            " ON CONFLICT (namespace, active_key) WHERE active_key IS NOT NULL DO NOTHING"
            " RETURNING id"
        )
        return {
            self.read_id(row[0])
            for batch in json_batches(rows)
            for row in self.fetch(sql, {"batch": batch})
        }

    def active_holder(self, active_key: str) -> UUID | None:
        rows = self.fetch(
            f"SELECT id FROM {JOBS} WHERE namespace = %(namespace)s"  # noqa: S608
            " AND active_key = %(active_key)s",
            {"active_key": active_key},
        )
        return self.read_id(rows[0][0]) if rows else None

    def lanes(self) -> list[str]:
        # A recursive walk over min(lane) reads one index entry per lane; DISTINCT reads them all.
        rows = self.fetch(
            f"""
            WITH RECURSIVE walk(lane) AS (
                SELECT (SELECT min(ready_lane) FROM {JOBS}
                        WHERE namespace = %(namespace)s AND ready_lane IS NOT NULL)
                UNION ALL
                SELECT (SELECT min(ready_lane) FROM {JOBS}
                        WHERE namespace = %(namespace)s AND ready_lane > walk.lane)
                FROM walk WHERE walk.lane IS NOT NULL)
            SELECT lane FROM walk WHERE lane IS NOT NULL
            """  # noqa: S608
        )
        return [lane for (lane,) in rows]
