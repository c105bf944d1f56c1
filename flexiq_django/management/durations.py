"""Spans of time as they are typed: ``90``, ``15m``, ``12h``, ``7d``."""

from __future__ import annotations

import argparse
import math
import re

from flexiq_django.core.retention import LONGEST_SECONDS

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}

#: What stands for a window that never ends.
FOR_EVER = "forever"


def parse_seconds(text: str) -> float:
    """A number of seconds above 0. Raises what argparse makes a usage error of."""
    seconds = _plain_seconds(text)
    if not 0 < seconds <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds above 0 and up to {LONGEST_SECONDS}"
        )
    return seconds


def parse_patience(text: str) -> float:
    """A number of seconds, 0 or more. Raises what argparse makes a usage error of."""
    seconds = _plain_seconds(text)
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds from 0 to {LONGEST_SECONDS}"
        )
    return seconds


def parse_duration(text: str) -> float:
    """Seconds; infinity for ``forever``. Raises what argparse makes a usage error of."""
    if text.strip().lower() == FOR_EVER:
        return math.inf
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip().lower())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else math.inf
    if seconds > LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no span of time; allowed are seconds or a number with s, m, h or d as in"
            f" 7d, up to 100 years of 365 days, or {FOR_EVER}"
        )
    return seconds


def parse_age(text: str) -> float:
    """Seconds that something is old; below 0 lies in the future. ``forever`` is no age."""
    sign = -1 if text.startswith("-") else 1
    seconds = parse_duration(text.removeprefix("-"))
    if seconds == math.inf:
        raise argparse.ArgumentTypeError("nothing is that old; name an age, as in 7d")
    return sign * seconds


def _plain_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
