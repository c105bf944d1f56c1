"""Imports, the chunks they are cut into, and the airports they bring."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from airports.csv_files import LONGEST, Span


class Import(models.Model):
    """One file on its way into the table.

    The job ids say whom to ask how far it is: see `airports.progress`.
    """

    file_name = models.CharField(max_length=200)
    file = models.FileField(upload_to="uploads/", max_length=300)
    total_rows = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    has_corrupted_copy = models.BooleanField(
        default=False,
        help_text="Also try a copy of one chunk that was corrupted on purpose.",
    )
    #: Folder of the report inside the media folder; empty until it is drawn.
    report = models.CharField(max_length=300, blank=True, default="")
    #: What the report counted.
    counts = models.JSONField(default=dict, blank=True)
    mailed_at = models.DateTimeField(null=True, blank=True)

    split_job = models.CharField(max_length=36, blank=True, default="")
    report_job = models.CharField(max_length=36, blank=True, default="")
    mail_job = models.CharField(max_length=36, blank=True, default="")
    corrupted_job = models.CharField(max_length=36, blank=True, default="")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"import {self.pk} of {self.file_name}"

    def get_absolute_url(self) -> str:
        """The page about this import."""
        return reverse("airports:import", args=[self.pk])

    @property
    def label(self) -> str:
        """What the jobs of this import carry as their metadata."""
        return f"airports import {self.pk}"


class ImportChunk(models.Model):
    """Some rows of the file in sequence: the work of one job."""

    run = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    first_row = models.PositiveIntegerField()
    rows = models.PositiveIntegerField()
    offset = models.PositiveBigIntegerField()
    length = models.PositiveBigIntegerField()
    job = models.CharField(max_length=36, blank=True, default="")
    #: Written in the same transaction as the rows.
    imported_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["run_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="airports_one_chunk_per_number"),
        ]

    def __str__(self) -> str:
        return f"rows {self.first_row} to {self.last_row}"

    @property
    def last_row(self) -> int:
        """The number of its last row in the file, counted from 1."""
        return self.first_row + self.rows - 1

    @property
    def span(self) -> Span:
        """Where its rows lie in the file."""
        return Span(
            first_row=self.first_row, rows=self.rows, offset=self.offset, length=self.length
        )


class Airport(models.Model):
    """One row of an imported file."""

    run = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="airports")
    row = models.PositiveIntegerField(help_text="Number of the row in its file, from 1.")
    icao = models.CharField("ICAO code", max_length=LONGEST["icao"], blank=True)
    iata = models.CharField("IATA code", max_length=LONGEST["iata"], blank=True)
    lid = models.CharField("FAA location identifier", max_length=LONGEST["lid"], blank=True)
    name = models.CharField(max_length=LONGEST["name"])
    city = models.CharField(max_length=LONGEST["city"], blank=True)
    subd = models.CharField("state or region", max_length=LONGEST["subd"], blank=True)
    country = models.CharField(max_length=LONGEST["country"], blank=True)
    elevation = models.FloatField("elevation in feet", null=True, blank=True)
    lat = models.FloatField("latitude")
    lon = models.FloatField("longitude")
    tz = models.CharField("time zone", max_length=LONGEST["tz"], blank=True)

    class Meta:
        ordering = ["run_id", "row"]
        constraints = [
            # Whatever happens to workers, a row of a file cannot be in the table twice.
            models.UniqueConstraint(fields=["run", "row"], name="airports_each_row_once"),
            models.CheckConstraint(
                condition=Q(lat__gte=-90, lat__lte=90, lon__gte=-180, lon__lte=180),
                name="airports_on_this_planet",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.icao})" if self.icao else self.name


def rows_done(run: Import) -> tuple[int, int, int]:
    """Rows imported, chunks imported and chunks in all, of an import."""
    done = Q(imported_at__isnull=False)
    found = run.chunks.aggregate(
        rows=models.Sum(F("rows"), filter=done),
        chunks=models.Count("id", filter=done),
        of=models.Count("id"),
    )
    return found["rows"] or 0, found["chunks"], found["of"]
