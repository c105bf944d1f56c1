"""The retention methods of ``Queue``, and what commands share with them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.db import Error as DjangoDatabaseError

from flexiq_django.api.result import to_ms
from flexiq_django.api.twins import async_twin
from flexiq_django.conf import get_settings
from flexiq_django.core.retention import (
    EffectiveRetention,
    Retention,
    RetentionPolicy,
    RetentionPreview,
    policy_of,
    resolve_retention,
)
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.store import inspect, link
from flexiq_django.store import retention as sweeping

if TYPE_CHECKING:
    from flexiq_django.store.scope import Scope

#: How often a batch is tried that other transactions are in the way of.
_TRIES = 20


class Housekeeping:
    """How long history is kept. A worker sweeps; these methods only tell."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

        _retention: Retention | None
        _result_ttl: float | None

    @property
    def has_windows(self) -> bool:
        """Whether the queue itself says how long history is kept."""
        return self._retention is not None or self._result_ttl is not None

    @property
    def retention_policy(self) -> RetentionPolicy:
        """How long history is kept: as the queue says, else as the settings do."""
        settings = get_settings()
        return resolve_retention(
            (self._retention, self._result_ttl), (settings.retention, settings.RESULT_TTL)
        )

    def effective_retention(self) -> EffectiveRetention | None:
        """The windows that a worker applies to this namespace, as it said when it last swept.

        ``None``: no worker has swept yet. That is not the same as no retention, which is a report
        with ``enabled=False``. ``windows`` are milliseconds by table (``None`` keeps a table for
        ever), ``reported_at`` is Unix milliseconds; ``defaulted`` says that nobody configured them.
        """
        return sweeping.reported(self.scope)

    def dry_run_retention(self, retention: Retention | None = None) -> RetentionPreview:
        """How many rows a sweep would delete now, by table. Deletes nothing.

        Without an argument for the windows of this queue (its own, else those of the settings),
        which need not be those of the workers; with one for these. It counts rows past a lifetime
        of their own (``result_ttl``) as well, since a sweep deletes them whatever the windows are.
        ``counts`` and ``windows`` (milliseconds) are by table, ``reference_time`` is the database's
        now in Unix milliseconds. Counting reads every row that would go. Raises
        ``InvalidOptionError`` for anything but a ``Retention``.
        """
        if retention is None:
            return preview(self.scope, self.retention_policy)
        return preview(self.scope, policy_of(check_retention(retention)))

    aeffective_retention = async_twin(effective_retention)
    adry_run_retention = async_twin(dry_run_retention)


def check_retention(value: object) -> Retention:
    """Raises ``InvalidOptionError`` for anything but windows."""
    if not isinstance(value, Retention):
        raise InvalidOptionError(
            f"retention is {value!r}; it must be a Retention, as in Retention(task_logs=86_400)"
        )
    return value


def preview(scope: Scope, policy: RetentionPolicy) -> RetentionPreview:
    """What a sweep under the policy would delete now."""
    now, counts = sweeping.count(scope, policy.windows)
    return RetentionPreview(
        enabled=policy.enabled,
        defaulted=policy.defaulted,
        windows=policy.windows,
        namespace=scope.namespace,
        reference_time=to_ms(now) or 0,
        counts=counts,
        total=sum(counts.values()),
    )


def sweep(scope: Scope, policy: RetentionPolicy) -> Iterator[tuple[str, int]]:
    """Sweep now, in small batches with rests between them: the table and the rows of each.

    What grows old meanwhile stays.
    """
    rest_factor = link.rest_factor(scope)
    as_of = inspect.read_clock(scope)
    for each in sweeping.sweeps(policy.windows):
        after: sweeping.Place = None
        while True:
            began = time.monotonic()
            swept = _persist(scope, each, after, as_of)
            if swept.removed:
                yield each.name, swept.removed
            after = swept.after
            if after is None:
                break
            time.sleep(rest_factor * (time.monotonic() - began))  # noqa: TID251 - no stop to hear


def _persist(
    scope: Scope, each: sweeping.Sweep, after: sweeping.Place, as_of: sweeping.Moment
) -> sweeping.Swept:
    for tried in range(_TRIES):
        try:
            return sweeping.sweep_batch(scope, each, after=after, as_of=as_of)
        except DjangoDatabaseError as error:
            if tried == _TRIES - 1 or link.trouble(scope, error) != "conflict":
                raise
            time.sleep(0.01 * tried)  # noqa: TID251
    raise AssertionError("unreachable")
