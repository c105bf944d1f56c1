"""Reading CSV files of airports, whole or in spans of rows, with errors that say what to mend.

The splitting job walks through a file once and notes at which byte each span of rows begins; the
job that imports a span jumps there. So no job reads more than it needs, and none copies the file.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

#: The columns that are kept, with the longest text of each; the others of a file are ignored.
LONGEST = {
    "icao": 10,
    "iata": 10,
    "name": 200,
    "city": 200,
    "subd": 200,
    "country": 100,
    "tz": 60,
    "lid": 20,
}
NUMBERS = ("elevation", "lat", "lon")
REQUIRED = ("name", "lat", "lon")

#: What other publishers of airport tables call the same things.
ALIASES = {
    "airport": "name",
    "alt": "elevation",
    "altitude": "elevation",
    "country_code": "country",
    "elevation_ft": "elevation",
    "iata_code": "iata",
    "icao_code": "icao",
    "iso_country": "country",
    "lat_deg": "lat",
    "latitude": "lat",
    "latitude_deg": "lat",
    "lng": "lon",
    "lon_deg": "lon",
    "long": "lon",
    "longitude": "lon",
    "longitude_deg": "lon",
    "municipality": "city",
    "timezone": "tz",
    "tz_database_time_zone": "tz",
}

LONGEST_HEADER = 65_536


class ByteFile(Protocol):
    """What is needed of a file: of one on the disk, in memory, or in Django's storage."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""

    def readline(self, size: int = -1, /) -> bytes:
        """The next line with its end, or as much of it as `size` allows."""

    def seek(self, offset: int, /) -> int:
        """Go to a byte."""

    def tell(self) -> int:
        """The byte that is next."""


class BadFileError(ValueError):
    """The file cannot be read as a CSV file of airports. The message says why, for a person."""


class BadRowError(ValueError):
    """One row cannot be imported. The message names the row and the column."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the first line of a file says."""

    columns: tuple[str, ...]
    delimiter: str
    #: The byte at which the rows begin.
    start: int


@dataclass(frozen=True, kw_only=True)
class Span:
    """Some rows in sequence: the number of the first (from 1), how many, and where they lie."""

    first_row: int
    rows: int
    offset: int
    length: int


def read_layout(file: ByteFile) -> Layout:
    """Read the header. Raises `BadFileError` if the file cannot be imported."""
    file.seek(0)
    lines = _Lines(file, longest=LONGEST_HEADER)
    header = next(lines, "")
    if not header.strip():
        raise BadFileError("The first line is empty; it must name the columns.")
    if "\x00" in header:
        raise BadFileError("This is not a text file. Save it as CSV in UTF-8.")
    delimiter = max(",;\t", key=header.count)
    names = [name.strip().lower() for name in next(csv.reader([header], delimiter=delimiter))]
    columns = tuple(ALIASES.get(name, name) for name in names)
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise BadFileError(
            f"There is no column {' and no column '.join(missing)}. Needed are"
            f" {', '.join(REQUIRED)}; the first line has: {', '.join(names)[:300]}."
        )
    twice = sorted({name for name in columns if name and columns.count(name) > 1})
    if twice:
        raise BadFileError(f"Two columns mean the same thing: {', '.join(twice)}.")
    return Layout(columns=columns, delimiter=delimiter, start=lines.position)


def check_file(file: ByteFile) -> Layout:
    """The layout of a file whose first row can be imported. Raises `BadFileError` otherwise."""
    layout = read_layout(file)
    first = next(_records(file, layout), None)
    if first is None:
        raise BadFileError("There is a header, but no row below it.")
    try:
        airport_values(1, as_row(1, layout, first[0]))
    except BadRowError as error:
        raise BadFileError(f"The first row cannot be imported. {error}") from None
    return layout


def count_rows(file: ByteFile) -> int:
    """How many rows there are below the header."""
    return sum(1 for _ in _records(file, read_layout(file)))


