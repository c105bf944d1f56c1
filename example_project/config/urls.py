"""The pages of the example, and Django's admin."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("airports.urls")),
]
