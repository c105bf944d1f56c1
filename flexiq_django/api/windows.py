"""Which windows hold for a namespace, by what this process is configured with."""

from __future__ import annotations

import logging

from flexiq_django.api.registry import declared_queues
from flexiq_django.conf import get_settings
from flexiq_django.core.retention import RetentionPolicy, keep_longest, resolve_retention
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)


def windows_of(scope: Scope) -> RetentionPolicy:
    """The windows of the queues declared in the scope, else those of the settings.

    Where two queues of one namespace differ, the longer window counts: what is deleted is gone.
    """
    policies = [
        queue.retention_policy
        for queue in declared_queues()
        if queue.place == scope and queue.has_windows
    ]
    if not policies:
        settings = get_settings()
        return resolve_retention((settings.retention, settings.RESULT_TTL))
    chosen = keep_longest(policies)
    if any(policy.windows != chosen.windows for policy in policies):
        logger.warning(
            "queues of namespace %s are declared with different retention; the longest window of"
            " each table counts",
            scope.namespace,
        )
    return chosen
