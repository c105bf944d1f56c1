"""The pages: upload, watch, read the report."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from airports import reports
from airports.forms import UploadForm
from airports.models import Import
from airports.progress import progress_of
from airports.registering import register_import
from flexiq_django import queue

SHOWN = 20

PAGE_POLICY = "default-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
#: A picture loads nothing and runs nothing; its colours are in a style of its own.
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

View = Callable[..., HttpResponseBase]


def content_security(policy: str) -> Callable[[View], View]:
    """Send the policy with every answer of a view."""

    def decorate(view: View) -> View:
        @wraps(view)
        def secured(*args: Any, **kwargs: Any) -> HttpResponseBase:
            response = view(*args, **kwargs)
            response.headers["Content-Security-Policy"] = policy
            return response

        return secured

    return decorate


@never_cache
@content_security(PAGE_POLICY)
@require_http_methods(["GET", "HEAD", "POST"])
def home(request: HttpRequest) -> HttpResponse:
    """The upload form and the latest imports."""
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        run = register_import(
            file, file.name, has_corrupted_copy=form.cleaned_data["has_corrupted_copy"]
        )
        messages.success(request, f"{run.file_name} is enqueued as import {run.pk}.")
        return redirect("airports:home")
    imports = _latest()
    context = {
        "form": form,
        "imports": imports,
        "is_busy": any(not progress.has_ended for _, progress in imports),
        "workers": len(queue.workers()),
    }
    status = 422 if form.errors else 200
    return render(request, "airports/home.html", context, status=status)


@never_cache
@content_security(PAGE_POLICY)
@require_safe
def progress(request: HttpRequest) -> JsonResponse:
    """How far the latest imports are, for the script of the page."""
    imports = [
        {
            "id": run.pk,
            "stage": progress.stage,
            "text": progress.text,
            "percent": progress.percent,
            "corrupted": progress.corrupted.text if progress.corrupted else "",
            "has_report": bool(run.report),
            "has_ended": progress.has_ended,
        }
        for run, progress in _latest()
    ]
    return JsonResponse({"imports": imports, "workers": len(queue.workers())})


@never_cache
@content_security(PAGE_POLICY)
@require_safe
def import_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One import: its report, and what went wrong."""
    run = get_object_or_404(Import, pk=pk)
    attempts = queue.job_errors(run.corrupted_job) if run.corrupted_job else []
    context = {
        "run": run,
        "progress": progress_of(run),
        "attempts": len(attempts),
    }
    return render(request, "airports/import.html", context)


@content_security(PICTURE_POLICY)
@require_safe
def map_file(request: HttpRequest, pk: int) -> FileResponse:
    """The map of an import."""
    return _report_file(pk, reports.MAP, "image/svg+xml")


@content_security(PAGE_POLICY)
@require_safe
def summary_file(request: HttpRequest, pk: int) -> FileResponse:
    """The summary of an import, as it was mailed."""
    return _report_file(pk, reports.SUMMARY, "text/plain; charset=utf-8")


def _latest() -> list[tuple[Import, Any]]:
    return [(run, progress_of(run)) for run in Import.objects.all()[:SHOWN]]


def _report_file(pk: int, name: str, content_type: str) -> FileResponse:
    run = get_object_or_404(Import, pk=pk)
    path = Path(default_storage.path(run.report), name) if run.report else None
    if path is None or not path.is_file():
        raise Http404("This import has no report yet.")
    return FileResponse(path.open("rb"), content_type=content_type)
