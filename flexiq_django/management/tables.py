"""Plain text for a terminal: aligned tables, ages, instants."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone


def table(name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table of which the first column is called ``name``; it begins with an empty line.

    Numbers stand at the right, an absent value is a dash, what cannot be printed a question mark.
    """
    if not rows:
        return f"\nno {name}s"
    head = [name, *columns]
    body = [[_cell(value) for value in row] for row in rows]
    widths = [max(_width(text) for text in column) for column in zip(head, *body, strict=True)]
    right = [all(isinstance(row[at], int) for row in rows) for at in range(len(head))]
    return "\n" + "\n".join(_line(cells, widths, right) for cells in [head, *body])


def printable(text: str) -> str:
    """The text with a question mark for whatever would move the cursor or hide."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def as_moment(milliseconds: int | None) -> str | None:
    """An instant in the project's time zone, with its name."""
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")


def _line(cells: Iterable[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        " " * (width - _width(text)) + text if at_right else text + " " * (width - _width(text))
        for text, width, at_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return printable(str(value))


def _width(text: str) -> int:
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
