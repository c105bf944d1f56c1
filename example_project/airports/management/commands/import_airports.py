"""`manage.py import_airports`: enqueue the import of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.management.base import BaseCommand, CommandError, CommandParser

from airports.csv_files import BadFileError
from airports.models import Import
from airports.registering import default_csv, register_import


class Command(BaseCommand):
    """Enqueue the import of a file."""

    help = "Enqueue the import of a CSV file of airports; a worker does the rest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "csv",
            type=Path,
            nargs="?",
            help="A CSV file with the columns name, lat and lon. Default: the one in airportsdata.",
        )
        parser.add_argument(
            "--corrupted-copy",
            action="store_true",
            help="Also try a copy of one chunk that is corrupted on purpose.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run = enqueue_import(options["csv"], has_corrupted_copy=options["corrupted_copy"])
        self.stdout.write(f"{run.file_name} is enqueued as import {run.pk}.")


def enqueue_import(path: Path | None, *, has_corrupted_copy: bool) -> Import:
    """Register a file from the disk. Raises `CommandError` if it cannot be imported."""
    path = path or default_csv()
    try:
        with path.open("rb") as file:
            return register_import(File(file), path.name, has_corrupted_copy=has_corrupted_copy)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    except BadFileError as error:
        raise CommandError(f"{path} cannot be imported. {error}") from None
