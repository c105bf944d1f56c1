"""System checks: what is wrong with the settings, the database or the set-up, and what to do.

Errors are ``flexiq.E...``, warnings ``flexiq.W...``, notes ``flexiq.I...``. Those that have to ask
a database run with ``manage.py check --database ALIAS``, and whenever ``migrate`` runs: so what a
migration cures is no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.db import DatabaseError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader

from flexiq_django.api.queue import Queue, declared_queues
from flexiq_django.api.task import Task
from flexiq_django.conf import Settings, find_problems, get_settings
from flexiq_django.store import contract
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import dialect, open_database

APP = "flexiq_django"

#: The oldest release of each database that has what the queries need.
OLDEST = {"SQLite": (3, 37), "PostgreSQL": (14,), "MariaDB": (10, 6), "MySQL": (8, 0, 11)}

#: Connections of a worker beside one for each job it runs.
WORKER_CONNECTIONS = 4

_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}


# --- settings and set-up: no database is asked ----------------------------------------------------


@register
def check_settings(**_: Any) -> list[CheckMessage]:
    """The ``FLEXIQ`` setting by itself."""
    problems = find_problems(getattr(django_settings, "FLEXIQ", {}))
    if problems:
        hint = "Correct FLEXIQ in the settings; the documentation lists every key."
        return [Error(text, hint=hint, id="flexiq.E001") for text in problems]
    return list(_times(get_settings()))


def _times(settings: Settings) -> Iterable[CheckMessage]:
    grace = settings.LOCK_GRACE_SECONDS
    if settings.heartbeat_seconds >= grace:
        yield Error(
            f"The heartbeat ({settings.heartbeat_seconds:g} s) is not shorter than the lock grace"
            f" ({grace:g} s): running jobs would be taken from healthy workers.",
            hint="Leave HEARTBEAT_SECONDS out, which takes a quarter of LOCK_GRACE_SECONDS.",
            id="flexiq.E004",
        )
    stop = settings.STOP_TIMEOUT_SECONDS
    if stop >= grace:
        yield Error(
            f"The stop timeout ({stop:g} s) is not below the lock grace"
            f" ({grace:g} s): jobs of a worker that is stopping would be taken from it.",
            hint="Lower STOP_TIMEOUT_SECONDS or raise LOCK_GRACE_SECONDS.",
            id="flexiq.E005",
        )


@register
def check_alias(**_: Any) -> list[CheckMessage]:
    """The databases that the queues name."""
    found: list[CheckMessage] = []
    for alias in _wanted_aliases():
        if alias not in connections:
            text = f"A queue lives in the database {alias!r}, which DATABASES does not have."
            hint = f"Use one of {', '.join(sorted(connections))}, or add {alias!r}."
            found.append(Error(text, hint=hint, id="flexiq.E002"))
            continue
        try:
            dialect(connections[alias].vendor)
        except NotImplementedError as error:
            hint = "Put the queue into a supported database: set DATABASE in FLEXIQ to its alias."
            found.append(Error(f"{error}.", hint=hint, id="flexiq.E003"))
    return found


@register
def check_router(**_: Any) -> list[CheckMessage]:
    """That a router leaves our tables together, in the queue's database."""
    found: list[CheckMessage] = []
    models = list(apps.get_app_config(APP).get_models())
    for alias in _aliases():
        missing = [one for one in models if not router.allow_migrate_model(alias, one)]
        away = [one for one in models if router.db_for_write(one) != alias]
        if missing:
            names = ", ".join(one.__name__ for one in missing)
            text = f"A database router keeps {names} out of {alias!r}, where a queue lives."
            hint = f"Let allow_migrate() allow the app {APP} on {alias!r}, all of it."
            found.append(Error(text, hint=hint, id="flexiq.E006"))
        elif away and router.routers and alias == get_settings().DATABASE:
            place = f"{away[0].__name__} to {router.db_for_write(away[0])!r}"
            text = f"A database router sends {place}, but the queue lives in {alias!r}."
            hint = f"Route the app {APP} to the alias that FLEXIQ['DATABASE'] names."
            found.append(Warning(text, hint=hint, id="flexiq.W007"))
    return found


@register
def check_transactional_tasks(**_: Any) -> list[CheckMessage]:
    """That a task that commits with its job writes to the database of its job."""
    return [
        Warning(
            f"The task {task.name} is transactional in the database {alias!r}, but the app"
            f" {config.label} writes to {away!r}: what it does there does not commit together with"
            " its job.",
            hint="Declare the task on a queue in the database it writes to, or without"
            " transactional=True.",
            id="flexiq.W008",
        )
        for alias, task in _transactional_tasks()
        if (config := apps.get_containing_app_config(task.function.__module__)) is not None
        if (away := _written_elsewhere(config, alias)) is not None
    ]


@register
def check_twin(**_: Any) -> list[CheckMessage]:
    """That no other app owns the name of our worker command."""
    if not apps.is_installed("flexiq.contrib.django"):
        return []
    return [
        Warning(
            "Both flexiq_django and flexiq.contrib.django are installed; each has a command"
            " flexiq_worker, and the app that comes first in INSTALLED_APPS wins.",
            hint="Remove flexiq.contrib.django from INSTALLED_APPS. FLEXIQ is the only setting"
            " that flexiq_django reads.",
            id="flexiq.W009",
        )
    ]


# --- the database ---------------------------------------------------------------------------------


@register(Tags.database)
def check_database(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """The server, its options and our tables in it."""
    found: list[CheckMessage] = []
    for alias in _aliases():
        if alias not in (databases or ()):
            continue
        connection = connections[alias]
        try:
            found += _version(connection)
            found += _OPTIONS[connection.vendor](connection)
            found += _migrations(connection)
            found += _contract(connection)
        except DatabaseError as error:
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
        hint = "Upgrade flexiq_django here; a newer build can also lower the floor again."
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


def _queues() -> list[Queue]:
    """Every queue of the project; none while the settings cannot be read."""
    bad = find_problems(getattr(django_settings, "FLEXIQ", {}))
    return [] if bad else declared_queues()


def _wanted_aliases() -> list[str]:
    named = {queue.place.using for queue in _queues()}
    return sorted({get_settings().DATABASE, *named}) if named else []


def _aliases() -> list[str]:
    """The databases in which queues live, those that there are and that we can speak to."""
    return [
        alias
        for alias in _wanted_aliases()
        if alias in connections and connections[alias].vendor in _OPTIONS
    ]


def _transactional_tasks() -> list[tuple[str, Task[Any, Any]]]:
    found = [
        (queue.place.using, task)
        for queue in _queues()
        for task in queue.tasks.values()
        if task.options.transactional
    ]
    return sorted(found, key=lambda pair: pair[1].name)


def _written_elsewhere(config: AppConfig, alias: str) -> str | None:
    """The database, not ``alias``, that a model of the app is written to."""
    written = (router.db_for_write(model) for model in config.get_models())
    return next((other for other in written if other != alias), None)


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
