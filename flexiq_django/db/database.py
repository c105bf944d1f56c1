"""Open a database: the handle that every function takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings as django_settings
from django.utils.connection import ConnectionDoesNotExist

from flexiq_django.api import options as check
from flexiq_django.api.queue import Queue
from flexiq_django.api.registry import queues_of
from flexiq_django.api.task import Task
from flexiq_django.conf import get_settings
from flexiq_django.exceptions import ConfigurationError
from flexiq_django.store import contract, schema
from flexiq_django.store.scope import Scope


@dataclass(slots=True)
class Walk:
    """How far the walks are that look for jobs which a dead process has left waiting."""

    edge: int = 0
    line: str = ""
    #: The monotonic clock of the machine at which they begin anew.
    rests_until: float = -math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDatabase:
    """A namespace of jobs in one database, checked when it was opened. Any thread may use it.

    ``deployment_id``: the deployment whose jobs may be claimed, beside those of none. ``queue`` is
    the ``Queue`` of the same place, for everything that this module leaves to it; ``walk`` is its
    own affair.
    """

    using: str
    namespace: str
    deployment_id: str | None
    queue: Queue = field(repr=False, compare=False)
    walk: Walk = field(default_factory=Walk, repr=False, compare=False)

    @property
    def scope(self) -> Scope:
        """Where the jobs are, as the store says it."""
        return Scope(using=self.using, namespace=self.namespace)


def open_database(
    using: str | None = None,
    namespace: str | None = None,
    *,
    deployment_id: str | None = None,
) -> JobDatabase:
    """Check that the database can be worked with; the handle that all functions take first.

    ``using`` is an alias of ``DATABASES``; it, ``namespace`` and ``deployment_id`` come from the
    ``FLEXIQ`` setting where they are not given. Nothing is created.

    Raises ``ConfigurationError`` for an unknown alias, a database that is not supported and one
    that lacks migrations, ``ContractError`` if this build may not work with it, and
    ``InvalidOptionError``. What the database itself raises comes through as it is.
    """
    settings = get_settings()
    for option, value in (("namespace", namespace), ("deployment_id", deployment_id)):
        if value is not None:
            check.check_name(option, value, longest=100)
    alias = settings.DATABASE if using is None else using
    queue = Queue(settings.NAMESPACE if namespace is None else namespace, using=alias)
    try:
        missing = schema.pending(queue.place)
    except ConnectionDoesNotExist:
        raise ConfigurationError(
            f"there is no database {alias!r}; DATABASES has {', '.join(django_settings.DATABASES)}"
        ) from None
    except NotImplementedError as error:
        raise ConfigurationError(f"database {alias!r}: {error}") from None
    if missing:
        raise ConfigurationError(
            f"database {alias!r} lacks the migrations {', '.join(missing)} of flexiq_django: run"
            f" manage.py migrate flexiq_django --database {alias}"
        )
    contract.require(queue.place)
    return JobDatabase(
        using=alias,
        namespace=queue.place.namespace,
        deployment_id=settings.DEPLOYMENT_ID if deployment_id is None else deployment_id,
        queue=queue,
    )


def task_of(db: JobDatabase, name: str) -> Task[Any, Any] | None:
    """The task of this name, if the code of this process declares it for the namespace."""
    for queue in queues_of(db.scope):
        if name in queue.tasks:
            return queue.tasks[name]
    return None
