"""Log lines of tasks, and the values they published."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q

from flexiq_django.models import TaskLog
from flexiq_django.store.scope import Scope

LINE = ("id", "job_id", "task_name", "level", "message", "extra", "logged_at")

#: The level under which published values are stored.
PUBLISHED = "result"


def of_job(scope: Scope, job_id: UUID) -> list[dict[str, Any]]:
    """The lines of a job, oldest first."""
    rows = TaskLog.objects.using(scope.using).filter(namespace=scope.namespace, job_id=job_id)
    return [dict(row) for row in rows.order_by("logged_at", "id").values(*LINE)]


def latest(
    scope: Scope, *, since: datetime, task_name: str | None, level: str | None, limit: int
) -> list[dict[str, Any]]:
    """Lines logged from ``since`` on, newest first."""
    rows = TaskLog.objects.using(scope.using).filter(
        namespace=scope.namespace, logged_at__gte=since
    )
    wanted = {"task_name": task_name, "level": level}
    rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
    return [dict(row) for row in rows.order_by("-logged_at", "-id").values(*LINE)[:limit]]


class Published(NamedTuple):
    """A published value, as stored."""

    logged_at: datetime
    id: UUID
    extra: str | None


def published(
    scope: Scope, job_id: UUID, *, after: Published | None, since: datetime | None, limit: int
) -> Sequence[Published]:
    """Up to ``limit`` values a job published, oldest first: after one, or from a moment on."""
    rows = TaskLog.objects.using(scope.using).filter(
        namespace=scope.namespace, job_id=job_id, level=PUBLISHED
    )
    if after is not None:
        # Both bounds are named, so that the index begins at the first.
        rows = rows.filter(
            Q(logged_at__gt=after.logged_at) | Q(id__gt=after.id), logged_at__gte=after.logged_at
        )
    elif since is not None:
        rows = rows.filter(logged_at__gte=since)
    ordered = rows.order_by("logged_at", "id").values_list(*Published._fields)[:limit]
    return [Published._make(row) for row in ordered]
