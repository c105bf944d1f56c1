"""Databases that live as long as one measurement."""

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_numbers = itertools.count(1)


def server_url(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlsplit(url)._replace(scheme="postgresql", path=f"/{name}").geturl()


def connect(url: str) -> Any:
    """A connection of our own to watch a database with."""
    import psycopg

    return psycopg.connect(url, autocommit=True)


def connect_to_server(url: str) -> Any:
    """A connection to whatever database of the server is sure to be there."""
    import psycopg

    try:
        return connect(server_url(url, "postgres"))
    except psycopg.OperationalError:
        return connect(server_url(url, urlsplit(url).path[1:]))


@contextlib.contextmanager
def fresh_postgresql(url: str, *, copy_of: str | None = None) -> Iterator[str]:
    """A database on the server, dropped in the end; its URL.

    Empty, or a copy of another one, by its URL, to which nobody may be connected.
    """
    name = f"flexiq_bench_{os.getpid()}_{next(_numbers)}"
    template = f" TEMPLATE {urlsplit(copy_of).path[1:]}" if copy_of else ""
    with connect_to_server(url) as server:
        server.execute(f"CREATE DATABASE {name}{template}")
        try:
            yield server_url(url, name)
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def fresh_sqlite(*, copy_of: str | None = None) -> Iterator[str]:
    """The URL of a file in a folder that is removed in the end.

    The file does not exist yet, or is a copy of another one, by its URL, that nobody has open.
    """
    with tempfile.TemporaryDirectory(prefix="flexiq-bench-") as folder:
        path = Path(folder) / "jobs.sqlite3"
        if copy_of:
            shutil.copyfile(urlsplit(copy_of).path, path)
        yield f"sqlite://{path}"


def make_ready(url: str) -> None:
    """After a preload: fresh statistics, and nothing left for the disk to catch up with."""
    import psycopg

    with connect(url) as connection:
        connection.execute("ANALYZE")
        with contextlib.suppress(psycopg.Error):  # that needs a privilege
            connection.execute("CHECKPOINT")


class Watcher:
    """Asks one database for single values, without disturbing it more than it must."""

    def __init__(self, url: str) -> None:
        self._connection: Any
        if url.startswith("sqlite:"):
            import sqlite3

            self._connection = sqlite3.connect(urlsplit(url).path, isolation_level=None)
        else:
            self._connection = connect(url)

    def value(self, sql: str) -> Any:
        """The first column of the first row."""
        return self._connection.execute(sql).fetchone()[0]

    def close(self) -> None:
        """Let go."""
        self._connection.close()
