"""Spans of time as people say them."""

from __future__ import annotations

_UNITS = (
    (86_400, "d", 3_600, "h"),
    (3_600, "h", 60, "min"),
    (60, "min", 1, "s"),
)


def as_age(seconds: float | None) -> str | None:
    """A span of time in its two largest units, as in ``2 h 5 min``."""
    if seconds is None:
        return None
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    for size, unit, small, smaller in _UNITS:
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"
