"""What happened: rows that are only ever appended, and deleted by age or with their job."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from flexiq_django.models.fields import NameField, UtcDateTimeField


class JobError(models.Model):
    """One failed attempt of a job."""

    id = models.UUIDField(primary_key=True, editable=False)
    namespace = NameField(max_length=100)
    job_id = models.UUIDField(_("job"))
    attempt = models.PositiveIntegerField(help_text=_("Counted from 0, as retries are."))
    error = models.TextField()
    worker_id = NameField(max_length=150, null=True)
    failed_at = UtcDateTimeField()

    class Meta:
        db_table = "flexiq_job_errors"
        verbose_name = _("job error")
        verbose_name_plural = _("job errors")
        default_permissions = ("view",)
        indexes = [
            models.Index(name="flexiq_errors_job", fields=["job_id", "id"]),
            models.Index(name="flexiq_errors_failed", fields=["namespace", "failed_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.attempt}"


class TaskLog(models.Model):
    """One line a task logged, or one value it published (level ``result``)."""

    id = models.UUIDField(primary_key=True, editable=False)
    namespace = NameField(max_length=100)
    job_id = models.UUIDField(_("job"))
    task_name = NameField(_("task"), max_length=200)
    level = models.CharField(max_length=10)
    message = models.TextField()
    extra = models.TextField(null=True)
    logged_at = UtcDateTimeField()

    class Meta:
        db_table = "flexiq_task_logs"
        verbose_name = _("task log line")
        verbose_name_plural = _("task log lines")
        default_permissions = ("view",)
        indexes = [
            models.Index(name="flexiq_logs_job", fields=["job_id", "logged_at", "id"]),
            models.Index(name="flexiq_logs_logged", fields=["namespace", "logged_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.level} {self.message[:50]}"


class TaskMetric(models.Model):
    """How long one execution took and whether it succeeded."""

    id = models.BigAutoField(primary_key=True)
    namespace = NameField(max_length=100)
    task_name = NameField(_("task"), max_length=200)
    job_id = models.UUIDField(_("job"))
    duration_ms = models.FloatField()
    succeeded = models.BooleanField()
    recorded_at = UtcDateTimeField()

    class Meta:
        db_table = "flexiq_task_metrics"
        verbose_name = _("task metric")
        verbose_name_plural = _("task metrics")
        default_permissions = ("view",)
        indexes = [
            models.Index(name="flexiq_metrics_recorded", fields=["namespace", "recorded_at"]),
            models.Index(name="flexiq_metrics_job", fields=["job_id"]),
        ]

    def __str__(self) -> str:
        return f"{self.task_name} {self.duration_ms} ms"


class ReplayHistory(models.Model):
    """Who ran which job again, as which new job, and how the new one ended if it ended badly."""

    id = models.UUIDField(primary_key=True, editable=False)
    namespace = NameField(max_length=100)
    original_job_id = models.UUIDField()
    replay_job_id = models.UUIDField()
    replayed_at = UtcDateTimeField()
    original_error = models.TextField(null=True)
    replay_error = models.TextField(null=True)
    actor = models.CharField(
        max_length=200, null=True, help_text=_("Who asked, as text: the account may be gone.")
    )

    class Meta:
        db_table = "flexiq_replay_history"
        verbose_name = _("replay")
        verbose_name_plural = _("replay history")
        default_permissions = ("view",)
        indexes = [
            models.Index(name="flexiq_replays_original", fields=["original_job_id", "id"]),
            models.Index(name="flexiq_replays_replay", fields=["replay_job_id"]),
        ]

    def __str__(self) -> str:
        return f"{self.original_job_id} as {self.replay_job_id}"
