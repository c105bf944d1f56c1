"""The link to the database itself: signs of new work, set-up of a connection, and its troubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError

from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Sign, Trouble
from flexiq_django.store.vendors.patience import tries

R = TypeVar("R")

#: Seconds for which a verb is called again while other transactions are in its way.
_PATIENCE = 5.0


def require_supported(scope: Scope) -> None:
    """Raises ``NotImplementedError`` for a database of a kind that is not supported."""
    open_database(scope)


def has_tables(scope: Scope) -> bool:
    """Whether the database has been migrated."""
    return open_database(scope).has_tables()


def has_one_writer(scope: Scope) -> bool:
    """Whether all writers of the database wait for each other."""
    return open_database(scope).has_one_writer


def rest_factor(scope: Scope) -> float:
    """How long to rest between two batches of a sweep, as a multiple of the time one took."""
    return open_database(scope).rest_factor


def limit_silence(scope: Scope, seconds: float) -> None:
    """Have this thread's next connection give up a server that has been silent for so long."""
    open_database(scope).limit_silence(seconds)


def set_up(scope: Scope, silence: float) -> None:
    """Set up a connection of this thread that belongs to a worker itself.

    ``silence``: the seconds after which the server, if it can, gives us up.
    """
    open_database(scope).prepare_worker(silence)


def limit_lock_waits(scope: Scope, seconds: float) -> None:
    """Have a connection that was set up wait no longer for a lock: that is a conflict then."""
    open_database(scope).limit_lock_waits(seconds)


def trouble(scope: Scope, error: BaseException) -> Trouble | None:
    """Why a statement failed through no fault of its own; ``None`` for a real error."""
    return open_database(scope).trouble(error)


def call(scope: Scope, verb: Callable[[], R], *, patience: float = _PATIENCE) -> R:
    """Call a verb; again, for ``patience`` seconds, where another transaction was in its way.

    Inside a transaction of the caller once: what was done there before would be missing.
    """
    database = open_database(scope)
    turns = tries(patience)
    next(turns)
    while True:
        try:
            return verb()
        except DatabaseError as error:
            is_ours = database.connection.get_autocommit()
            if not is_ours or database.trouble(error) != "conflict" or next(turns, "over"):
                raise


def alone(scope: Scope, verb: Callable[[], R]) -> R:
    """Call a verb; if it fails, a transaction of the caller can still be used."""
    database = open_database(scope)
    if not database.connection.in_atomic_block:
        return verb()
    with database.savepoint():
        return verb()


def is_lost(scope: Scope) -> bool:
    """Whether the caller is inside a transaction that can only be taken back."""
    connection = open_database(scope).connection
    return connection.in_atomic_block and connection.needs_rollback


def notify(scope: Scope) -> None:
    """Tell listening workers of the namespace that there is work. Nothing where none can listen."""
    open_database(scope).notify()


def can_notify_with_insert(scope: Scope) -> bool:
    """Whether an insert made now commits by itself and can carry the notification."""
    database = open_database(scope)
    return database.sign == "notification" and not database.connection.in_atomic_block


def sign_of_work(scope: Scope) -> Sign | None:
    """How the database tells of new work; ``None`` where a worker has to look for itself."""
    return open_database(scope).sign


def wait_for_notify(scope: Scope, wake_fd: int, seconds: float) -> bool:
    """Listen, for at most ``seconds`` or until ``wake_fd`` is readable; whether to look for work.

    True at once on a connection that was not listening yet: something may have come before.
    """
    return open_database(scope).wait_for_notify(wake_fd, seconds)


def data_version(scope: Scope) -> int:
    """A number that changes when another connection commits."""
    return open_database(scope).data_version()
