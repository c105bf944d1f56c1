"""What the pages of jobs and of dead letters share: a stored call, its labels, the search by id."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from flexiq_django.admin import texts
from flexiq_django.admin.base import ReadOnlyAdmin, column
from flexiq_django.admin.paging import WINDOW
from flexiq_django.api.options import parse_id


class CallAdmin(ReadOnlyAdmin):
    """What jobs and dead letters share: a stored call, with arguments not everybody may see."""

    window = WINDOW
    search_fields = ("pk",)  # shows the box; get_search_results does the work

    short_id = column("id", _("id"), texts.short_key)
    namespace_ = column("namespace", _("namespace"))
    task = column("task_name", _("task"))
    queue_ = column("queue", _("queue"))
    arguments = column("payload", _("arguments"), texts.arguments)
    problem = column("error", _("error"), texts.error)
    metadata_ = column("metadata", _("metadata"), texts.json_text)
    notes_ = column("notes", _("notes"), texts.json_text)
    session = column("session_id", _("session"))
    user = column("user_id", _("user"))
    deployment = column("deployment_id", _("deployment"))
    trace = column("trace_id", _("trace"))
    purge = column("purge_at", _("deleted at"), texts.moment)
    timeout = column("timeout_ms", _("timeout"), texts.duration)
    result_ttl = column("result_ttl_ms", _("kept after its end for"), texts.duration)

    def get_window(self, request: HttpRequest, term: str) -> int | None:
        # A search goes by a key.
        return None if term else super().get_window(request, term)


def by_key(queryset: QuerySet[Any], term: str, *names: str) -> QuerySet[Any]:
    """Rows of which one of the columns is the id that was typed."""
    if not term.strip():
        return queryset
    key = parse_id(term.strip())
    if key is None:
        return queryset.none()
    wanted = Q()
    for name in names:
        wanted |= Q(**{name: key})
    return queryset.filter(wanted)
