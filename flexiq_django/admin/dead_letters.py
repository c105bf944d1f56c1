"""The pages of dead letters."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from flexiq_django.admin import details, texts
from flexiq_django.admin.base import column, current_scope
from flexiq_django.admin.calls import CallAdmin, by_key
from flexiq_django.admin.details import Section
from flexiq_django.admin.filters import NamespaceFilter, QueueFilter, TaskFilter
from flexiq_django.admin.letter_verbs import DELETE, PURGE, REPLAY, RETRY


class DeadLetterAdmin(CallAdmin):
    """Jobs that used up their attempts."""

    verbs = (RETRY, REPLAY, DELETE, PURGE)

    wide_columns = ("payload", "error", "metadata", "notes")
    list_filter = (QueueFilter, TaskFilter, NamespaceFilter)
    list_display = ("short_id", "task", "queue_", "error_line", "failed", "attempts", "auto_retry")
    search_help_text = _("The exact id of a dead letter or of its job.")
    fieldsets = [
        (None, {"fields": [("id", "job"), ("task", "queue_", "namespace_"), "problem"]}),
        (_("Call"), {"fields": ["arguments"]}),
        (_("Times"), {"fields": [("failed", "auto_retry"), ("result_ttl", "purge")]}),
        (
            _("Execution"),
            {
                "fields": [
                    ("priority", "attempts", "dlq_retry_count"),
                    ("timeout", "deployment"),
                ]
            },
        ),
        (
            _("Labels"),
            {
                "fields": ["metadata_", "notes_", ("user", "session", "trace")],
                "classes": ["collapse"],
            },
        ),
    ]

    failed = column("failed_at", _("failed"), texts.moment)
    auto_retry = column("auto_retry_at", _("automatic retry"), texts.moment)
    error_line = column("error_head", _("error"), texts.error_line)

    @admin.display(description=_("attempts"))
    def attempts(self, row: Any) -> str:
        return str(row.retry_count + 1)

    @admin.display(description=_("job"))
    def job(self, row: Any) -> Any:
        key: UUID = row.original_job_id
        return details.job_link(key, details.find_jobs(current_scope().using, [key]).get(key))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        head = Substr("error", 1, texts.ERROR_HEAD)
        rows: QuerySet[Any] = super().get_queryset(request).annotate(error_head=head)
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return by_key(queryset, search_term, "pk", "original_job_id"), False

    def get_sections(self, request: HttpRequest, row: Any) -> list[Section]:
        using = current_scope().using
        return [
            details.failed_attempts(using, row.original_job_id),
            details.log_lines(using, row.original_job_id),
        ]
