"""Connections of a worker: its own, kept through outages, and the jobs', kept clean."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from django.db import Error as DjangoDatabaseError
from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from flexiq_django.exceptions import ConfigurationError
from flexiq_django.scheduler.loop import Blocked, Interrupted
from flexiq_django.store import link
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

R = TypeVar("R")

#: Longest pause between two tries while the database is away, in seconds.
_LONGEST_OUTAGE_PAUSE = 5.0
#: Longest pause after a conflict with another transaction, in seconds.
_LONGEST_CONFLICT_PAUSE = 0.003

#: On Django's connection: the driver's connection that has been set up as the worker's own.
_SET_UP = "flexiq_set_up"

#: One turn at a time for the worker's own threads where the database has but one writer: they wait
#: for each other here, at no cost, rather than by trying again and again.
_one_writer = threading.Lock()


class GaveUp(Interrupted):
    """The database stayed away and the worker has no time left to wait for it."""


class Keeper:
    """Runs store verbs on a thread's connection until they succeed.

    ``is_own``: the connection is the worker's, which sets it up as it needs; a job's is left alone.

    ``silence``: seconds after which its server counts as gone.

    A conflict with another transaction is tried again at once, an outage with a growing pause on a
    new connection; any other error is the caller's. ``must_give_up`` ends the waiting with
    ``GaveUp``. With ``patience`` no statement waits longer than so many seconds for rows that
    others have locked, and conflicts that go on for as long end with ``Blocked``.
    """

    def __init__(
        self,
        scope: Scope,
        must_give_up: Callable[[], bool],
        *,
        is_own: bool = True,
        silence: float = 20.0,
        patience: float | None = None,
    ) -> None:
        self._scope = scope
        self._is_own = is_own
        self._silence = silence
        self._patience = patience
        self._must_give_up = must_give_up
        #: How often the database was found to be away.
        self.outages = 0
        #: Whether the database was away when it was last asked.
        self.is_away = False
        #: When it came back last, in monotonic seconds.
        self.back_at = float("-inf")
        self._turn: AbstractContextManager[object] = (
            _one_writer if link.has_one_writer(scope) else nullcontext()
        )

    def call(self, verb: Callable[[], R]) -> R:
        """The answer of ``verb``, whatever that takes."""
        with self._turn:
            return self._persist(verb)

    def _persist(self, verb: Callable[[], R]) -> R:
        conflict_pause, outage_pause = 0.0003, 0.1
        began = time.monotonic()
        while True:
            try:
                self._prepare()
                answer = verb()
                if self.is_away:
                    self.is_away, self.back_at = False, time.monotonic()
                return answer
            except DjangoDatabaseError as error:
                trouble = link.trouble(self._scope, error)
                if trouble is None:
                    raise
                if self._must_give_up():
                    raise GaveUp from error
                if trouble == "conflict":
                    if self._is_out_of_patience(began):
                        raise Blocked(gist(error)) from error
                    time.sleep(conflict_pause * (0.5 + random.random()))  # noqa: S311, TID251
                    conflict_pause = min(conflict_pause * 1.5, _LONGEST_CONFLICT_PAUSE)
                    continue
                logger.warning(
                    "database %r is away (%s); next try in %.1f s",
                    self._scope.using,
                    gist(error),
                    outage_pause,
                )
                self.outages += 1
                self.is_away = True
                self.close()
                self._pause(outage_pause)
                outage_pause = min(outage_pause * 2, _LONGEST_OUTAGE_PAUSE)
                began = time.monotonic()

    def _is_out_of_patience(self, began: float) -> bool:
        return self._patience is not None and time.monotonic() - began >= self._patience

    def _prepare(self) -> None:
        if not self._is_own:
            return
        connection = connections[self._scope.using]
        reset_queries()
        if connection.connection is not None:
            is_ours = getattr(connection, _SET_UP, None) is connection.connection
            if is_ours or connection.in_atomic_block:
                return
            connection.close()  # opened by somebody else, such as a system check
        if connection.connection is None:
            link.limit_silence(self._scope, self._silence)
            connection.ensure_connection()
        link.set_up(self._scope, self._silence)
        if self._patience is not None:
            link.limit_lock_waits(self._scope, self._patience)
        setattr(connection, _SET_UP, connection.connection)

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._must_give_up():
            time.sleep(0.05)  # noqa: TID251

    def close(self) -> None:
        """Close this thread's connection."""
        connections[self._scope.using].close()


