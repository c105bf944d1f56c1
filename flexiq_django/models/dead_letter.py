"""Dead letters: jobs that used up their attempts, kept for a person."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from flexiq_django.models.fields import NameField, SparseIndex, UtcDateTimeField
from flexiq_django.models.job import ORIGIN_CHOICES


class DeadLetter(models.Model):
    """Everything needed to run an exhausted job again, even after the job itself was purged."""

    id = models.UUIDField(primary_key=True, editable=False)
    namespace = NameField(max_length=100)
    original_job_id = models.UUIDField(_("job"))
    queue = NameField(max_length=100)
    task_name = NameField(_("task"), max_length=200)
    payload = models.TextField(_("arguments"))
    priority = models.IntegerField(default=0)
    error = models.TextField(null=True)
    retry_count = models.PositiveIntegerField()
    max_retries = models.PositiveIntegerField()
    timeout_ms = models.PositiveBigIntegerField(null=True)
    result_ttl_ms = models.PositiveBigIntegerField(null=True)
    metadata = models.TextField(null=True)
    notes = models.TextField(null=True)
    session_id = NameField(max_length=200, null=True)
    user_id = NameField(max_length=200, null=True)
    deployment_id = NameField(max_length=100, null=True)
    trace_id = NameField(max_length=200, null=True)
    origin = models.CharField(
        max_length=12, choices=ORIGIN_CHOICES, default="task", db_default="task"
    )
    schedule = NameField(max_length=200, null=True)
    failed_at = UtcDateTimeField(_("failed"))
    dlq_retry_count = models.PositiveIntegerField(
        default=0, help_text=_("How many times the chain of jobs came back from a dead letter.")
    )
    origin_job_id = models.UUIDField(
        null=True, help_text=_("The first job of that chain; empty for the first itself.")
    )
    auto_retry_at = UtcDateTimeField(null=True)
    purge_at = UtcDateTimeField(null=True)

    class Meta:
        db_table = "flexiq_dead_letters"
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        default_permissions = ("view",)
        permissions = [
            ("retry_deadletter", _("Can retry dead letters")),
            ("replay_deadletter", _("Can replay the jobs of dead letters")),
            ("delete_deadletter", _("Can delete dead letters")),
            ("purge_deadletter", _("Can purge old dead letters with their jobs")),
        ]
        indexes = [
            models.Index(name="flexiq_dead_failed", fields=["namespace", "failed_at", "id"]),
            models.Index(name="flexiq_dead_age", fields=["namespace", "original_job_id"]),
            models.Index(name="flexiq_dead_job", fields=["original_job_id"]),
            SparseIndex(
                name="flexiq_dead_auto_retry",
                fields=["namespace", "auto_retry_at"],
                present="auto_retry_at",
            ),
            SparseIndex(
                name="flexiq_dead_purge", fields=["namespace", "purge_at"], present="purge_at"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_name} {self.original_job_id}"
