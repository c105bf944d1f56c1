"""One connection in one scope: run SQL on its clock, begin a transaction, tell troubles apart."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from flexiq_django.models import Job
from flexiq_django.store.scope import Scope

Trouble = Literal["conflict", "outage"]
Sign = Literal["notification", "data version"]

JOBS = Job._meta.db_table


class Link(ABC):
    """SQL uses ``%(name)s`` parameters and ``{now}`` for the clock."""

    #: The database's own clock, in UTC.
    clock: ClassVar[str]
    #: How a moment parameter called ``now`` is written.
    moment_literal: ClassVar[str] = "%(now)s"

    #: How the database tells of new work, if it does.
    sign: ClassVar[Sign | None] = None

    def __init__(self, connection: BaseDatabaseWrapper, scope: Scope) -> None:
        self.connection = connection
        self.scope = scope
        self.now = self.clock if scope.now is None else self.moment_literal
        self._is_inside = False

    # --- running SQL ------------------------------------------------------------------------------

    def fetch(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows a statement returns."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql.replace("{now}", self.now), self.bind(params))
            return list(cursor.fetchall())

    def change(
        self, sql: str, params: Mapping[str, Any] | None = None, *, may_wait: bool = True
    ) -> int:
        """Run a statement that returns nothing; the number of rows it matched.

        ``may_wait``: whether a caller's transaction may have locked such rows.
        """
        with self.connection.cursor() as cursor:
            cursor.execute(sql.replace("{now}", self.now), self.bind(params))
            return int(cursor.rowcount)

    def bind(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Parameters every statement may use, and the caller's own."""
        bound = {"namespace": self.scope.namespace, **(params or {})}
        if self.scope.now is not None:
            bound["now"] = self.moment(self.scope.now)
        return bound

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """One write transaction, or a savepoint in the caller's; within itself nothing more."""
        if self._is_inside:
            yield
            return
        self._is_inside = True
        try:
            with self._begin():
                yield
        finally:
            self._is_inside = False

    def _begin(self) -> contextlib.AbstractContextManager[Any]:
        return transaction.atomic(using=self.scope.using)

    @property
    def is_in_callers_transaction(self) -> bool:
        """Whether our transaction is part of another, the end of which may be far away."""
        return bool(self.connection.savepoint_ids)

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """Part of a transaction that may fail alone."""
        with transaction.atomic(using=self.scope.using):
            yield

    def has_tables(self) -> bool:
        """Whether our tables are there."""
        return self.has_table(JOBS)

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return name in self.connection.introspection.table_names()

    @abstractmethod
    def moment(self, value: datetime) -> Any:
        """``value`` as a parameter."""

    # --- waking and trouble -----------------------------------------------------------------------

    def notify(self) -> None:  # noqa: B027 - most databases have nothing to do
        """Tell listening workers of the namespace that a job is there. Nothing where none can."""

    def with_notify(self, insert: str) -> str:
        """An INSERT that also tells listening workers, where any can listen."""
        return insert

    def wait_for_notify(self, wake_fd: int, seconds: float) -> bool:
        """See ``store.link``; only where ``sign`` is ``"notification"``."""
        raise NotImplementedError

    def data_version(self) -> int:
        """See ``store.link``; only where ``sign`` is ``"data version"``."""
        raise NotImplementedError

    def limit_silence(self, seconds: float) -> None:  # noqa: B027
        """Before it connects: give the server up when it has been silent for so long.

        What the project has set for the connection stands.
        """

    def set_options(self, ours: Mapping[str, Any]) -> None:
        """Options for the next connection of this thread; what the project has set stands."""
        settings = self.connection.settings_dict
        options = {**ours, **settings.get("OPTIONS", {})}
        self.connection.settings_dict = {**settings, "OPTIONS": options}

    def prepare_worker(self, silence: float) -> None:  # noqa: B027
        """Set up a new connection that belongs to the worker itself.

        ``silence`` is that of ``limit_silence``; a server that can should give us up after as much.
        """

    def limit_lock_waits(self, seconds: float) -> None:  # noqa: B027
        """Have a worker's own connection wait no longer for a lock: that is a conflict then.

        Nothing where a worker's connection does not wait at all.
        """

    @classmethod
    @abstractmethod
    def trouble(cls, error: BaseException) -> Trouble | None:
        """Why a statement failed through no fault of its own.

        ``"conflict"``: another transaction was in the way, try again at once. ``"outage"``: the
        server or the disk is away, reconnect and try again later. ``None``: a real error.
        """

    @classmethod
    def clash(cls, error: BaseException) -> bool:
        """Whether the error means that a unique value is taken."""
        from django.db import IntegrityError

        return isinstance(error, IntegrityError)
