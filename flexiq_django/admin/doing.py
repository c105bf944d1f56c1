"""The pages on which verbs are carried out: buttons, forms, questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django import VERSION, forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import Error as DjangoDatabaseError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from flexiq_django.admin import texts
from flexiq_django.admin.performing import count_for_question, perform
from flexiq_django.admin.verbs import Verb

#: The field that says the question has been answered.
CONFIRMED = "confirmed"

#: Rows named on the page that asks.
ROWS_NAMED = 20


class DoingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Offers ``verbs``: on the rows of the list, on the page of a row, and above the list."""

    verbs: ClassVar[tuple[Verb, ...]] = ()

    def __init__(self, model: type[Any], admin_site: admin.AdminSite) -> None:
        self.actions = [_action(verb) for verb in self.verbs if verb.on_rows]
        super().__init__(model, admin_site)

    # --- offering ---------------------------------------------------------------------------------

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> dict[str, Any]:
        """The verbs on rows that this user may do."""
        # Django before 6.1 knows no places.
        location = {} if action_location is None else {"action_location": action_location}
        forbidden = {verb.name for verb in self.verbs if not verb.is_allowed(request)}
        actions = super().get_actions(request, **location)
        return {name: action for name, action in actions.items() if name not in forbidden}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        wanted = request.POST.get("action")
        if any(verb.name == wanted and not verb.is_allowed(request) for verb in self.verbs):
            raise PermissionDenied
        above = [
            {"label": verb.label, "url": self._url(verb)}
            for verb in self._offered(request, on_rows=False)
        ]
        return super().changelist_view(request, {**(extra_context or {}), "verbs_above": above})

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            context["verbs"] = [
                {"label": verb.label, "url": self._url(verb, obj)}
                for verb in self._offered(request, on_rows=True)
                if verb.suits(obj)
            ]
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _offered(self, request: HttpRequest, *, on_rows: bool) -> list[Verb]:
        return [verb for verb in self.verbs if verb.on_rows is on_rows and verb.is_allowed(request)]

    def action_checkbox(self, obj: Any) -> SafeString:
        """The box that ticks a row; its label is read out, and a row's name may be hostile."""
        label = _("Choose %(name)s") % {"name": texts.printable(obj)}
        attributes = {"class": "action-select", "aria-label": label}
        box = forms.CheckboxInput(attributes, lambda _value: False)
        return box.render(ACTION_CHECKBOX_NAME, str(obj.pk))

    # --- doing ------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            # No key is written like this: in a key the admin spells "_" as "_5F".
            path("_do/<slug:verb>/", view(self.do_above), name=f"{name}_do"),
            path("<path:object_id>/do/<slug:verb>/", view(self.do_to_row), name=f"{name}_do_to"),
            *super().get_urls(),
        ]

    def do_above(self, request: HttpRequest, verb: str) -> HttpResponseBase:
        """A verb that takes no row."""
        found = self._find(request, verb, on_rows=False)
        return self.do(request, found, []) or redirect(self._list_url())

    def do_to_row(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponseBase:
        """A verb on one row, from its page."""
        found = self._find(request, verb, on_rows=True)
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        done = self.do(request, found, [row])
        if done is not None:
            return done
        is_there = self._is_still_there(request, object_id)
        return redirect(self._row_url(row) if is_there else self._list_url())

    def _is_still_there(self, request: HttpRequest, object_id: str) -> bool:
        try:
            return self.get_object(request, unquote(object_id)) is not None
        except DjangoDatabaseError:  # what has failed is said already
            return False

    def do(self, request: HttpRequest, verb: Verb, rows: Sequence[Any]) -> HttpResponse | None:
        """Do it, or ask for what is missing first. ``None`` when what there is to say is said."""
        if verb.one_at_a_time and len(rows) > 1:
            messages.warning(request, _("Choose one row: each needs an answer of its own."))
            return None
        entered: dict[str, Any] = {}
        form = None
        if verb.form is not None:
            is_sent = request.method == "POST" and CONFIRMED in request.POST
            initial = verb.initial(rows[0]) if len(rows) == 1 else {}
            form = verb.form(request.POST) if is_sent else verb.form(initial=initial)
            if not is_sent or not form.is_valid():
                return self._ask(request, verb, rows, form=form)
            entered = form.cleaned_data
        answered = request.POST.get(CONFIRMED) == "yes"
        if verb.question is not None and not (answered and request.method == "POST"):
            count = count_for_question(request, verb, rows, entered)
            if count is None:
                return None
            text = verb.question % {"count": count}
            return self._ask(request, verb, rows, question=text, form=form and _hidden(form))
        if request.method != "POST":
            return self._ask(request, verb, rows)
        perform(request, self.model, verb, rows, entered)
        return None

    def _ask(
        self,
        request: HttpRequest,
        verb: Verb,
        rows: Sequence[Any],
        *,
        question: str = "",
        form: forms.Form | None = None,
    ) -> HttpResponse:
        context = {
            **self.page_context(request, verb.label),
            "breadcrumbs": [(self.opts.verbose_name_plural, self._list_url())],
            "verb": verb,
            "question": question,
            "form": form,
            # A form whose verb also asks comes back with the question.
            "answer": "yes" if question or verb.question is None else "no",
            "rows": [texts.printable(row) for row in rows[:ROWS_NAMED]],
            "rows_left_out": max(0, len(rows) - ROWS_NAMED),
            "keys": [row.pk for row in rows] if "action" in request.POST else [],
            "checkbox": ACTION_CHECKBOX_NAME,
            "list_url": self._list_url(),
        }
        return TemplateResponse(request, "admin/flexiq_django/ask.html", context)

    def page_context(self, request: HttpRequest, title: Any) -> dict[str, Any]:
        """What a page of our own needs to look like one of the admin's."""
        request.current_app = self.admin_site.name
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "breadcrumbs_are_listed": VERSION >= (6, 1),
        }

    def _find(self, request: HttpRequest, name: str, *, on_rows: bool) -> Verb:
        for verb in self.verbs:
            if verb.name == name and verb.on_rows is on_rows:
                if verb.is_allowed(request) and self.has_view_permission(request):
                    return verb
                raise PermissionDenied
        raise Http404

    # --- places -----------------------------------------------------------------------------------

    def _url(self, verb: Verb, row: Any = None) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_do"
        if row is None:
            return reverse(name, args=[verb.name], current_app=self.admin_site.name)
        return reverse(
            f"{name}_to", args=[texts.quoted(row.pk), verb.name], current_app=self.admin_site.name
        )

    def _list_url(self) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return reverse(name, current_app=self.admin_site.name)

    def _row_url(self, row: Any) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=[texts.quoted(row.pk)], current_app=self.admin_site.name)


def _action(verb: Verb) -> Callable[[Any, HttpRequest, Any], HttpResponse | None]:
    def act(page: DoingAdmin, request: HttpRequest, chosen: Any) -> HttpResponse | None:
        # Rows that were ticked, never a whole table: the list does not count one.
        keys = request.POST.getlist(ACTION_CHECKBOX_NAME)[: page.list_per_page]
        return page.do(request, verb, list(chosen.filter(pk__in=keys).order_by("-pk")))

    act.__name__ = verb.name
    act.short_description = verb.label  # type: ignore[attr-defined]
    return act


def _hidden(form: forms.Form) -> forms.Form:
    for field in form.fields.values():
        field.widget = field.hidden_widget()
    return form
