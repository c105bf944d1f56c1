"""Bring the tables of this app up to date."""

from __future__ import annotations

import threading

from django.core.management import call_command
from django.db import Error as DjangoDatabaseError
from django.db.migrations.executor import MigrationExecutor

from flexiq_django.exceptions import ConfigurationError
from flexiq_django.models import Setting
from flexiq_django.store import contract
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Database

APP = Setting._meta.app_label

#: Seconds to wait for another process that is changing the tables, and between two looks.
_PATIENCE, _PAUSE = 10.0, 0.1

_one_at_a_time = threading.Lock()


def pending(scope: Scope) -> list[str]:
    """The names of the migrations that have not been applied, in their order."""
    executor = MigrationExecutor(open_database(scope).connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes(APP))
    return [migration.name for migration, _ in plan if migration.app_label == APP]


def migrate(scope: Scope) -> list[str]:
    """Apply what is pending; the names of what this call applied.

    Any number of processes may do it at once: one applies, the others wait and find nothing to do.
    Raises ``ConfigurationError`` inside a transaction, unless nothing is pending, and
    ``ContractError`` if this build may not work with the database.
    """
    database = open_database(scope)
    if database.has_table(Setting._meta.db_table):
        contract.require(scope)
    if not pending(scope):
        return []
    if database.connection.in_atomic_block:
        raise ConfigurationError(
            f"database {scope.using!r} has to be migrated, which cannot be done inside a"
            " transaction: call migrate() before it, or run manage.py migrate"
        )
    with _one_at_a_time:
        return _persist(database)


def _persist(database: Database) -> list[str]:
    waited = 0.0
    while True:
        try:
            return _apply(database)
        except DjangoDatabaseError:
            # Without a lock, perhaps another process did the same and is about to record it.
            if waited >= _PATIENCE or not database.has_one_writer:
                raise
            if not pending(database.scope):
                return []
        threading.Event().wait(_PAUSE)
        waited += _PAUSE


def _apply(database: Database) -> list[str]:
    with database.alone("migrate"):
        names = pending(database.scope)
        if names:
            call_command(
                "migrate", APP, database=database.scope.using, interactive=False, verbosity=0
            )
        return names
