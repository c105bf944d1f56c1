"""Spans of time as they are typed: ``90``, ``15m``, ``12h``, ``7d``."""

from __future__ import annotations

import argparse
import math
import re

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}

#: What stands for a window that never ends.
FOR_EVER = "forever"


def parse_seconds(text: str) -> float:
    """A number of seconds above 0. Raises what argparse makes a usage error of."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def parse_duration(text: str) -> float:
    """Seconds; infinity for ``forever``. Raises what argparse makes a usage error of."""
    if text.strip().lower() == FOR_EVER:
        return math.inf
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no span of time; allowed are seconds, a number with s, m, h or d as in"
            f" 7d, or {FOR_EVER}"
        )
    return float(found[1]) * _SECONDS[found[2]]


def parse_age(text: str) -> float:
    """Seconds that something is old; below 0 lies in the future. ``forever`` is no age."""
    sign = -1 if text.startswith("-") else 1
    seconds = parse_duration(text.removeprefix("-"))
    if seconds == math.inf:
        raise argparse.ArgumentTypeError("nothing is that old; name an age, as in 7d")
    return sign * seconds
