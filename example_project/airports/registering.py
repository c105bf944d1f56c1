"""How an import begins: the file is kept, and the job that splits it is enqueued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import airportsdata
from django.core.files.base import File
from django.db import transaction

from airports.csv_files import check_file
from airports.models import Import
from airports.tasks import split_file


def default_csv() -> Path:
    """The table of airports that ships inside the package `airportsdata`."""
    return Path(airportsdata.__file__).with_name("airports.csv")


def register_import(file: File[Any], name: str, *, has_corrupted_copy: bool = False) -> Import:
    """Keep the file and enqueue its import. Raises `BadFileError` if it cannot be imported.

    The import and its first job are written in one transaction: there is never one without the
    other, and no worker sees the job before the import is there.
    """
    check_file(file)
    file.seek(0)
    shown = "".join(each for each in name if each.isprintable())[-200:]
    run = Import(file_name=shown or "upload.csv", has_corrupted_copy=has_corrupted_copy)
    run.file.save(Path(shown).name or "upload.csv", file, save=False)
    try:
        with transaction.atomic():
            run.save()
            run.split_job = split_file.apply_async((run.pk,), metadata=run.label).id
            run.save(update_fields=["split_job"])
    except BaseException:
        run.file.delete(save=False)
        raise
    return run