def spans(file: ByteFile, layout: Layout, rows_per_span: int) -> Iterator[Span]:
    """Cut the rows of a file into spans. Raises `BadFileError` where the file stops being CSV."""
    first_row, rows, offset, end = 1, 0, layout.start, layout.start
    for _, end in _records(file, layout):
        rows += 1
        if rows == rows_per_span:
            yield Span(first_row=first_row, rows=rows, offset=offset, length=end - offset)
            first_row, rows, offset = first_row + rows, 0, end
    if rows:
        yield Span(first_row=first_row, rows=rows, offset=offset, length=end - offset)


def read_span(file: ByteFile, layout: Layout, span: Span) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a span, numbered as in the whole file. Raises `BadRowError`, `BadFileError`."""
    file.seek(span.offset)
    part = io.BytesIO(file.read(span.length))
    records = _records(part, Layout(columns=layout.columns, delimiter=layout.delimiter, start=0))
    for number, (record, _) in enumerate(records, start=span.first_row):
        yield number, as_row(number, layout, record)


def as_row(number: int, layout: Layout, record: list[str]) -> dict[str, str]:
    """A record under the names of its columns. Raises `BadRowError` if their numbers differ."""
    if len(record) != len(layout.columns):
        raise BadRowError(
            f"Row {number} has {len(record)} fields; the first line names {len(layout.columns)}."
        )
    return dict(zip(layout.columns, record, strict=True))


def airport_values(number: int, row: Mapping[str, str]) -> dict[str, str | float | None]:
    """The values of an airport, checked. Raises `BadRowError`."""
    values: dict[str, str | float | None] = {
        column: _text(number, column, row.get(column, ""), longest)
        for column, longest in LONGEST.items()
    }
    if not values["name"]:
        raise BadRowError(f"Row {number}: name is empty.")
    return {
        **values,
        "lat": _degrees(number, "lat", row["lat"], limit=90),
        "lon": _degrees(number, "lon", row["lon"], limit=180),
        "elevation": _elevation(number, row.get("elevation", "")),
    }


def _text(number: int, column: str, text: str, longest: int) -> str:
    text = text.strip()
    if len(text) > longest:
        raise BadRowError(
            f"Row {number}: {column} has {len(text)} characters; the most is {longest}."
        )
    if "\x00" in text:
        raise BadRowError(f"Row {number}: {column} has a NUL character.")
    return text


def _degrees(number: int, column: str, text: str, *, limit: int) -> float:
    value = _number(text)
    if not -limit <= value <= limit:  # also refuses what is no number at all
        raise BadRowError(
            f"Row {number}: {column} is {text!r}; it must be from {-limit} to {limit}."
        )
    return value


def _elevation(number: int, text: str) -> float | None:
    if not text.strip():
        return None
    value = _number(text)
    if not math.isfinite(value):
        raise BadRowError(f"Row {number}: elevation is {text!r}; it must be a number, or empty.")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _records(file: ByteFile, layout: Layout) -> Iterator[tuple[list[str], int]]:
    """Each record that is not blank, with the byte at which the next one begins."""
    file.seek(layout.start)
    lines = _Lines(file)
    try:
        # The reader asks for lines only as it needs them, also where a field has several.
        for record in csv.reader(lines, delimiter=layout.delimiter):
            if record:
                yield record, lines.position
    except csv.Error as error:
        raise BadFileError(f"Before byte {lines.position}: {error}.") from None


class _Lines:
    """The lines of a file as text, and how far they have been read."""

    def __init__(self, file: ByteFile, *, longest: int = -1) -> None:
        self._file = file
        self._longest = longest
        self.position = file.tell()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        begin = self.position
        line = self._file.readline(self._longest)
        if not line:
            raise StopIteration
        self.position += len(line)
        try:
            return line.decode("utf-8" if begin else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadFileError(
                f"Byte {begin + error.start} is not UTF-8. Save the file as CSV in UTF-8."
            ) from None
