"""A server that has vanished is given up in time, and gives us up in time."""

import os
import socket
from typing import Any

import pytest
from django.db import connections

from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.options import WorkerOptions
from tests.factories import at
from tests.worker.running import never

pytestmark = pytest.mark.django_db(transaction=True)


def kept(read: Any, silence: float = 12) -> Any:
    """What `read` finds on a new connection of the worker's own."""
    connections["default"].close()
    return Keeper(at(), never, silence=silence).call(read)


@pytest.fixture(autouse=True)
def own_connection(transactional_db: None) -> Any:
    """The settings of the connection as the project has them, before and after."""
    connection = connections["default"]
    before = connection.settings_dict = connections.settings["default"]
    yield
    connection.close()
    connection.settings_dict = before


def test_it_is_well_below_the_lease() -> None:
    def silence(lock_grace: float) -> float:
        return WorkerOptions(scope=at(), lock_grace=lock_grace).silence

    assert [silence(grace) for grace in (3, 15, 60, 600)] == [2, 5, 20, 20]


def test_postgresql_is_told_by_its_driver_and_told_to_do_the_same(vendor: str) -> None:
    if vendor != "postgresql":
        pytest.skip("about the options of libpq")

    def read() -> tuple[dict[str, str], list[str]]:
        connection = connections["default"]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT setting FROM pg_settings WHERE name IN ('tcp_keepalives_count',"
                " 'tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_user_timeout')"
                " ORDER BY name"
            )
            server = [setting for (setting,) in cursor.fetchall()]
        return connection.connection.info.get_parameters(), server

    ours, server = kept(read)
    assert ours["tcp_user_timeout"] == "12000"
    assert (ours["keepalives_idle"], ours["keepalives_interval"]) == ("6", "2")
    assert ours["connect_timeout"] == "12"
    assert server == ["3", "6", "2", "12000"]


def test_what_the_project_has_set_stands(vendor: str) -> None:
    if vendor == "sqlite":
        pytest.skip("SQLite has no server")
    connection = connections["default"]
    options = {**connection.settings_dict.get("OPTIONS", {}), "connect_timeout": 7}
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options}

    def read() -> Any:
        return connections["default"].settings_dict["OPTIONS"]["connect_timeout"]

    assert kept(read) == 7
    assert connections.settings["default"].get("OPTIONS", {}).get("connect_timeout") is None


def test_mariadb_is_told_by_its_socket(vendor: str) -> None:
    if vendor != "mysql":
        pytest.skip("about drivers without an option of their own")

    def read() -> list[int]:
        raw = connections["default"].connection
        with socket.socket(fileno=os.dup(raw.fileno())) as end:
            return [
                end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
            ]

    assert kept(read) == [1, 6, 12_000]
    assert kept(lambda: connections["default"].settings_dict["OPTIONS"]["connect_timeout"]) == 12
