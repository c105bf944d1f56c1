"""The server, its options and our tables in it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.db import Error as DjangoDatabaseError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader

from flexiq_django.checks.subjects import APP, our_aliases
from flexiq_django.conf import get_settings
from flexiq_django.store import contract
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

#: The oldest release of each database that has what the queries need.
OLDEST = {"SQLite": (3, 37), "PostgreSQL": (14,), "MariaDB": (10, 6), "MySQL": (8, 0, 11)}

#: Where PgBouncer listens unless told otherwise.
POOLER_PORT = "6432"

#: Connections of a worker beside one for each job it runs.
WORKER_CONNECTIONS = 5

_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}


@register(Tags.database)
def check_database(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """The server, its options and our tables in it."""
    found: list[CheckMessage] = []
    for alias in our_aliases():
        if alias not in (databases or ()):
            continue
        connection = connections[alias]
        try:
            found += _version(connection)
            found += _OPTIONS[connection.vendor](connection)
            if sys.argv[1:2] != ["migrate"]:  # which checks first, and then does what we ask for
                found += _migrations(connection)
            found += _contract(connection)
        except DjangoDatabaseError as error:
            hint = f"Start the server, or correct DATABASES[{alias!r}]."
            found.append(
                Error(f"{alias!r} cannot be reached: {error}", hint=hint, id="flexiq.E010")
            )
    return found


def _version(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    name = connection.display_name
    found = tuple(connection.get_database_version())
    oldest = OLDEST[name]
    if found < oldest:
        yield Error(
            f"{connection.alias!r} is {name} {_dotted(found)}; flexiq_django needs"
            f" {_dotted(oldest)} or newer.",
            hint="Upgrade the server, or put the queue into another database (FLEXIQ['DATABASE']).",
            id="flexiq.E011",
        )


def _migrations(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    loader = MigrationLoader(connection)
    applied = loader.applied_migrations
    missing = sorted(key[1] for key in loader.graph.nodes if key[0] == APP and key not in applied)
    if missing:
        yield Warning(
            f"Migrations of {APP} are missing in {connection.alias!r}: {', '.join(missing)}.",
            hint=f"Run manage.py migrate {APP} --database {connection.alias}.",
            id="flexiq.W012",
        )


def _contract(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    problem = contract.find_problem(Scope(using=connection.alias))
    if problem:
        hint = (
            "Upgrade flexiq_django here; a newer build can also lower the floor again. A floor that"
            " is wrong can be taken away by any build: queue.delete_setting('contract:min_sdk')."
        )
        yield Error(f"{problem}.", hint=hint, id="flexiq.E018")


def _sqlite(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    hint = f"Set DATABASES[{connection.alias!r}]['OPTIONS'] to {_SQLITE_OPTIONS!r}."
    mode = connection.settings_dict["OPTIONS"].get("transaction_mode") or "DEFERRED"
    if mode.upper() == "DEFERRED":
        yield Warning(
            f"SQLite ({connection.alias!r}) begins transactions without the write lock: one that"
            ' reads before it writes fails with "database is locked" as soon as workers run.',
            hint=hint,
            id="flexiq.W013",
        )
    scope = Scope(using=connection.alias)
    journal = str(open_database(scope).fetch("PRAGMA journal_mode")[0][0]).lower()
    if journal not in ("wal", "memory"):
        yield Warning(
            f"SQLite ({connection.alias!r}) runs with the journal mode {journal}: readers wait for"
            " writers, and each write costs up to five times as much as with WAL.",
            hint=hint,
            id="flexiq.W014",
        )


def _postgresql(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    from django.db.backends.postgresql import psycopg_any

    if get_settings().LISTEN and not psycopg_any.is_psycopg3:
        yield Warning(
            "psycopg 2 cannot wait for notifications: workers find new jobs by polling.",
            hint="Install psycopg 3 (psycopg[binary]), or set LISTEN to False in FLEXIQ.",
            id="flexiq.W015",
        )
    if get_settings().LISTEN and _seems_pooled(connection):
        yield Warning(
            f"{connection.alias!r} looks like a pooler (port {POOLER_PORT}, or server-side cursors"
            " switched off): in transaction mode workers are not notified of new jobs there.",
            hint="Set LISTEN to False in FLEXIQ; or silence this if it pools whole sessions.",
            id="flexiq.W023",
        )
    pool = connection.settings_dict["OPTIONS"].get("pool")
    if pool:
        size = pool.get("max_size", pool.get("min_size", 4)) if isinstance(pool, dict) else 4
        yield Warning(
            f"{connection.alias!r} has a connection pool of {size}; a worker uses as many"
            f" connections as it runs jobs, and {WORKER_CONNECTIONS} more.",
            hint=f"Give the worker a max_size of its --concurrency plus {WORKER_CONNECTIONS}, or"
            " settings without a pool.",
            id="flexiq.W016",
        )


def _seems_pooled(connection: BaseDatabaseWrapper) -> bool:
    settings = connection.settings_dict
    has_no_cursors = bool(settings.get("DISABLE_SERVER_SIDE_CURSORS"))
    return has_no_cursors or str(settings.get("PORT")) == POOLER_PORT


def _mysql(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    level = connection.settings_dict["OPTIONS"].get("isolation_level", "read committed")
    if str(level).lower() != "read committed":
        yield Info(
            f"{connection.alias!r} runs at the isolation level {level}. Workers set READ COMMITTED"
            " on their own connections; your code, when it enqueues with a unique key inside a"
            " transaction, may not see the job that holds the key.",
            hint="Leave isolation_level out: READ COMMITTED is Django's default.",
            id="flexiq.I017",
        )


_OPTIONS = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql}


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
