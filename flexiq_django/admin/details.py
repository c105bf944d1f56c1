"""What belongs to a job: failed attempts, log lines, the jobs before and after it; all bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from flexiq_django.admin import texts
from flexiq_django.models import ArchivedJob, DeadLetter, Job, JobDependency, JobError, TaskLog

#: Rows shown of each kind.
ATTEMPTS_SHOWN = 20
LOG_LINES_SHOWN = 100
RELATIVES_SHOWN = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A table on the page of one row."""

    title: Any
    columns: tuple[Any, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    note: Any = ""


def failed_attempts(using: str, job_id: UUID) -> Section:
    """The last failed attempts, the latest first."""
    found = list(
        JobError.objects.using(using).filter(job_id=job_id).order_by("-id")[: ATTEMPTS_SHOWN + 1]
    )
    return Section(
        title=_("Failed attempts"),
        columns=(_("attempt"), _("failed"), _("worker"), _("error")),
        rows=[
            (
                # Stored as retries are counted, from 0; people count attempts from 1.
                each.attempt + 1,
                texts.moment(each.failed_at),
                texts.printable(each.worker_id or "-"),
                texts.error(each.error),
            )
            for each in found[:ATTEMPTS_SHOWN]
        ],
        note=_("Earlier ones are not shown.") if len(found) > ATTEMPTS_SHOWN else "",
    )


def log_lines(using: str, job_id: UUID) -> Section:
    """The last lines that the task logged, in the order of time."""
    found = list(
        TaskLog.objects.using(using).filter(job_id=job_id).order_by("-id")[: LOG_LINES_SHOWN + 1]
    )
    return Section(
        title=_("Log"),
        columns=(_("time"), _("level"), _("message"), _("extra")),
        rows=[
            (
                texts.moment(each.logged_at),
                texts.printable(each.level),
                texts.block(each.message) if each.message else "",
                texts.json_text(each.extra) or "",
            )
            for each in reversed(found[:LOG_LINES_SHOWN])
        ],
        note=_("Earlier lines are not shown.") if len(found) > LOG_LINES_SHOWN else "",
    )


def relatives(using: str, job_id: UUID, *, upwards: bool) -> Section:
    """The jobs that this one waits for (``upwards``), or that wait for this one."""
    ours, theirs = ("job_id", "parent_id") if upwards else ("parent_id", "job_id")
    # No order: the rows come as they lie in the index, so a job with a million dependents costs
    # no sort.
    edges = list(
        JobDependency.objects.using(using)
        .filter(**{ours: job_id})
        .order_by()
        .values_list(theirs, "is_open")[: RELATIVES_SHOWN + 1]
    )
    shown = sorted(edges[:RELATIVES_SHOWN])
    known = find_jobs(using, [key for key, _is_open in shown])
    return Section(
        title=_("Depends on") if upwards else _("Jobs that depend on it"),
        columns=(_("job"), _("task"), _("status"), _("waiting")),
        rows=[
            (
                job_link(key, known.get(key)),
                texts.printable(known[key].task_name) if key in known else _("deleted"),
                known[key].get_status_display() if key in known else "",
                _("yes") if is_open else _("no"),
            )
            for key, is_open in shown
        ],
        note=_("There are more.") if len(edges) > RELATIVES_SHOWN else "",
    )


def dead_letters(using: str, job_id: UUID) -> Section:
    """The dead letters that the job left."""
    found = DeadLetter.objects.using(using).filter(original_job_id=job_id)
    return Section(
        title=_("Dead letters"),
        columns=(_("dead letter"), _("failed")),
        rows=[
            (_link("deadletter", each.pk), texts.moment(each.failed_at))
            for each in found.order_by().only("id", "failed_at")[:ATTEMPTS_SHOWN]
        ],
    )


def find_jobs(using: str, keys: list[UUID]) -> dict[UUID, Job | ArchivedJob]:
    """The jobs with these ids that still exist, live or archived."""
    found: dict[UUID, Job | ArchivedJob] = {}
    for model in (Job, ArchivedJob):
        missing = [key for key in keys if key not in found]
        if missing:
            rows = model.objects.using(using).filter(pk__in=missing)
            found.update((row.pk, row) for row in rows.only("id", "task_name", "status"))
    return found


def job_link(key: UUID, job: Job | ArchivedJob | None) -> Any:
    """The id of a job, as a link where the job still exists."""
    return str(key) if job is None else _link(str(job._meta.model_name), key)


def link_to_job(key: UUID) -> Any:
    """A link to the page of a job, whether it still exists or not: no query for each row."""
    return _link("job", key)


def _link(model_name: str, key: UUID) -> Any:
    try:
        address = reverse(f"admin:flexiq_django_{model_name}_change", args=[key])
    except NoReverseMatch:  # the project took that page out
        return str(key)
    return format_html('<a href="{}">{}</a>', address, key)
