"""Fixtures and marks that tests in every folder may use."""

import contextlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, connection
from hypothesis import settings as hypothesis_settings

from tests.concurrency import OtherConnection
from tests.processes import WorkerProcess

# A machine under load is slow, which is no finding; hanging is what pytest-timeout is for.
hypothesis_settings.register_profile("unhurried", deadline=None, print_blob=True)
hypothesis_settings.load_profile("unhurried")

END_OTHER_CLIENTS = {
    "postgresql": (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ),
    "mysql": (
        "SELECT CONCAT('KILL ', id) FROM information_schema.processlist "
        "WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    ),
}


def configured_vendor() -> str:
    """Django's name for the configured database, without connecting: sqlite3, postgresql, mysql."""
    return str(settings.DATABASES["default"]["ENGINE"]).rpartition(".")[2]


def pytest_report_header() -> str:
    """Say which database this run is about."""
    return f"database: {configured_vendor()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what SQLite cannot show, and keep the flows of one xdist run in one process."""
    no_row_locks = pytest.mark.skip(reason="SQLite has one writer at a time: no row locks to test")
    for item in items:
        if item.get_closest_marker("row_locks") and configured_vendor() == "sqlite3":
            item.add_marker(no_row_locks)
        if item.get_closest_marker("flows"):
            # Two processes at most start workers, so that these have a core each.
            group = zlib.crc32(item.path.name.encode()) % 2
            item.add_marker(pytest.mark.xdist_group(f"flows-{group}"))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Let go of the test database before it is dropped, whoever still holds a connection to it."""
    yield
    with django_db_blocker.unblock():
        _end_other_clients()


@pytest.fixture
def vendor() -> str:
    """Django's word for the database under test: sqlite, postgresql or mysql (MariaDB too)."""
    return connection.vendor


@pytest.fixture
def other_connection() -> Iterator[OtherConnection]:
    """A second real connection, in a thread of its own."""
    other = OtherConnection()
    yield other
    other.close()


@pytest.fixture
def start_worker(tmp_path: Path, transactional_db: None) -> Iterator[Callable[..., WorkerProcess]]:
    """Start worker processes on the test's database; all are dead when the test ends.

    Takes the arguments of WorkerProcess without `log_path`. The ends of their logs are part of a
    failing test's report.
    """
    started: list[WorkerProcess] = []

    def start(*arguments: str, **options: Any) -> WorkerProcess:
        log_path = tmp_path / f"worker-{len(started) + 1}.log"
        worker = WorkerProcess(*arguments, log_path=log_path, **options)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
        tail = f"--- {worker.log_path.name} (exit {worker.exit_code})\n{worker.log_tail()}"
        print(tail)  # noqa: T201 - captured, and shown when the test failed


def _end_other_clients() -> None:
    statement = END_OTHER_CLIENTS.get(connection.vendor)
    if statement is None:
        return
    with connection.cursor() as cursor:
        cursor.execute(statement)
        if connection.vendor == "mysql":
            for (kill,) in cursor.fetchall():
                with contextlib.suppress(DatabaseError):  # it may have left by itself meanwhile
                    cursor.execute(kill)
