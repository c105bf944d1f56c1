"""Jobs in the lines of sessions, and who holds these."""

from typing import Any
from uuid import UUID

from flexiq_django.models import Job
from tests.store.acting import enqueue


def line_up(count: int, session: str = "s", **fields: Any) -> list[UUID]:
    """Store so many jobs of a session."""
    return [job.id for job in enqueue(count, session_id=session, **fields)]


def holders() -> dict[str, UUID]:
    return dict(Job.objects.filter(session_slot__isnull=False).values_list("session_slot", "id"))


def in_line() -> list[UUID]:
    return list(
        Job.objects.filter(session_line__isnull=False)
        .order_by("scheduled_at", "id")
        .values_list("id", flat=True)
    )
