"""How long a worker's own connection waits for what other transactions have locked."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from flexiq_django.store.vendors.base import Database

#: On Django's connection: the driver's connection that is limited, and to how many milliseconds.
_LIMIT = "flexiq_lock_ms"


class LimitOfTransaction(Database):
    """PostgreSQL: each transaction says it anew.

    Behind a pooler a setting of the session would be left to whoever has the connection next.
    """

    def limit_lock_waits(self, seconds: float) -> None:
        setattr(self.connection, _LIMIT, (self.connection.connection, round(seconds * 1000)))

    def change(
        self, sql: str, params: Mapping[str, Any] | None = None, *, may_wait: bool = True
    ) -> int:
        if self._limit is None or self.connection.in_atomic_block or not may_wait:
            return super().change(sql, params)
        with self.transaction():
            return super().change(sql, params)

    @contextlib.contextmanager
    def _begin(self) -> Iterator[None]:
        limit = None if self.connection.in_atomic_block else self._limit
        with super()._begin():
            if limit is not None:
                self.fetch("SELECT set_config('lock_timeout', %(ms)s, true)", {"ms": f"{limit}ms"})
            yield

    @property
    def _limit(self) -> int | None:
        limited, milliseconds = getattr(self.connection, _LIMIT, (None, None))
        return milliseconds if limited is self.connection.connection else None


class LimitOfSession(Database):
    """MariaDB and MySQL, which count whole seconds."""

    def limit_lock_waits(self, seconds: float) -> None:
        limit = max(1, math.ceil(seconds))
        self.change(f"SET SESSION innodb_lock_wait_timeout = {limit}")
