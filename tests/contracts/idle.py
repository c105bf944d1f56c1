"""A child process without Django: it says that it is ready, and waits to be let go."""

from multiprocessing.connection import Connection


def serve(connection: Connection) -> None:
    connection.send(("ready", None))
    connection.recv()
