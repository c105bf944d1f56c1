"""The one place where SQL differs by database."""

from __future__ import annotations

from django.db import connections

from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors.base import Database


def open_database(scope: Scope) -> Database:
    """The scope's database, spoken to in its own dialect, on this thread's connection."""
    connection = connections[scope.using]
    return dialect(connection.vendor)(connection, scope)


def dialect(vendor: str) -> type[Database]:
    """The dialect class for Django's vendor name. Raises ``NotImplementedError`` for another."""
    if vendor == "postgresql":
        from flexiq_django.store.vendors.postgresql import PostgreSQL

        return PostgreSQL
    if vendor == "sqlite":
        from flexiq_django.store.vendors.sqlite import SQLite

        return SQLite
    if vendor == "mysql":
        from flexiq_django.store.vendors.mysql import MySQL

        return MySQL
    raise NotImplementedError(
        f"flexiq_django runs on SQLite, PostgreSQL, MariaDB and MySQL, not on {vendor}"
    )
