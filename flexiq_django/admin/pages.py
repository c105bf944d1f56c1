"""The pages of jobs, live and archived."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from flexiq_django.admin import details, texts
from flexiq_django.admin.base import column, current_scope
from flexiq_django.admin.calls import CallAdmin, by_key
from flexiq_django.admin.details import Section
from flexiq_django.admin.filters import (
    EndedStatusFilter,
    NamespaceFilter,
    QueueFilter,
    StatusFilter,
    TaskFilter,
    known_namespaces,
)
from flexiq_django.admin.job_verbs import (
    CANCEL,
    CONTINUE,
    REPLAY,
    REPLAY_ARCHIVED,
    REQUEUE,
    STOP,
)
from flexiq_django.admin.overview.page import OverviewAdmin
from flexiq_django.api.options import parse_id
from flexiq_django.core.status import JobStatus
from flexiq_django.core.waiting import reasons
from flexiq_django.models.job import STATUS_CHOICES
from flexiq_django.store import waiting
from flexiq_django.store.keys import active_key

_STATUS_WORDS = dict(STATUS_CHOICES)


class BaseJobAdmin(CallAdmin):
    """Jobs, live or archived."""

    wide_columns = ("payload", "result", "error", "metadata", "notes", "pause_reason")
    list_display: tuple[str, ...] = (
        "short_id", "task", "queue_", "state", "progress_", "attempts", "created", "due", "ended",
        "worker",
    )  # fmt: skip
    fieldsets: ClassVar[list[Any]] = [
        (
            None,
            {
                "fields": [
                    "id", ("task", "queue_", "namespace_"), ("state", "progress_", "attempts"),
                    "problem",
                ]
            },
        ),
        (_("Call"), {"fields": ["arguments", "outcome"]}),
        (
            _("Times"),
            {
                "fields": [
                    ("created", "due"), ("began", "ended", "changed"), ("result_ttl", "purge"),
                ]
            },
        ),
        (
            _("Execution"),
            {
                "fields": [
                    ("priority", "retry_count", "timeout"), ("worker", "deployment", "origin_"),
                ]
            },
        ),
        (
            _("Labels"),
            {
                "fields": [
                    "key", "metadata_", "notes_", ("user", "session", "trace"),
                    ("attempt_", "trial"),
                ],
                "classes": ["collapse"],
            },
        ),
    ]  # fmt: skip

    created = column("created_at", _("created"), texts.moment)
    due = column("scheduled_at", _("due"), texts.moment)
    began = column("started_at", _("started"), texts.moment)
    ended = column("completed_at", _("ended"), texts.moment)
    changed = column("updated_at", _("last change"), texts.moment)
    worker = column("worker_id", _("worker"), texts.unbroken)
    progress_ = column("progress", _("progress"), texts.progress_bar)
    outcome = column("result", _("result"), texts.result)
    key = column("unique_key", _("unique key"))
    attempt_ = column("attempt_id", _("attempt id"))
    trial = column("trial_id", _("trial id"))

    @admin.display(description=_("status"))
    def state(self, row: Any) -> SafeString:
        return format_html(
            '<span class="nowrap flexiq-{}">{}</span>', row.status, self.status_text(row)
        )

    def status_text(self, row: Any) -> Any:
        """The status in words."""
        return _STATUS_WORDS.get(row.status, row.status)

    @admin.display(description=_("attempts"))
    def attempts(self, row: Any) -> SafeString:
        return format_html('<span class="nowrap">{} / {}</span>', row.attempt, row.max_retries + 1)

    @admin.display(description=_("origin"))
    def origin_(self, row: Any) -> Any:
        word = row.get_origin_display()
        return word if row.schedule is None else f"{word}: {texts.printable(row.schedule)}"

    def get_sections(self, request: HttpRequest, row: Any) -> list[Section]:
        using = current_scope().using
        return [
            details.failed_attempts(using, row.pk),
            details.log_lines(using, row.pk),
            details.relatives(using, row.pk, upwards=True),
            details.relatives(using, row.pk, upwards=False),
            details.dead_letters(using, row.pk),
        ]


class JobAdmin(OverviewAdmin, BaseJobAdmin):
    """Jobs that are not archived yet."""

    verbs = (CANCEL, CONTINUE, STOP, REQUEUE, REPLAY)

    list_filter = (StatusFilter, QueueFilter, TaskFilter, NamespaceFilter)
    search_help_text = _(
        "The exact id of a job, or the exact unique key of one that has not ended."
    )
    fieldsets: ClassVar[list[Any]] = [
        (None, {"fields": [*BaseJobAdmin.fieldsets[0][1]["fields"], "held_by"]}),
        *BaseJobAdmin.fieldsets[1:2],
        (
            _("Times"),
            {
                "fields": [
                    ("created", "due", "expiry"),
                    ("began", "ended", "changed"),
                    ("lease", "cancel_requested"),
                    ("result_ttl", "purge"),
                ]
            },
        ),
        *BaseJobAdmin.fieldsets[3:],
    ]

    expiry = column("expires_at", _("too late to start at"), texts.moment)
    lease = column("lease_at", _("lease ends"), texts.moment)
    cancel_requested = column("cancel_requested_at", _("cancel requested"), texts.moment)

    def status_text(self, row: Any) -> Any:
        """The status; for a job that is pending also what it is pending for."""
        if row.status == JobStatus.PAUSED and "pause_reason" not in row.get_deferred_fields():
            reason = texts.printable(row.pause_reason or "")
            return _("paused: %(reason)s") % {"reason": reason} if reason else _("paused")
        if row.status == JobStatus.RUNNING and row.cancel_requested_at is not None:
            return _("running, cancel requested")
        if row.status != JobStatus.PENDING:
            return super().status_text(row)
        if row.ready_lane is not None:
            return _("pending, ready")
        if row.promote_at is not None:
            return _("pending, due later")
        if row.session_line is not None:
            return _("pending, waits for its session")
        return _("pending, waits for other jobs")

    @admin.display(description=_("held by"))
    def held_by(self, row: Any) -> Any:
        """Why the job does not run; on its own page only."""
        scope = replace(current_scope(), namespace=row.namespace)
        found = waiting.look(scope, row.pk) if row.status == JobStatus.PENDING else None
        if found is None:
            return self.get_empty_value_display()
        return texts.printable("; ".join(text for _code, text in reasons(found)))

    def get_window(self, request: HttpRequest, term: str) -> int | None:
        # The index of leases holds the running jobs only.
        is_running = request.GET.get("status") == JobStatus.RUNNING
        return None if is_running else super().get_window(request, term)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By id or by unique key, each through its index; a unique key may look like an id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        holders = queryset.filter(
            namespace__in=known_namespaces(current_scope().using), active_key=active_key(term)
        )
        key = parse_id(term)
        if key is None:
            return holders, False
        # Two statements: of one with an OR a planner may make a walk of the table.
        held = holders.order_by().values_list("pk", flat=True)
        return queryset.filter(pk__in=[key, *held]), False

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a job; a job that was archived meanwhile is shown there."""
        key = parse_id(unquote(object_id))
        if key is not None and self.has_view_permission(request):
            found = details.find_jobs(current_scope().using, [key]).get(key)
            if found is not None and not isinstance(found, self.model):
                return redirect("admin:flexiq_django_archivedjob_change", key)
        return super().change_view(request, object_id, form_url, extra_context)


class ArchivedJobAdmin(BaseJobAdmin):
    """Jobs that were moved out of the way after their end."""

    verbs = (REPLAY_ARCHIVED,)

    list_filter = (EndedStatusFilter, QueueFilter, TaskFilter, NamespaceFilter)
    search_help_text = _("The exact id of a job.")
    list_display: tuple[str, ...] = (
        "short_id", "task", "queue_", "state", "attempts", "created", "ended", "archived",
    )  # fmt: skip

    archived = column("archived_at", _("archived"), texts.moment)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return by_key(queryset, search_term, "pk"), False
