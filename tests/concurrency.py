"""Real connections beside the test's own, in threads that close what they opened.

A test that uses these needs committed data: `@pytest.mark.django_db(transaction=True)`.
"""

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")

DEADLINE = 60.0

#: In the report of InnoDB: the connection of a transaction that waits for a lock.
_WAITING = re.compile(r"^LOCK WAIT\b.*?thread id (\d+)", re.DOTALL | re.MULTILINE)


def run_in_threads(callables: Sequence[Callable[[], T]], deadline: float = DEADLINE) -> list[T]:
    """Run all at once, each in a thread with a connection of its own; their results in order.

    They start together, behind a barrier. When all have ended, the first exception among them (in
    their order) is raised here. One that has not ended after `deadline` seconds is an
    AssertionError.
    """
    start = threading.Barrier(len(callables))
    futures = [_start(function, start) for function in callables]
    unfinished = wait(futures, timeout=deadline).not_done
    if unfinished:
        raise AssertionError(
            f"{len(unfinished)} of {len(futures)} threads still ran after {deadline:g} s"
        )
    return [future.result() for future in futures]


class OtherConnection:
    """One thread with one connection, for a test that acts as two clients by turns.

    `run` waits for the answer; `submit` returns a future, for a statement that is to block.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="other-connection")

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` on the other connection and return what it returned."""
        return self.submit(function, *args, **kwargs).result(DEADLINE)

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start `function` on the other connection, after whatever was submitted before."""
        return self._executor.submit(function, *args, **kwargs)

    def close(self) -> None:
        """Close the connection, which rolls back what it left open, and end the thread."""
        self._executor.submit(connections.close_all).result(DEADLINE)
        self._executor.shutdown()


def blocked_connections() -> int:
    """How many connections to the test database wait for a lock."""
    connection = connections["default"]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # In a transaction it would go on to tell what it told first.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
        else:
            # Not the table innodb_trx: it stays as it is while anybody reads it ten times a second.
            cursor.execute("SHOW ENGINE INNODB STATUS")
            waiting = [0, *map(int, _WAITING.findall(str(cursor.fetchone()[2])))]
            cursor.execute(
                "SELECT count(*) FROM information_schema.processlist"
                " WHERE db = DATABASE() AND (id IN %s OR state = 'User lock')",
                [tuple(waiting)],
            )
        return int(cursor.fetchone()[0])


def _start(function: Callable[[], T], start: threading.Barrier) -> Future[T]:
    future: Future[T] = Future()

    def body() -> None:
        try:
            start.wait(DEADLINE)
            result = function()
        except BaseException as error:
            connections.close_all()
            future.set_exception(error)
        else:
            connections.close_all()
            future.set_result(result)

    threading.Thread(target=body, daemon=True).start()
    return future
