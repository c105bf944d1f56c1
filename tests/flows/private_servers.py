"""A database server of one's own, to be stopped and started again in the middle of a test."""

import contextlib
import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.db import connections
from django.db.utils import DEFAULT_DB_ALIAS

from tests.waiting import wait_until

ALIAS = "private"


class PrivateServer(ABC):
    """A server in a folder of its own, on a free port, with one empty database."""

    #: The account that runs it when we are root, which neither server allows.
    account: ClassVar[str]
    database: ClassVar[str]
    user: ClassVar[str]
    #: The signals that end it in an orderly way, and at once.
    fast_signal: ClassVar[signal.Signals] = signal.SIGTERM
    immediate_signal: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            owner = pwd.getpwnam(self.account)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self.install()

    @property
    @abstractmethod
    def url(self) -> str:
        """The database as FLEXIQ_TEST_DATABASE_URL names it."""

    @abstractmethod
    def install(self) -> None:
        """Create the data folder. Skips the test where the programs are missing."""

    @abstractmethod
    def command(self) -> list[str]:
        """What to run."""

    def start(self) -> None:
        """Start it; returns when it answers."""
        self._process = self._spawn(self.command())
        wait_until(self._answers, 60, f"{self.database} on port {self.port}")

    def stop(self, *, at_once: bool) -> None:
        """Stop it; returns when it is gone."""
        assert self._process is not None
        self._process.send_signal(self.immediate_signal if at_once else self.fast_signal)
        self._process.wait(60)

    def close(self) -> None:
        """Stop it if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self.immediate_signal)
            self._process.wait(60)

    def run(self, *command: str) -> None:
        """Run a program as the account of the server."""
        process = self._spawn(list(command))
        assert process.wait(120) == 0, (self.folder / "server.log").read_text(errors="replace")

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        user = self.account if getpass.getuser() == "root" else None
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                user=user,
                # MariaDB, when it starts, deletes the temporary tables it finds in there: not those
                # of the other servers of this machine.
                env={**os.environ, "TMPDIR": str(self.folder)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        connection = connections[ALIAS]
        try:
            connection.ensure_connection()
        except Exception:  # whatever it is, the server is not there yet
            return False
        finally:
            connection.close()
        return True


class PrivatePostgreSQL(PrivateServer):
    """PostgreSQL, with the newest programs that are installed.

    `addresses` are those it listens at beside 127.0.0.1, each with the network it lets in there.
    """

    addresses: ClassVar[dict[str, str]] = {}
    account = "postgres"
    database = "postgres"
    user = "postgres"
    fast_signal = signal.SIGINT
    immediate_signal = signal.SIGQUIT

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def install(self) -> None:
        data = str(self.folder / "data")
        self.run(self._program("initdb"), "-A", "trust", "-U", "postgres", "-N", "-D", data)
        with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.writelines(f"host all all {net} trust\n" for net in self.addresses.values())

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": ",".join(["127.0.0.1", *self.addresses]),
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "max_connections": "60",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        data = str(self.folder / "data")
        return [self._program("postgres"), "-D", data, "-p", str(self.port), *options]

    def _program(self, name: str) -> str:
        installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        found = str(installed[-1]) if installed else shutil.which(name)
        return found or pytest.skip(f"{name} is not installed here")


class PrivateMariaDB(PrivateServer):
    """MariaDB."""

    account = "mysql"
    database = "test"
    user = "root"

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/test"

    def install(self) -> None:
        install = shutil.which("mariadb-install-db") or pytest.skip("MariaDB is not installed here")
        data = str(self.folder / "data")
        self.run(
            install,
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
        )

    def command(self) -> list[str]:
        program = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        return [
            program or pytest.skip("mariadbd is not installed here"),
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--character-set-server=utf8mb4",
            "--innodb-flush-log-at-trx-commit=2",
        ]


SERVERS: dict[str, type[PrivateServer]] = {"postgresql": PrivatePostgreSQL, "mysql": PrivateMariaDB}


@contextlib.contextmanager
def private_server(kind: type[PrivateServer]) -> Iterator[PrivateServer]:
    """A running server of the kind, which this process reaches under the alias `private`."""
    folder = Path(tempfile.mkdtemp(prefix="flexiq-server-"))
    server: PrivateServer | None = None
    try:
        server = kind(folder)
        connections.settings[ALIAS] = _alias_settings(server)
        server.start()
        yield server
    finally:
        with contextlib.suppress(Exception):
            connections[ALIAS].close()
            del connections[ALIAS]
        connections.settings.pop(ALIAS, None)
        if server is not None:
            server.close()
        shutil.rmtree(folder, ignore_errors=True)


def _alias_settings(server: PrivateServer) -> dict[str, Any]:
    return {
        **connections.settings[DEFAULT_DB_ALIAS],
        "NAME": server.database,
        "USER": server.user,
        "PASSWORD": "",
        "HOST": "127.0.0.1",
        "PORT": str(server.port),
    }


def free_port() -> int:
    """A TCP port that nobody uses at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