#: A connection checked less than this many seconds ago in the same thread is not checked again.
_FRESH_SECONDS = 1.0


class _Thread(threading.local):
    """What is known of the connections of a thread."""

    checked_at = float("-inf")
    #: Those that were there when the thread was looked through last.
    known: Sequence[BaseDatabaseWrapper] = ()
    #: Whether others may have come since.
    has_news = True

    @property
    def has_none(self) -> bool:
        """Whether nothing is open: most bodies never ask a database, and need no cleaning."""
        return not self.has_news and all(each.connection is None for each in self.known)


_thread = _Thread()


@receiver(connection_created, dispatch_uid="flexiq_django.worker.connections")
def _note_connection(**_kwargs: Any) -> None:
    _thread.has_news = True


def known_aliases() -> list[str]:
    """The databases of the project."""
    return sorted(connections)


def require_reachable(scope: Scope) -> None:
    """Raises ``ConfigurationError`` for a database that is not supported, or lets nobody in."""
    alias = scope.using
    try:
        link.require_supported(scope)
        connections[alias].ensure_connection()
    except NotImplementedError as error:
        raise ConfigurationError(f"database {alias!r}: {error}") from None
    except DjangoDatabaseError as error:
        raise ConfigurationError(f"database {alias!r} cannot be reached: {gist(error)}") from None


def gist(error: BaseException) -> str:
    """The first line of an error's message, or its name."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def close_all() -> None:
    """Close every connection of this thread."""
    connections.close_all()


#: Around the end of a connection: to some drivers it is an error if that is gone already. It is
#: forgotten all the same, and neither the job before nor the next must suffer from it.
_closing = contextlib.suppress(DjangoDatabaseError)


def clean_before_job() -> None:
    """Drop connections that grew too old, or broke, while the thread waited for a job."""
    if _thread.has_none or time.monotonic() - _thread.checked_at <= _FRESH_SECONDS:
        return
    for connection in connections.all(initialized_only=True):
        with _closing:
            connection.close_if_unusable_or_obsolete()
            if connection.connection is not None and not connection.is_usable():
                connection.close()


def clean_after_job(*, is_good: bool = False) -> None:
    """Leave no transaction, no query list and no broken connection to the next job.

    A body that does not end well may have met a connection that broke while it was being opened, of
    which nobody has been told.
    """
    if is_good and _thread.has_none:
        return
    _thread.known = connections.all(initialized_only=True)
    for connection in _thread.known:
        if connection.connection is not None and (
            connection.in_atomic_block or not connection.get_autocommit()
        ):
            _abandon(connection)
        if connection.queries_logged:
            connection.queries_log.clear()
        with _closing:
            connection.close_if_unusable_or_obsolete()
    _thread.has_news = False
    _thread.checked_at = time.monotonic()


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Around a body inside its caller's transactions, as in a test: it must not break them.

    A worker's body has none around it, so what it wrote before it failed stays. Here too, unless
    the database takes no more statements in the transaction: then all that the body wrote is
    undone.
    """
    marks = [
        (connection, mark)
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block and (mark := connection.savepoint()) is not None
    ]
    yield
    for connection, mark in marks:
        try:
            if not connection.needs_rollback:
                connection.savepoint_commit(mark)
                continue
        except DjangoDatabaseError:
            logger.debug("the transaction is broken", exc_info=True)
        connection.needs_rollback = False
        connection.savepoint_rollback(mark)


def _abandon(connection: BaseDatabaseWrapper) -> None:
    """Close a connection that a body left inside a transaction, and forget the transaction."""
    connection.in_atomic_block = False
    connection.closed_in_transaction = False  # or close() does nothing, now and ever after
    connection.savepoint_ids = []
    connection.needs_rollback = False
    connection.run_on_commit = []
    with _closing:
        connection.close()
