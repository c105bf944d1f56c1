"""How long a connection bears a silent peer: said to a driver, to a server, to a socket."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import NamedTuple


class Silence(NamedTuple):
    """Whole seconds: until the first question, between questions, for all of it; their number."""

    idle: int
    interval: int
    tries: int
    total: int


def measure(seconds: float) -> Silence:
    """About as many seconds, divided."""
    total = max(1, round(seconds))
    return Silence(max(1, total // 2), max(1, total // 6), 3, total)


def libpq_options(seconds: float) -> dict[str, int]:
    """Options of a PostgreSQL connection."""
    silence = measure(seconds)
    return {
        "connect_timeout": max(2, silence.total),
        "tcp_user_timeout": silence.total * 1000,  # what we have sent and nobody confirms
        "keepalives_idle": silence.idle,  # what we wait for in silence
        "keepalives_interval": silence.interval,
        "keepalives_count": silence.tries,
    }


def set_postgresql_server(seconds: float) -> tuple[str, dict[str, str]]:
    """A statement, with its parameters, that has the server give up on this session likewise.

    A machine that vanishes inside a transaction leaves its locks to the server, which by default
    asks after it two hours later. What the server's administrator has set stands.
    """
    silence = measure(seconds)
    return (
        "SELECT set_config(name, wanted.value, false) FROM pg_settings JOIN (VALUES"
        " ('tcp_keepalives_idle', %(idle)s), ('tcp_keepalives_interval', %(interval)s),"
        " ('tcp_keepalives_count', %(count)s), ('tcp_user_timeout', %(total)s)"
        ") AS wanted (name, value) USING (name) WHERE source = 'default'",
        {
            "idle": str(silence.idle),
            "interval": str(silence.interval),
            "count": str(silence.tries),
            "total": str(silence.total * 1000),
        },
    )


def limit_socket(descriptor: int, seconds: float) -> None:
    """Have the system end a TCP connection, where the driver has no option for it.

    Does nothing for a socket that is not TCP, and only as much as the system can.
    """
    silence = measure(seconds)
    wanted = {
        "TCP_KEEPIDLE": silence.idle,
        "TCP_KEEPINTVL": silence.interval,
        "TCP_KEEPCNT": silence.tries,
        "TCP_USER_TIMEOUT": silence.total * 1000,
    }
    with contextlib.closing(socket.socket(fileno=os.dup(descriptor))) as ours:
        if ours.family not in (socket.AF_INET, socket.AF_INET6):
            return
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in wanted.items():
            if hasattr(socket, name):
                ours.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
