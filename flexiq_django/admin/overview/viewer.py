"""Who looks at what: permissions, and the addresses of other pages."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.formats import number_format
from django.utils.html import format_html

from flexiq_django.admin import texts
from flexiq_django.core.ages import as_age
from flexiq_django.store import inspect
from flexiq_django.store.scope import Scope


class Viewer:
    """A user who looks at a namespace, from the database's now on."""

    def __init__(self, request: HttpRequest, scope: Scope, *, site: str, is_default: bool) -> None:
        self.request = request
        self.scope = scope
        #: Whether it is the namespace that the buttons without a row are about.
        self.is_default = is_default
        self.now = inspect.read_clock(scope)
        self._site = site

    def may(self, codename: str) -> bool:
        """Whether the user has this permission of ours."""
        return bool(self.request.user.has_perm(f"flexiq_django.{codename}"))

    def rows(self, model: type[Any]) -> Any:
        """The rows of the namespace."""
        return model.objects.using(self.scope.using).filter(namespace=self.scope.namespace)

    def url(self, name: str, *args: Any, **filters: Any) -> str | None:
        """The address of a page of ours; ``None`` where the project has taken it out."""
        try:
            url = reverse(f"admin:flexiq_django_{name}", args=args, current_app=self._site)
        except NoReverseMatch:
            return None
        return f"{url}?{urlencode(filters)}" if filters else url

    def list_url(self, model: str, **filters: Any) -> str | None:
        """The list of a model, filtered, if the user may see it."""
        if not self.may(f"view_{model}"):
            return None
        return self.url(f"{model}_changelist", **filters, namespace=self.scope.namespace)

    def row_url(self, model: str, key: Any) -> str | None:
        """The page of a row, if the user may see it."""
        may = self.may(f"view_{model}")
        return self.url(f"{model}_change", texts.quoted(key)) if may else None

    def age(self, since: datetime | None) -> str | None:
        """How long ago that was; ``None`` for no moment."""
        if since is None:
            return None
        return as_age(max(0.0, (self.now - since).total_seconds()))


def link(text: object, url: str | None) -> Any:
    """A text that leads somewhere, or just the text."""
    shown = texts.printable(text)
    return shown if url is None else format_html('<a href="{}">{}</a>', url, shown)


def number(value: float) -> str:
    """A whole number as the user's language writes it."""
    return number_format(value, decimal_pos=0, force_grouping=True)
