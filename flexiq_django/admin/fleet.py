"""The pages of what steers the fleet: workers, schedules, queues, tasks."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import Case, Value, When
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from flexiq_django.admin import schedule_verbs, task_verbs, texts
from flexiq_django.admin.base import ReadOnlyAdmin, column, current_scope
from flexiq_django.admin.queue_verbs import (
    LIMIT,
    LIMIT_NAMED,
    PAUSE,
    PAUSE_NAMED,
    PURGE,
    PURGE_NAMED,
    RESUME,
)
from flexiq_django.core import fleet
from flexiq_django.scheduler.watching import find_unserved
from flexiq_django.store import inspect, workers


class WarningAdmin(ReadOnlyAdmin):
    """Says above its list and its rows what looks wrong in the fleet, whatever the row."""

    def get_warnings(self) -> list[str]:
        """The sentences, without their full stops."""
        return [each.text for each in find_unserved(current_scope())]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._warn(request)
        return super().changelist_view(request, extra_context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        self._warn(request)
        return super().change_view(request, object_id, form_url, extra_context)

    def _warn(self, request: HttpRequest) -> None:
        if request.method == "GET" and self.has_view_permission(request):
            for text in self.get_warnings():
                messages.warning(request, texts.printable(text))


class WorkerAdmin(WarningAdmin):
    """Worker processes, also those that have just gone."""

    list_display = (
        "id", "is_alive", "state_", "queues_", "concurrency", "deployment", "heartbeat", "skew",
        "version_",
    )  # fmt: skip
    fieldsets = [
        (
            None,
            {"fields": ["id", ("namespace_", "host", "pid"), ("is_alive", "state_", "version_")]},
        ),
        (_("Work"), {"fields": ["queues_", ("executor_", "concurrency", "deployment"), "values"]}),
        (_("Times"), {"fields": [("started", "heartbeat", "turned"), ("lease", "skew")]}),
    ]

    namespace_ = column("namespace", _("namespace"))
    host = column("hostname", _("host"))
    state_ = column("state", _("state"))
    executor_ = column("executor", _("executor"))
    deployment = column("deployment_id", _("deployment"))
    version_ = column("version", _("version"))
    values = column("config", _("settings"), texts.json_text)
    started = column("started_at", _("started"), texts.moment)
    heartbeat = column("heartbeat_at", _("last heartbeat"), texts.moment)
    turned = column("turned_at", _("last turn of the claim loop"), texts.moment)
    lease = column("lease_at", _("counts as gone at"), texts.moment)
    skew = column("clock_skew_ms", _("clock ahead by"), texts.duration)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Whether a worker is alive is judged by the database's clock, as everything else is.
        now = inspect.read_clock(current_scope())
        alive = Case(
            When(lease_at__gt=now, then=Value(True)),
            default=Value(False),
            output_field=BooleanField(),
        )
        rows: QuerySet[Any] = super().get_queryset(request).annotate(alive=alive)
        return rows

    def get_warnings(self) -> list[str]:
        live = workers.live(current_scope())
        return [
            *(text for _code, text in fleet.disagreements(live)),
            *super().get_warnings(),
        ]

    @admin.display(description=_("alive"), boolean=True)
    def is_alive(self, row: Any) -> bool:
        return bool(row.alive)

    @admin.display(description=_("queues"))
    def queues_(self, row: Any) -> Any:
        return texts.listing(json.loads(row.queues)) or _("every queue")


class ScheduleAdmin(ReadOnlyAdmin):
    """Schedules: which task runs when."""

    verbs = (schedule_verbs.PAUSE, schedule_verbs.RESUME, schedule_verbs.DELETE)

    wide_columns = ("payload",)
    list_display = (
        "name_", "task", "cron_", "zone", "queue_", "enabled", "next_run", "last_run",
        "missed_count",
    )  # fmt: skip
    fieldsets = [
        (None, {"fields": [("name_", "namespace_", "enabled"), ("task", "queue_"), "arguments"]}),
        (
            _("Timing"),
            {"fields": [("cron_", "zone", "next_run"), ("misfire_policy", "misfire_window")]},
        ),
        (_("History"), {"fields": [("last_run", "last_job_id"), ("missed_count", "declared")]}),
    ]

    name_ = column("name", _("name"))
    namespace_ = column("namespace", _("namespace"))
    task = column("task_name", _("task"))
    arguments = column("payload", _("arguments"), texts.arguments)
    cron_ = column("cron", _("cron expression"))
    zone = column("timezone", _("time zone"))
    queue_ = column("queue", _("queue"))
    misfire_window = column("misfire_window_ms", _("misfire window"), texts.duration)
    next_run = column("next_run_at", _("next run"), texts.moment)
    last_run = column("last_run_at", _("last run"), texts.moment)
    declared = column("declared_at", _("last declared by a worker"), texts.moment)


class QueueAdmin(WarningAdmin):
    """Queues that are paused or limited; a queue that never was has no row."""

    verbs = (PAUSE, RESUME, LIMIT, PURGE, PAUSE_NAMED, LIMIT_NAMED, PURGE_NAMED)

    list_display = ("name_", "namespace_", "paused", "rate_limit", "max_concurrent")
    fieldsets = [
        (None, {"fields": ["name_", "namespace_", "paused", "rate_limit", "max_concurrent"]}),
    ]

    name_ = column("name", _("name"))
    namespace_ = column("namespace", _("namespace"))
    paused = column("paused_at", _("paused since"), texts.moment)


class TaskAdmin(ReadOnlyAdmin):
    """Tasks that are revoked or limited; one that never was has no row. Code sets the limits."""

    verbs = (task_verbs.REVOKE, task_verbs.ALLOW, task_verbs.REVOKE_NAMED)

    list_display = (
        "name_", "namespace_", "revoked", "rate_limit", "max_concurrent", "retry_budget",
    )  # fmt: skip
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("name_", "namespace_"), "revoked",
                    ("rate_limit", "max_concurrent", "retry_budget"),
                ]
            },
        ),
    ]  # fmt: skip

    name_ = column("name", _("name"))
    namespace_ = column("namespace", _("namespace"))
    revoked = column("revoked_at", _("revoked since"), texts.moment)
