"""What happens once the caller's transaction has committed: wake workers, tell receivers."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from uuid import UUID

from django.db import Error as DjangoDatabaseError
from django.db import transaction

from flexiq_django import signals
from flexiq_django.conf import get_settings
from flexiq_django.core.records import NewJob
from flexiq_django.store import dependencies, link
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Shortest time between two notifications of one process, in seconds. NOTIFY serialises commits on
#: the server; a worker that has just been woken looks again by itself within this time.
NOTIFY_SECONDS = 0.01

_last_notify: dict[tuple[str, str], float] = {}


def may_notify_with_insert(scope: Scope) -> bool:
    """Whether the insert that follows should notify: there is no transaction to wait for."""
    return link.can_notify_with_insert(scope) and _is_notify_due(scope)


def announce(
    scope: Scope, ids: Sequence[UUID], jobs: Sequence[NewJob], *, is_notified: bool = False
) -> None:
    """After the commit: notify, resolve parents that ended meanwhile, send ``job_enqueued``.

    Nothing happens when the transaction is rolled back.
    """
    stored = {job.id for job in jobs} & set(ids)
    parents = {parent for job in jobs if job.id in stored for parent in job.parents}
    if stored:
        transaction.on_commit(
            partial(_committed, scope, sorted(stored), sorted(parents), is_notified),
            using=scope.using,
            robust=True,
        )


def _committed(
    scope: Scope, stored: Sequence[UUID], parents: Sequence[UUID], is_notified: bool
) -> None:
    if parents:
        dependencies.recheck(scope, parents)
    if not is_notified:
        _notify(scope)
    signals.send(
        signals.job_enqueued,
        job_ids=[str(key) for key in stored],
        namespace=scope.namespace,
        using=scope.using,
    )


def wake_workers(scope: Scope) -> None:
    """After the commit, let listening workers look for work: a queue has opened."""
    transaction.on_commit(partial(_notify, scope, at_once=True), using=scope.using, robust=True)


def _is_notify_due(scope: Scope) -> bool:
    if not get_settings().LISTEN:
        return False
    key, now = (scope.using, scope.namespace), time.monotonic()
    if now - _last_notify.get(key, float("-inf")) < NOTIFY_SECONDS:
        return False
    _last_notify[key] = now
    return True


def _notify(scope: Scope, *, at_once: bool = False) -> None:
    """Wake listening workers. Losing one costs a poll interval, never a job."""
    if link.sign_of_work(scope) != "notification" or not get_settings().LISTEN:
        return
    if not at_once and not _is_notify_due(scope):
        return
    try:
        link.notify(scope)
    except DjangoDatabaseError:
        logger.warning("could not notify workers; they will find the job by polling", exc_info=True)
