"""The pages of the settings store, of replays and of metrics."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from flexiq_django.admin import details, texts
from flexiq_django.admin.base import ReadOnlyAdmin, column
from flexiq_django.admin.calls import by_key
from flexiq_django.admin.filters import NamespaceFilter, TaskFilter
from flexiq_django.admin.paging import WINDOW
from flexiq_django.admin.verbs import Entered, Skipped, Verb
from flexiq_django.api.queue import Queue
from flexiq_django.api.settings_store import is_own_key

# --- settings -------------------------------------------------------------------------------------


class ValueForm(forms.Form):
    """A new value, and the one it replaces."""

    value = forms.CharField(
        label=_("value"), required=False, strip=False, widget=forms.Textarea(attrs={"rows": 8})
    )
    expected = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)


class EntryForm(forms.Form):
    """A new entry."""

    key = forms.CharField(label=_("key"), max_length=200, strip=False)
    value = forms.CharField(
        label=_("value"), required=False, strip=False, widget=forms.Textarea(attrs={"rows": 8})
    )


def _edit(queue: Queue, row: Any, entered: Entered, _actor: str) -> Skipped:
    # What is stored may end its lines otherwise than a browser sends them back.
    is_as_seen = _with_line_feeds(row.value) == _with_line_feeds(entered["expected"])
    value = _with_line_feeds(entered["value"])
    if is_as_seen and queue.set_setting_if(row.key, row.value, value):
        return None
    return _("somebody has changed or deleted it since you began; look at it again")


def _add(queue: Queue, _row: Any, entered: Entered, _actor: str) -> Any:
    if queue.set_setting_if(entered["key"], None, _with_line_feeds(entered["value"])):
        return 1
    return _("there is a setting of this key; edit that")


def _delete(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return None if queue.delete_setting(row.key) else _("somebody else was faster")


def _with_line_feeds(text: str) -> str:
    # Browsers send every line end as CR LF.
    return re.sub(r"\r\n?", "\n", text)


EDIT = Verb(
    name="edit",
    label=_("Edit"),
    permission="change_setting",
    act=_edit,
    form=ValueForm,
    initial=lambda row: {"value": row.value, "expected": row.value},
    suits=lambda row: not is_own_key(row.key),
    one_at_a_time=True,
    done=ngettext_lazy(
        "%(count)d setting was changed.", "%(count)d settings were changed.", "count"
    ),
)

ADD = Verb(
    name="add",
    label=_("Add a setting"),
    permission="add_setting",
    act=_add,
    form=EntryForm,
    on_rows=False,
    done=ngettext_lazy("%(count)d setting was added.", "%(count)d settings were added.", "count"),
)

DELETE = Verb(
    name="delete",
    label=_("Delete"),
    permission="delete_setting",
    act=_delete,
    question=ngettext_lazy("Delete %(count)d setting?", "Delete %(count)d settings?", "count"),
    done=ngettext_lazy(
        "%(count)d setting was deleted.", "%(count)d settings were deleted.", "count"
    ),
)


class SettingAdmin(ReadOnlyAdmin):
    """The key and value store of the deployment."""

    verbs = (EDIT, DELETE, ADD)
    list_display = ("key_", "value_line", "changed")
    fieldsets = [(None, {"fields": ["key_", "value_", "changed"]})]

    key_ = column("key", _("key"))
    value_ = column("value", _("value"), texts.block)
    value_line = column("value", _("value"), texts.line)
    changed = column("updated_at", _("changed"), texts.moment)


# --- what happened --------------------------------------------------------------------------------


class ReplayAdmin(ReadOnlyAdmin):
    """Which jobs were run again, as which new jobs, and by whom."""

    wide_columns = ("original_error", "replay_error")
    window = WINDOW
    search_fields = ("pk",)
    search_help_text = _("The exact id of either job.")
    list_filter = (NamespaceFilter,)
    list_display = ("short_id", "original", "replay", "REPLAYED", "actor_")
    fieldsets = [
        (None, {"fields": [("original", "replay"), ("REPLAYED", "actor_", "namespace_")]}),
        (_("Errors"), {"fields": ["problem", "replay_problem"]}),
    ]

    short_id = column("id", _("id"), texts.short_key)
    namespace_ = column("namespace", _("namespace"))
    REPLAYED = column("replayed_at", _("REPLAYED"), texts.moment)
    actor_ = column("actor", _("by"))
    problem = column("original_error", _("error of the original job"), texts.error)
    replay_problem = column("replay_error", _("error of the new job"), texts.error)

    @admin.display(description=_("original job"))
    def original(self, row: Any) -> Any:
        return details.link_to_job(row.original_job_id)

    @admin.display(description=_("new job"))
    def replay(self, row: Any) -> Any:
        return details.link_to_job(row.replay_job_id)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return by_key(queryset, search_term, "original_job_id", "replay_job_id"), False


class MetricAdmin(ReadOnlyAdmin):
    """How long each execution took."""

    window = WINDOW
    list_filter = (TaskFilter, NamespaceFilter)
    list_display = ("id", "task", "took", "succeeded", "recorded", "job")
    fieldsets = [
        (
            None,
            {"fields": ["id", ("task", "namespace_"), ("took", "succeeded"), "recorded", "job"]},
        )
    ]

    namespace_ = column("namespace", _("namespace"))
    task = column("task_name", _("task"))
    took = column("duration_ms", _("took"), texts.duration)
    recorded = column("recorded_at", _("recorded"), texts.moment)

    @admin.display(description=_("job"))
    def job(self, row: Any) -> Any:
        return details.link_to_job(row.job_id)
