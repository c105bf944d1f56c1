"""Whole numbers as they are typed."""

from __future__ import annotations

import argparse
from collections.abc import Callable

#: The largest that fits wherever a count is stored or compared.
MOST = 2**31 - 1


def whole_number(least: int, most: int = MOST) -> Callable[[str], int]:
    """What reads a whole number within bounds, and raises what argparse makes a usage error of."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return value

    return parse
