"""What every page has in common: it reads, from the queue's own database, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from flexiq_django.admin import paging, texts
from flexiq_django.admin.details import Section
from flexiq_django.admin.doing import DoingAdmin
from flexiq_django.api.default import queue
from flexiq_django.store.scope import Scope

#: Who may see arguments and results.
VIEW_PAYLOAD = "flexiq_django.view_payload"

#: Fields that show what was passed, each with the one that says it is hidden.
PRIVATE = {"arguments": "hidden_arguments", "outcome": "hidden_outcome"}

_HIDDEN = _("Hidden: you lack the permission to see arguments and results.")


def current_scope() -> Scope:
    """Where the project's default queue lives."""
    return queue.place


class ReadOnlyAdmin(DoingAdmin):
    """A list that pages by key, and a page of one row. No form adds, changes or deletes a row.

    What changes something is one of its ``verbs``.
    """

    #: Columns that lists do not read.
    wide_columns: ClassVar[tuple[str, ...]] = ()
    #: Rows a filtered page may look at; ``None`` for tables that stay small.
    window: ClassVar[int | None] = None

    list_per_page = 100
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()

    class Media:
        css = {"all": ["flexiq_django/admin.css"]}

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).using(current_scope().using)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[paging.KeyChangeList]:
        return paging.KeyChangeList

    def get_window(self, request: HttpRequest, term: str) -> int | None:
        """How many rows this filtered list may look at; ``None`` where an index finds the rows.

        ``term`` is what is searched for, if anything is.
        """
        return self.window

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only the filters of the page.

        Any other condition would scan the table, and could guess arguments that are hidden.
        """
        return any(
            lookup.partition("__")[0] == each
            if isinstance(each, str)
            else lookup == getattr(each, "parameter_name", None)
            for each in self.list_filter or ()
        )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The groups of fields, without what this user may not see."""
        groups = super().get_fieldsets(request, obj)
        if request.user.has_perm(VIEW_PAYLOAD):
            return groups
        return [
            (title, {**options, "fields": [_public(name) for name in options["fields"]]})
            for title, options in groups
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return flatten_fieldsets(self.get_fieldsets(request, obj))

    @admin.display(description=_("arguments"))
    def hidden_arguments(self, row: Any) -> Any:
        """What stands in the place of arguments."""
        return _HIDDEN

    @admin.display(description=_("result"))
    def hidden_outcome(self, row: Any) -> Any:
        """What stands in the place of a result."""
        return self.get_empty_value_display() if row.result is None else _HIDDEN

    def get_sections(self, request: HttpRequest, row: Any) -> list[Section]:
        """Tables below the fields of a row."""
        return []

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Model | None = None,
    ) -> HttpResponse:
        if obj is not None:
            context["subtitle"] = texts.printable(obj)
            context["sections"] = self.get_sections(request, obj)
        return super().render_change_form(request, context, add, change, form_url, obj)


def column(
    name: str, label: Any, show: Callable[[Any], Any] = texts.printable
) -> Callable[[Any, Any], Any]:
    """A read-only field that shows one column. ``show`` turns the value into what is seen."""

    @admin.display(description=label)
    def display(page: admin.ModelAdmin[Any], row: Any) -> Any:
        value = getattr(row, name)
        return page.get_empty_value_display() if value is None else show(value)

    return display


def _public(name: Any) -> Any:
    if isinstance(name, tuple | list):
        return tuple(_public(each) for each in name)
    return PRIVATE.get(name, name)
