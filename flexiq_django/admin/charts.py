"""Charts as SVG: bars over time, without script and without style of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

#: The drawing, in units that the page stretches to its width.
_WIDTH, _HEIGHT = 720, 150
#: Room above the bars for the number at the top, and left of them for those at the side.
_TOP, _LEFT = 12, 52


class Bar(NamedTuple):
    """One bar, with a second one in front of it; ``told`` is shown when the pointer rests on it."""

    behind: float
    before: float
    told: str


def bars(values: Sequence[Bar], *, told: str, scale: Callable[[float], str]) -> SafeString:
    """A bar for each value, from left to right, under a scale that begins at 0.

    ``told`` is read out in the place of the drawing; ``scale`` writes a number of the scale.
    """
    top = round_up(max((value.behind for value in values), default=0))
    step = (_WIDTH - _LEFT) / max(1, len(values))

    def height(number: float) -> float:
        return round((_HEIGHT - _TOP) * min(number, top) / top, 1)

    lines = format_html_join(
        "",
        '<line class="flexiq-line" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text class="flexiq-scale" x="{}" y="{}">{}</text>',
        (
            (_LEFT, _WIDTH, y, y, _LEFT - 6, y + 4, scale(number))
            for number in (0, top / 2, top)
            for y in [round(_HEIGHT - height(number), 1)]
        ),
    )
    drawn = format_html_join(
        "",
        "<g><title>{}</title>"
        '<rect class="flexiq-space" x="{}" y="{}" width="{}" height="{}"/>'
        '<rect class="flexiq-behind" x="{}" y="{}" width="{}" height="{}"/>'
        '<rect class="flexiq-before" x="{}" y="{}" width="{}" height="{}"/></g>',
        (
            (
                value.told,
                *(round(_LEFT + at * step, 1), _TOP, round(step, 1), _HEIGHT - _TOP),
                *_box(at, step, height(value.behind)),
                *_box(at, step, height(value.before)),
            )
            for at, value in enumerate(values)
        ),
    )
    return format_html(
        '<svg class="flexiq-chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>',
        _WIDTH,
        _HEIGHT + 6,
        told,
        lines,
        drawn,
    )


def round_up(number: float) -> float:
    """The next number that is 1, 2 or 5 times a power of ten; 1 for nothing."""
    if number <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(number))
    return next(each * power for each in (1, 2, 5, 10) if number <= each * power * (1 + 1e-9))


def _box(at: int, step: float, height: float) -> tuple[float, float, float, float]:
    gap = step * 0.15
    return (
        round(_LEFT + at * step + gap, 1),
        round(_HEIGHT - height, 1),
        round(step - 2 * gap, 1),
        height,
    )
