"""What a job waits for."""

from __future__ import annotations

from django.db import models
from django.db.models import Case, F, Q, When
from django.utils.translation import gettext_lazy as _

from flexiq_django.models.fields import NameField, SparseIndex


class JobDependency(models.Model):
    """``job`` may start only after ``parent`` has ended.

    No foreign keys: a parent may move to the archive while the edge stays, and the hot path must
    not pay for their checks. ``store`` deletes the edges together with the job.
    """

    id = models.BigAutoField(primary_key=True)
    namespace = NameField(max_length=100)
    job_id = models.UUIDField()
    parent_id = models.UUIDField()
    is_open = models.BooleanField(help_text=_("The parent has not ended yet."))
    open_in = models.GeneratedField(
        expression=Case(When(is_open=True, then=F("namespace"))),
        output_field=NameField(max_length=100),
        db_persist=True,
        null=True,
        help_text=_("The namespace, while the edge is open."),
    )
    allow_failure = models.BooleanField(
        default=False, help_text=_("Run the job even if the parent fails or is cancelled.")
    )

    class Meta:
        db_table = "flexiq_job_dependencies"
        verbose_name = _("job dependency")
        verbose_name_plural = _("job dependencies")
        default_permissions = ()
        indexes = [
            models.Index(name="flexiq_deps_parent", fields=["parent_id", "is_open"]),
            SparseIndex(name="flexiq_deps_open", fields=["open_in", "id"], present="open_in"),
        ]
        constraints = [
            models.UniqueConstraint(name="flexiq_deps_edge", fields=["job_id", "parent_id"]),
            models.CheckConstraint(
                name="flexiq_deps_not_self", condition=~Q(job_id=F("parent_id"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} after {self.parent_id}"
