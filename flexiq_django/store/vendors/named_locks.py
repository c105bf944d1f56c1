"""Locks by name, which MariaDB and MySQL have for the whole server."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence

from django.db import DatabaseError

from flexiq_django.store.vendors.base import Database

#: Seconds to wait for others who enqueue the same key; then InnoDB has to sort it out.
_PATIENCE = 5
#: Seconds to wait for another process that changes tables.
_LONG_PATIENCE = 3600


class NamedLocks(Database):
    """What one connection at a time may do."""

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """See ``Database.alone``. A statement that changes tables commits: no row lock would do."""
        lock = {"lock": self._lock_name(name)}
        self.fetch(f"SELECT GET_LOCK(%(lock)s, {_LONG_PATIENCE})", lock)
        try:
            yield
        finally:
            with contextlib.suppress(DatabaseError):  # a lost connection has let go already
                self.fetch("SELECT RELEASE_LOCK(%(lock)s)", lock)

    @contextlib.contextmanager
    def alone_with(self, keys: Sequence[str]) -> Iterator[None]:
        """Let one connection at a time wait for a unique key.

        When the holder of a key rolls back, InnoDB grants everybody who waited for it a shared
        lock, and then all but one die of a deadlock, with the transactions of their callers.
        """
        names = sorted(self._lock_name(f"{self.scope.namespace}:{key}") for key in keys)
        params = {"batch": json.dumps([{"name": name} for name in names])}
        source = self.rows_from_json("batch", {"name": "text"})
        self.fetch(f"SELECT SUM(GET_LOCK(b.name, {_PATIENCE})) FROM {source}", params)  # noqa: S608
        try:
            yield
        finally:
            with contextlib.suppress(DatabaseError):  # a lost connection has let go already
                self.fetch(f"SELECT SUM(RELEASE_LOCK(b.name)) FROM {source}", params)  # noqa: S608

    def _lock_name(self, text: str) -> str:
        # These locks belong to the whole server, and their names are short.
        whole = f"{self.connection.settings_dict['NAME']}:{text}"
        return f"flexiq:{hashlib.sha256(whole.encode()).hexdigest()[:40]}"
