"""What steers the fleet: queue and task state, settings, schedules, workers, leases."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from flexiq_django.core.misfire import MisfirePolicy
from flexiq_django.models.fields import NameField, UtcDateTimeField


class BaseGate(models.Model):
    """Limits of one queue or one task, in force for every worker at once."""

    id = models.BigAutoField(primary_key=True)
    namespace = NameField(max_length=100)
    name = NameField(max_length=200)
    rate_limit = models.CharField(max_length=50, null=True, help_text=_("Such as 100/m."))
    rate_full_at = UtcDateTimeField(
        null=True, help_text=_("When the token bucket will be full again.")
    )
    max_concurrent = models.PositiveIntegerField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.name)


class QueueState(BaseGate):
    """A queue that is paused or limited. A queue without a row is open and unlimited."""

    paused_at = UtcDateTimeField(null=True)

    class Meta:
        db_table = "flexiq_queue_state"
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("view",)
        permissions = [
            ("pause_queue", _("Can pause queues")),
            ("resume_queue", _("Can resume queues")),
            ("limit_queue", _("Can limit queues")),
            ("purge_queue", _("Can cancel all pending jobs of queues")),
        ]
        constraints = [
            models.UniqueConstraint(name="flexiq_queue_state_name", fields=["namespace", "name"])
        ]


class TaskState(BaseGate):
    """A task that is revoked or limited. A task without a row is neither."""

    revoked_at = UtcDateTimeField(null=True)
    retry_budget = models.CharField(
        max_length=50,
        null=True,
        help_text=_("Retries of all its jobs together, such as 100/m."),
    )
    retry_full_at = UtcDateTimeField(
        null=True, help_text=_("When the bucket of retries will be full again.")
    )

    class Meta:
        db_table = "flexiq_task_state"
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        default_permissions = ("view",)
        permissions = [
            ("revoke_task", _("Can revoke tasks")),
            ("unrevoke_task", _("Can allow revoked tasks again")),
        ]
        constraints = [
            models.UniqueConstraint(name="flexiq_task_state_name", fields=["namespace", "name"])
        ]


class Setting(models.Model):
    """One entry of the deployment-wide key and value store."""

    key = NameField(max_length=200, primary_key=True)
    value = models.TextField(blank=True)
    updated_at = UtcDateTimeField()

    class Meta:
        db_table = "flexiq_settings"
        verbose_name = _("setting")
        verbose_name_plural = _("settings")
        default_permissions = ("view", "add", "change", "delete")

    def __str__(self) -> str:
        return str(self.key)


class PeriodicTask(models.Model):
    """A schedule: which task to enqueue when."""

    MISFIRE_CHOICES = [
        (MisfirePolicy.SKIP.value, _("skip missed runs")),
        (MisfirePolicy.ONCE.value, _("run once for all missed runs")),
        (MisfirePolicy.ALL.value, _("run each missed run within the window")),
    ]

    id = models.BigAutoField(primary_key=True)
    namespace = NameField(max_length=100)
    name = NameField(max_length=200)
    task_name = NameField(_("task"), max_length=200)
    cron = models.CharField(
        max_length=200, help_text=_("Five fields, or six with the seconds first.")
    )
    timezone = models.CharField(_("time zone"), max_length=100)
    payload = models.TextField(_("arguments"))
    queue = NameField(max_length=100, null=True)
    misfire_policy = models.CharField(max_length=4, choices=MISFIRE_CHOICES)
    misfire_window_ms = models.PositiveBigIntegerField()
    enabled = models.BooleanField(default=True)
    next_run_at = UtcDateTimeField(_("next run"))
    last_run_at = UtcDateTimeField(_("last run"), null=True)
    last_job_id = models.UUIDField(null=True)
    missed_count = models.PositiveBigIntegerField(
        default=0, help_text=_("Runs that were due but never fired.")
    )
    declared_at = UtcDateTimeField(
        null=True,
        help_text=_("When code last declared it; empty if none ever did."),
    )

    class Meta:
        db_table = "flexiq_periodic_tasks"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        default_permissions = ("view",)
        permissions = [
            ("pause_schedule", _("Can pause schedules")),
            ("resume_schedule", _("Can resume schedules")),
            ("delete_schedule", _("Can delete schedules")),
        ]
        constraints = [
            models.UniqueConstraint(name="flexiq_periodic_name", fields=["namespace", "name"])
        ]

    def __str__(self) -> str:
        return str(self.name)


class Worker(models.Model):
    """One boot of one worker process. A worker that starts again is a new row."""

    id = NameField(max_length=150, primary_key=True)
    namespace = NameField(max_length=100)
    hostname = models.CharField(max_length=200)
    pid = models.PositiveBigIntegerField()
    queues = models.TextField(help_text=_("Names of the queues served (JSON), or null for all."))
    executor = models.CharField(max_length=20)
    concurrency = models.PositiveIntegerField()
    deployment_id = NameField(max_length=100, null=True)
    version = models.CharField(max_length=50)
    config = models.TextField(help_text=_("Fleet-wide values this worker runs with (JSON)."))
    state = models.CharField(max_length=10, help_text=_("running or draining."))
    clock_skew_ms = models.BigIntegerField(
        default=0, help_text=_("How far the worker's clock is ahead of the database's.")
    )
    started_at = UtcDateTimeField(_("started"))
    heartbeat_at = UtcDateTimeField(_("last heartbeat"))
    turned_at = UtcDateTimeField(
        _("last turn of the claim loop"),
        help_text=_("Long before the last heartbeat: the loop hangs."),
    )
    lease_at = UtcDateTimeField(help_text=_("Without a heartbeat until then it counts as gone."))

    class Meta:
        db_table = "flexiq_workers"
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ("view",)
        indexes = [models.Index(name="flexiq_workers_alive", fields=["namespace", "lease_at"])]

    def __str__(self) -> str:
        return str(self.id)


class Lease(models.Model):
    """A role that one process holds at a time, such as leader of a namespace."""

    name = NameField(max_length=150, primary_key=True)
    holder = NameField(max_length=150)
    expires_at = UtcDateTimeField()

    class Meta:
        db_table = "flexiq_leases"
        verbose_name = _("lease")
        verbose_name_plural = _("leases")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.name)
