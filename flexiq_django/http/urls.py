"""``path("", include("flexiq_django.http.urls"))`` mounts the operator surface under ``queue/``."""

from __future__ import annotations

from django.urls import path, re_path

from flexiq_django.http import endpoints, views

app_name = "flexiq_http"


def _route(endpoint: endpoints.Endpoint) -> str:
    return f"queue/{endpoint.path}".replace("{job_id}", "<str:job_id>")


urlpatterns = [
    path(_route(endpoints.STATS), views.stats, name=endpoints.STATS.name),
    path(_route(endpoints.JOBS), views.jobs, name=endpoints.JOBS.name),
    path(_route(endpoints.JOB), views.job, name=endpoints.JOB.name),
    path(_route(endpoints.REQUEUE), views.requeue, name=endpoints.REQUEUE.name),
    path(_route(endpoints.DESCRIPTION), views.description, name=endpoints.DESCRIPTION.name),
    re_path(r"^queue/(?P<rest>.*)$", views.nothing_here),
]
