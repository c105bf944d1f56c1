"""The rows of the example in Django's admin, to look at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from airports.models import Airport, Import, ImportChunk


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django 5.2 cannot subscript it
    """Jobs write these rows; people look at them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Files are uploaded on the page."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits what a job may be writing."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A job that is still to come needs its import."""
        return False


@admin.register(Import)
class ImportAdmin(ReadOnlyAdmin):
    """Files and where they stand."""

    list_display = ["id", "file_name", "total_rows", "created_at", "mailed_at"]


@admin.register(ImportChunk)
class ImportChunkAdmin(ReadOnlyAdmin):
    """Which rows which job imported."""

    list_display = ["run", "number", "first_row", "rows", "job", "imported_at"]
    list_filter = [("imported_at", admin.EmptyFieldListFilter)]
    list_select_related = ["run"]


@admin.register(Airport)
class AirportAdmin(ReadOnlyAdmin):
    """The airports."""

    list_display = ["name", "icao", "iata", "city", "country", "tz"]
    list_filter = ["run"]
    search_fields = ["name", "icao__iexact", "iata__iexact", "city"]
