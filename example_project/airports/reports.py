"""What the report of an import says: counts, gaps, and where every airport lies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airports.models import Airport, Import, ImportChunk, rows_done
from airports.places import REGIONS, country_name, region_of
from airports.world_map import Bar, Group, draw_map
from flexiq_django import queue

MAP = "map.svg"
SUMMARY = "summary.txt"

TOP_COUNTRIES = 10


@dataclass(frozen=True, kw_only=True)
class Report:
    """The facts, as they were in the table when it was read."""

    file_name: str
    total_rows: int
    imported_rows: int
    countries_in_all: int
    #: (name, airports) with the largest first.
    regions: list[tuple[str, int]]
    countries: list[tuple[str, int]]
    #: (which rows are missing, why)
    gaps: list[tuple[str, str]]
    #: Region -> (latitude, longitude) of each of its airports.
    points: dict[str, list[tuple[float, float]]]

    def as_json(self) -> dict[str, Any]:
        """What is kept with the import."""
        return {
            "imported": self.imported_rows,
            "countries_in_all": self.countries_in_all,
            "regions": self.regions,
            "countries": self.countries,
            "gaps": self.gaps,
        }


def build_report(run: Import) -> Report:
    """Read and count the airports of an import."""
    points: dict[str, list[tuple[float, float]]] = {}
    countries: Counter[str] = Counter()
    rows = Airport.objects.filter(run=run).values_list("lat", "lon", "tz", "country")
    for lat, lon, zone, country in rows.iterator(chunk_size=5000):
        points.setdefault(region_of(zone, country), []).append((lat, lon))
        countries[country] += 1
    return Report(
        file_name=run.file_name,
        total_rows=run.total_rows or 0,
        imported_rows=sum(countries.values()),
        countries_in_all=len(set(countries) - {""}),
        regions=Counter({name: len(of) for name, of in points.items()}).most_common(),
        countries=[(country_name(code), n) for code, n in countries.most_common(TOP_COUNTRIES)],
        gaps=_gaps(run),
        points=points,
    )


def draw(report: Report) -> str:
    """The map, as the text of an SVG file."""
    counted = dict(report.regions)
    return draw_map(
        title=f"{report.imported_rows:,} airports",
        subtitle=f"from {report.file_name}{_places(report)}{_missing(report)}",
        groups=[
            Group(number=number, name=name, count=counted[name], points=report.points[name])
            for number, name in enumerate(REGIONS)
            if name in counted
        ],
        bars=[Bar(name=name, count=count) for name, count in report.countries],
    )


def summary_text(report: Report) -> str:
    """The report in plain text, for the mail."""
    lines = [
        f"{report.file_name}",
        "",
        f"{report.imported_rows:,} of {report.total_rows:,} rows are imported.",
    ]
    lines += [f"Missing: {rows}. {reason}" for rows, reason in report.gaps]
    lines += ["", "By part of the world:", *_table(report.regions)]
    lines += ["", f"By country (the first of {report.countries_in_all}):"]
    lines += _table(report.countries)
    return "\n".join(lines) + "\n"


def replace_file(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds the old text or the new, never a part."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _places(report: Report) -> str:
    if report.countries_in_all == 1:
        return f", in {report.countries[0][0]}"
    of = report.countries_in_all
    return f", in {of} countries and territories" if of else ""


def _missing(report: Report) -> str:
    missing = report.total_rows - report.imported_rows
    return f"; {missing:,} rows could not be imported" if missing else ""


def _gaps(run: Import) -> list[tuple[str, str]]:
    _, done, of = rows_done(run)
    if done == of:
        return []
    missing = ImportChunk.objects.filter(run=run, imported_at__isnull=True)
    return [(str(chunk), _reason(chunk.job)) for chunk in missing]


def _reason(job_id: str) -> str:
    job = queue.get_job(job_id)
    return (job.to_dict()["error"] if job else None) or "The job did not run."


def _table(rows: list[tuple[str, int]]) -> list[str]:
    widest = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{widest}}  {count:>8,}" for name, count in rows]
