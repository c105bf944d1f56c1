"""What the database itself refuses to store of a job: which columns are set in which state."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.models.fields import SparseUniqueConstraint

#: No job can be ready, run or be paused outside the line of its session, and one alone holds it.
CONSTRAINTS = [
    SparseUniqueConstraint(
        name="flexiq_jobs_active_key",
        fields=["namespace", "active_key"],
        present="active_key",
    ),
    SparseUniqueConstraint(
        name="flexiq_jobs_session_slot",
        fields=["namespace", "session_slot"],
        present="session_slot",
    ),
    models.CheckConstraint(
        name="flexiq_jobs_in_line",
        condition=Q(session_line__isnull=True)
        | Q(
            status=JobStatus.PENDING.value,
            ready_lane__isnull=True,
            promote_at__isnull=True,
            session_slot__isnull=True,
        ),
    ),
    models.CheckConstraint(
        name="flexiq_jobs_holds_line",
        condition=Q(session_id__isnull=True, session_slot__isnull=True)
        | Q(session_id__isnull=False, session_slot__isnull=False, completed_at__isnull=True)
        | (
            Q(
                session_id__isnull=False,
                session_slot__isnull=True,
                ready_lane__isnull=True,
                lease_at__isnull=True,
            )
            & ~Q(status=JobStatus.PAUSED.value)
        ),
    ),
    models.CheckConstraint(
        name="flexiq_jobs_status",
        condition=Q(status__in=[status.value for status in JobStatus]),
    ),
    models.CheckConstraint(
        name="flexiq_jobs_waiting",
        condition=Q(status=JobStatus.PENDING.value)
        | Q(ready_lane__isnull=True, promote_at__isnull=True),
    ),
    models.CheckConstraint(
        name="flexiq_jobs_one_wait",
        condition=Q(ready_lane__isnull=True) | Q(promote_at__isnull=True),
    ),
    models.CheckConstraint(
        name="flexiq_jobs_leased",
        condition=Q(status=JobStatus.RUNNING.value, lease_at__isnull=False)
        | (~Q(status=JobStatus.RUNNING.value) & Q(lease_at__isnull=True)),
    ),
    models.CheckConstraint(
        name="flexiq_jobs_terminal",
        condition=Q(
            status__in=sorted(status.value for status in TERMINAL),
            completed_at__isnull=False,
            active_key__isnull=True,
        )
        | (
            ~Q(status__in=sorted(status.value for status in TERMINAL))
            & Q(completed_at__isnull=True)
        ),
    ),
    models.CheckConstraint(
        name="flexiq_jobs_progress",
        condition=Q(progress__isnull=True) | Q(progress__lte=100),
    ),
]
