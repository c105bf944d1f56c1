"""A database that cannot answer: 503, whatever was asked."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.test import Client

from flexiq_django.store.ids import new_id
from tests.http.conftest import Caller, detail, token


@pytest.fixture
def add_alias() -> Iterator[Callable[..., str]]:
    """Adds a database, of SQLite, which nothing migrates."""
    name = "jobs"

    def add(path: str) -> str:
        connections.settings[name] = {
            **connections.settings[DEFAULT_DB_ALIAS],
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": path,
            "OPTIONS": {},
        }
        return name

    yield add
    connections[name].close()
    delattr(connections._connections, name)
    del connections.settings[name]


@pytest.mark.parametrize(
    ("path", "said"),
    [("empty.sqlite3", "the database 'jobs' has not been migrated"),
     ("no/such/folder.sqlite3", "the database is not available; try again")],
)  # fmt: skip
def test_a_database_that_is_away_or_empty_answers_503(
    surface: Any,
    add_alias: Callable[..., str],
    django_db_blocker: Any,
    tmp_path: Path,
    path: str,
    said: str,
) -> None:
    surface.FLEXIQ = {**surface.FLEXIQ, "DATABASE": add_alias(str(tmp_path / path))}
    caller = Caller(Client(), Authorization=f"Bearer {token('admin')}")
    with django_db_blocker.unblock():
        responses = [
            caller.get("stats"),
            caller.get("jobs"),
            caller.get(f"jobs/{new_id()}"),
            caller.post(f"jobs/{new_id()}/requeue"),
        ]
    for response in responses:
        assert (response.status_code, detail(response)) == (503, said)
