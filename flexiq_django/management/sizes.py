"""Amounts of memory as they are typed: ``512``, ``512M``, ``1.5G``."""

from __future__ import annotations

import argparse
import re

_BYTES = {"k": 1 << 10, "": 1 << 20, "m": 1 << 20, "g": 1 << 30}
#: More than any machine has, in bytes.
_MOST = 1 << 50


def parse_size(text: str) -> int:
    """Bytes; a plain number is MiB. Raises what argparse makes a usage error of."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    size = float(found[1]) * _BYTES[found[2]] if found else 0
    if not 0.5 < size <= _MOST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size; allowed are numbers above 0 of MiB, or with K, M or G as in"
            f" 512M, up to {_MOST // _BYTES['g']}G"
        )
    return round(size)
