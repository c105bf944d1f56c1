"""Jobs, and the archive they end in.

How the hot columns work (measurements in ``docs/architecture.md``):

========================  ==========================================================================
column                    set exactly while
========================  ==========================================================================
``ready_lane``            the job can be claimed now; names the lane it waits in (``core/lanes.py``)
``promote_at``            the job is pending but due later; the time it becomes ready
``lease_at``              the job is running; the time its worker loses it unless renewed
``completed_at``          the job has ended
``active_key``            the job has not ended and carries a unique key (its hash)
``session_slot``          the job holds the line of its session: ready, due later for a retry,
                          running or paused; names the session
``session_line``          the job waits in the line of its session; names the session
``purge_at``              the job has ended and carries a lifetime of its own
``idle_status``           the job is neither ready, nor due later, nor running; its status
``bad_end``               the job has ended other than by completing; its status
========================  ==========================================================================

Every hot index holds only the rows whose column is set, so a claim never reads what it cannot
claim: jobs that wait for a parent are in none of them. ``rank`` is minus ``priority``: MariaDB
before 10.8 ignores a descending index, so everything sorts ascending.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Case, F, Q, When
from django.utils.translation import gettext_lazy as _

from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.models.fields import NameField, SparseIndex, UtcDateTimeField
from flexiq_django.models.job_rules import CONSTRAINTS

STATUS_CHOICES = [
    (JobStatus.PENDING.value, _("pending")),
    (JobStatus.RUNNING.value, _("running")),
    (JobStatus.PAUSED.value, _("paused")),
    (JobStatus.COMPLETE.value, _("complete")),
    (JobStatus.FAILED.value, _("failed")),
    (JobStatus.DEAD.value, _("dead")),
    (JobStatus.CANCELLED.value, _("cancelled")),
]

#: How a job ends other than by completing.
BAD_ENDS = sorted(status.value for status in TERMINAL - {JobStatus.COMPLETE})

ORIGIN_CHOICES = [
    ("task", _("task")),
    ("periodic", _("schedule")),
    ("django_task", _("Django task")),
]


class BaseJob(models.Model):
    """What a job is and how it ended: the columns that the archive keeps."""

    id = models.UUIDField(primary_key=True, editable=False)
    namespace = NameField(max_length=100)
    queue = NameField(max_length=100)
    task_name = NameField(_("task"), max_length=200)
    status = NameField(max_length=10, choices=STATUS_CHOICES)
    priority = models.IntegerField(default=0, help_text=_("Larger runs first."))
    payload = models.TextField(_("arguments"), help_text=_("Encoded call arguments (JSON)."))
    result = models.TextField(null=True, help_text=_("Encoded return value (JSON)."))
    error = models.TextField(null=True, help_text=_("What the last attempt failed with."))
    progress = models.PositiveSmallIntegerField(null=True, help_text=_("0 to 100."))
    created_at = UtcDateTimeField(_("created"))
    scheduled_at = UtcDateTimeField(_("due"))
    started_at = UtcDateTimeField(_("started"), null=True)
    completed_at = UtcDateTimeField(_("ended"), null=True)
    #: Stays while a job is ready: the age of a backlog counts from it.
    updated_at = UtcDateTimeField(_("last change"))
    attempt = models.PositiveIntegerField(
        default=0, help_text=_("How many times the job has been claimed.")
    )
    retry_count = models.PositiveIntegerField(
        default=0, help_text=_("How many attempts of the budget are used.")
    )
    max_retries = models.PositiveIntegerField(
        help_text=_("Attempts allowed after the first failed one.")
    )
    timeout_ms = models.PositiveBigIntegerField(
        null=True, help_text=_("Longest time one attempt may take, in milliseconds.")
    )
    result_ttl_ms = models.PositiveBigIntegerField(
        null=True, help_text=_("The job is deleted this long after its end, in milliseconds.")
    )
    purge_at = UtcDateTimeField(null=True)
    unique_key = models.CharField(max_length=255, null=True)
    metadata = models.TextField(null=True)
    notes = models.TextField(null=True)
    worker_id = NameField(
        _("worker"), max_length=150, null=True, help_text=_("The last worker that claimed the job.")
    )
    cancel_requested_at = UtcDateTimeField(_("cancel requested"), null=True)
    pause_reason = models.TextField(null=True)
    origin = models.CharField(max_length=12, choices=ORIGIN_CHOICES, default="task")
    schedule = NameField(max_length=200, null=True, help_text=_("The schedule that fired the job."))
    session_id = NameField(max_length=200, null=True)
    user_id = NameField(max_length=200, null=True)
    deployment_id = NameField(max_length=100, null=True)
    trace_id = NameField(max_length=200, null=True)
    attempt_id = NameField(max_length=200, null=True)
    trial_id = NameField(max_length=200, null=True)
    dlq_retry_count = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text=_("How many times the chain of jobs came back from a dead letter."),
    )
    origin_job_id = models.UUIDField(
        null=True, help_text=_("The first job of that chain; empty for the first itself.")
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.task_name} {self.id}"


class Job(BaseJob):
    """One stored call of a task, until it is archived."""

    ready_lane = NameField(max_length=402, null=True)
    rank = models.GeneratedField(
        expression=F("priority") * -1,
        output_field=models.IntegerField(),
        db_persist=True,
    )
    idle_status = models.GeneratedField(
        expression=Case(
            When(
                ready_lane__isnull=True,
                promote_at__isnull=True,
                lease_at__isnull=True,
                then=F("status"),
            )
        ),
        output_field=NameField(max_length=10),
        db_persist=True,
        null=True,
    )
    bad_end = models.GeneratedField(
        expression=Case(When(status__in=BAD_ENDS, then=F("status"))),
        output_field=NameField(max_length=10),
        db_persist=True,
        null=True,
    )
    promote_at = UtcDateTimeField(null=True)
    lease_at = UtcDateTimeField(null=True)
    token = models.BigIntegerField(
        null=True,
        help_text=_("Minted by each claim; whatever an attempt writes must name it."),
    )
    expires_at = UtcDateTimeField(null=True, help_text=_("Too late to start; empty once ended."))
    active_key = models.CharField(max_length=64, null=True)
    session_slot = NameField(max_length=200, null=True)
    session_line = NameField(max_length=200, null=True)

    class Meta:
        db_table = "flexiq_jobs"
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ("view",)
        permissions = [
            ("view_payload", _("Can view arguments and results of jobs")),
            ("operate_queue", _("Can operate queues and jobs")),
            ("cancel_job", _("Can cancel pending and paused jobs")),
            ("continue_job", _("Can continue paused jobs")),
            ("stop_job", _("Can ask running jobs to stop")),
            ("requeue_job", _("Can take running jobs from their workers")),
            ("replay_job", _("Can replay jobs")),
        ]
        indexes = [
            SparseIndex(
                name="flexiq_jobs_claim",
                fields=["namespace", "ready_lane", "rank", "scheduled_at", "id"],
                present="ready_lane",
            ),
            SparseIndex(
                name="flexiq_jobs_promote",
                fields=["namespace", "promote_at", "queue"],
                present="promote_at",
            ),
            SparseIndex(
                name="flexiq_jobs_lease",
                fields=["lease_at", "namespace", "queue", "task_name"],
                present="lease_at",
            ),
            SparseIndex(
                name="flexiq_jobs_line",
                fields=["namespace", "session_line", "scheduled_at", "id"],
                present="session_line",
            ),
            SparseIndex(
                name="flexiq_jobs_ended",
                fields=["namespace", "completed_at"],
                present="completed_at",
            ),
            SparseIndex(
                name="flexiq_jobs_idle",
                fields=["namespace", "idle_status", "queue"],
                present="idle_status",
            ),
            SparseIndex(
                name="flexiq_jobs_bad_end", fields=["namespace", "bad_end", "id"], present="bad_end"
            ),
            SparseIndex(
                name="flexiq_jobs_expires", fields=["namespace", "expires_at"], present="expires_at"
            ),
            SparseIndex(
                name="flexiq_jobs_purge", fields=["namespace", "purge_at"], present="purge_at"
            ),
        ]
        constraints = CONSTRAINTS


class ArchivedJob(BaseJob):
    """A job that has ended and been moved out of the hot table."""

    archived_at = UtcDateTimeField()

    class Meta:
        db_table = "flexiq_archived_jobs"
        verbose_name = _("archived job")
        verbose_name_plural = _("archived jobs")
        default_permissions = ("view",)
        permissions = [("replay_archivedjob", _("Can replay archived jobs"))]
        indexes = [
            models.Index(name="flexiq_archived_ended", fields=["namespace", "completed_at", "id"]),
            # With the NULLs: jobs without a lifetime of their own are those that a window bounds.
            models.Index(
                name="flexiq_archived_purge", fields=["namespace", "purge_at", "completed_at"]
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="flexiq_archived_status",
                condition=Q(
                    status__in=sorted(status.value for status in TERMINAL),
                    completed_at__isnull=False,
                ),
            ),
        ]
