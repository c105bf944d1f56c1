"""The page itself, as one of those that the admin of jobs serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from flexiq_django.admin import texts
from flexiq_django.admin.base import ReadOnlyAdmin, current_scope
from flexiq_django.admin.filters import known_namespaces
from flexiq_django.admin.overview.executions import Executions
from flexiq_django.admin.overview.standing import Standing
from flexiq_django.admin.overview.viewer import Viewer
from flexiq_django.api import options as check
from flexiq_django.exceptions import InvalidOptionError


class OverviewAdmin(ReadOnlyAdmin):
    """Serves the overview beside its own pages, to whoever may see these."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.overview_view)
        return [path("overview/", view, name="flexiq_django_overview"), *super().get_urls()]

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        """How a namespace stands: that of the address, or the project's default."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        own = current_scope()
        scope = replace(own, namespace=_name(request.GET.get("namespace") or own.namespace))
        viewer = Viewer(
            request, scope, site=self.admin_site.name, is_default=scope.namespace == own.namespace
        )
        others = sorted(known_namespaces(own.using) - {scope.namespace})
        context = {
            **self.page_context(request, _("Overview")),
            **_contents(viewer),
            "subtitle": texts.printable(scope.namespace),
            "moment": texts.moment(viewer.now),
            "others": [(texts.printable(name), {"namespace": name}) for name in others],
        }
        return TemplateResponse(request, "admin/flexiq_django/overview.html", context)


def _name(namespace: str) -> str:
    try:
        return check.check_name("namespace", namespace, longest=100)
    except InvalidOptionError as error:
        raise Http404(str(error)) from None


def _contents(viewer: Viewer) -> dict[str, Any]:
    standing = Standing(viewer)
    executions = Executions(viewer) if viewer.may("view_taskmetric") else None
    return {
        "warnings": [texts.printable(text) for text in standing.warnings()],
        "tiles": standing.tiles(),
        "charts": executions.charts() if executions else [],
        "sections": [*standing.tables(), *([executions.tasks()] if executions else [])],
    }
