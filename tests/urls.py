"""URLs of the test project."""

from django.apps import apps
from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("", include("flexiq_django.http.urls"))]
if apps.is_installed("django.contrib.admin"):
    urlpatterns.append(path("admin/", admin.site.urls))
