"""Look at dead letters, and drop single ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from flexiq_django.models import DeadLetter
from flexiq_django.store.history import DEAD
from flexiq_django.store.listing import LETTER
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

#: What a list shows: nothing wide but the error.
_LISTED = (*LETTER, "auto_retry_at")
_DETAILS = (
    *_LISTED,
    "payload",
    "priority",
    "max_retries",
    "timeout_ms",
    "result_ttl_ms",
    "notes",
    "session_id",
    "user_id",
    "deployment_id",
    "trace_id",
    "origin",
    "schedule",
    "origin_job_id",
)


class Wanted(NamedTuple):
    """Which dead letters: of this queue, of this task, failed before this moment."""

    queue: str | None = None
    task_name: str | None = None
    before: datetime | None = None


def newest(
    scope: Scope, wanted: Wanted, *, limit: int, size: int = 500
) -> Iterator[dict[str, Any]]:
    """Up to ``limit`` dead letters, the latest failure first, read page by page."""
    rows = _rows(scope, wanted).order_by("-failed_at", "-id").values(*_LISTED)
    page: list[dict[str, Any]] = []
    while limit > 0:
        following = rows
        if page:
            at, key = page[-1]["failed_at"], page[-1]["id"]
            following = rows.filter(failed_at__lte=at).exclude(failed_at=at, id__gte=key)
        page = list(following[: min(limit, size)])
        yield from page
        limit -= len(page)
        if len(page) < size:
            return


def oldest_ids(scope: Scope, wanted: Wanted, *, size: int = 100) -> Iterator[list[UUID]]:
    """The ids of all dead letters there are now, the earliest failure first, in lists.

    What is written while the walk goes on is not met: so it ends, also where retried jobs fail
    again at once.
    """
    rows = _rows(scope, wanted).order_by("failed_at", "id").values_list("failed_at", "id")
    end = rows.reverse().first()
    if end is None:
        return
    rows = rows.filter(failed_at__lte=end[0]).exclude(failed_at=end[0], id__gt=end[1])
    page = list(rows[:size])
    while page:
        yield [key for _, key in page]
        at, last = page[-1]
        page = list(rows.filter(failed_at__gte=at).exclude(failed_at=at, id__lte=last)[:size])


def count(scope: Scope, wanted: Wanted) -> int:
    """How many there are."""
    return _rows(scope, wanted).count()


def find(scope: Scope, letter_id: UUID) -> dict[str, Any] | None:
    """All that is known of one, or ``None``."""
    row = _rows(scope, Wanted()).filter(id=letter_id).values(*_DETAILS).first()
    return row and dict(row)


def delete(scope: Scope, letter_id: UUID) -> bool:
    """Delete a dead letter; its job stays as it is. False if it is not there."""
    database = open_database(scope)
    with database.transaction():
        # By its key first, as whoever retries it does: by another index MariaDB would deadlock.
        found = database.lock_rows("namespace", [letter_id], table=DEAD)
        if found != [(scope.namespace,)]:
            return False
        database.delete_rows(DEAD, [letter_id])
    return True


def _rows(scope: Scope, wanted: Wanted) -> QuerySet[DeadLetter]:
    chosen = Q(namespace=scope.namespace)
    if wanted.queue is not None:
        chosen &= Q(queue=wanted.queue)
    if wanted.task_name is not None:
        chosen &= Q(task_name=wanted.task_name)
    if wanted.before is not None:
        chosen &= Q(failed_at__lt=wanted.before)
    return DeadLetter.objects.using(scope.using).filter(chosen)
