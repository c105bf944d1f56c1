"""Draw dots on a map of the world: an SVG text with nothing to load and nothing to run.

The projection is the plainest there is: a degree is as wide as it is high. Where there are enough
airports, they draw the coasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 1440
MARGIN = 40
TOP = 128
SCALE = (WIDTH - 2 * MARGIN) / 360
BOTTOM = TOP + 180 * SCALE
PANEL = BOTTOM + 62
LINE = 30
#: From this many dots on, they are drawn smaller.
MANY = 5000

#: One colour for each group, on light ground and on dark.
COLOURS = (
    ("#2563eb", "#6ea8fe"),
    ("#0f9d58", "#4ade80"),
    ("#9333ea", "#c58bff"),
    ("#d97706", "#fbb13c"),
    ("#dc2626", "#ff7b72"),
    ("#0891b2", "#3dd6e8"),
    ("#be185d", "#f780b8"),
    ("#64748b", "#a8b6c8"),
    ("#78716c", "#b8b0a8"),
)

STYLE = """
.ground{fill:#ffffff} .sea{fill:#eef3f9} .frame{fill:none;stroke:#c3cfdd}
.grid{fill:none;stroke:#d3deea;stroke-width:1} .main{fill:none;stroke:#a9bacd;stroke-width:1.2}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;fill:#17222f}
.title{font-size:38px;font-weight:700;letter-spacing:-.5px} .sub{font-size:19px;fill:#56657a}
.mark{font-size:12px;fill:#7b8ba0} .below{text-anchor:middle}
.head{font-size:15px;font-weight:600;fill:#56657a}
.name{font-size:17px} .count{font-size:17px;text-anchor:end;font-variant-numeric:tabular-nums}
.track{fill:#e6edf5} .bar{fill:#2563eb}
.dots{fill:none;stroke:currentColor;stroke-linecap:round}
.key{fill:currentColor}
"""

DARK_STYLE = """
.ground{fill:#0e141b} .sea{fill:#141d27} .frame{stroke:#324355} .grid{stroke:#22303e}
.main{stroke:#3a4d62} text{fill:#e6edf5} .sub,.head{fill:#9aabbf} .mark{fill:#74869b}
.track{fill:#1d2833} .bar{fill:#6ea8fe}
"""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Dots of one colour, with their line in the legend."""

    number: int
    name: str
    count: int
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One line of the bar chart."""

    name: str
    count: int


def draw_map(*, title: str, subtitle: str, groups: Sequence[Group], bars: Sequence[Bar]) -> str:
    """The whole picture."""
    rows = max(len(groups), len(bars), 1)
    height = round(PANEL + 28 + rows * LINE + 12)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title><desc id="d">{escape(subtitle)}</desc>',
        f"<style>{STYLE}{_colours(0)}",
        f"@media (prefers-color-scheme:dark){{{DARK_STYLE}{_colours(1)}}}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        _text(MARGIN, 62, "title", title),
        _text(MARGIN, 98, "sub", subtitle),
        *_ground(),
        *_dots(groups),
        *_legend(groups),
        *_bar_chart(bars),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _colours(scheme: int) -> str:
    return "".join(f".c{n}{{color:{pair[scheme]}}}" for n, pair in enumerate(COLOURS))


def _x(lon: float) -> float:
    return MARGIN + (lon + 180) * SCALE


def _y(lat: float) -> float:
    return TOP + (90 - lat) * SCALE


def _text(x: float, y: float, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'


def _ground() -> Iterator[str]:
    """The sea, a line every thirty degrees, and what the lines are called."""
    area = f'x="{MARGIN}" y="{TOP}" width="{360 * SCALE:.0f}" height="{180 * SCALE:.0f}" rx="6"'
    yield f'<rect class="sea" {area}/>'
    meridians = [f"M{_x(lon):.1f} {TOP}V{BOTTOM:.0f}" for lon in range(-150, 180, 30)]
    parallels = [f"M{MARGIN} {_y(lat):.1f}H{WIDTH - MARGIN}" for lat in range(-60, 90, 30)]
    yield f'<path class="grid" d="{"".join(meridians + parallels)}"/>'
    middle = f"M{MARGIN} {_y(0):.1f}H{WIDTH - MARGIN}M{_x(0):.1f} {TOP}V{BOTTOM:.0f}"
    yield f'<path class="main" d="{middle}"/>'
    yield f'<rect class="frame" {area}/>'
    for lon in range(-150, 180, 30):
        side = "" if lon == 0 else "W" if lon < 0 else "E"
        yield _text(_x(lon), BOTTOM + 17, "mark below", f"{abs(lon)}°{side}")
    for lat in range(-60, 90, 30):
        side = "" if lat == 0 else "S" if lat < 0 else "N"
        yield _text(MARGIN + 5, _y(lat) - 5, "mark", f"{abs(lat)}°{side}")


def _dots(groups: Iterable[Group]) -> Iterator[str]:
    """One path for each colour: a line of no length with round ends is a dot."""
    groups = list(groups)
    many = sum(group.count for group in groups) >= MANY
    look = 'stroke-width="1.9" opacity=".9"' if many else 'stroke-width="5" opacity=".75"'
    for group in groups:
        places = dict.fromkeys(f"M{_x(lon):.1f} {_y(lat):.1f}h0" for lat, lon in group.points)
        yield f'<path class="dots c{group.number % len(COLOURS)}" {look} d="{"".join(places)}"/>'


def _legend(groups: Sequence[Group]) -> Iterator[str]:
    yield _text(MARGIN, PANEL, "head", "Part of the world")
    right = WIDTH / 2 - 60
    for line, group in enumerate(sorted(groups, key=lambda each: -each.count), start=1):
        y = PANEL + 6 + line * LINE
        colour = group.number % len(COLOURS)
        yield f'<circle class="key c{colour}" cx="{MARGIN + 8}" cy="{y - 6:.0f}" r="7"/>'
        yield _text(MARGIN + 28, y, "name", group.name)
        yield _text(right, y, "count", f"{group.count:,}")


def _bar_chart(bars: Sequence[Bar]) -> Iterator[str]:
    left, begin, right = WIDTH / 2, WIDTH / 2 + 200, WIDTH - MARGIN
    room = right - begin - 90
    largest = max((bar.count for bar in bars), default=1)
    yield _text(left, PANEL, "head", "Country")
    for line, bar in enumerate(bars, start=1):
        y = PANEL + 6 + line * LINE
        width = max(2.0, room * bar.count / largest)
        name = bar.name if len(bar.name) <= 22 else f"{bar.name[:21]}…"
        yield _text(left, y, "name", name)
        place = f'x="{begin:.0f}" y="{y - 13:.0f}" height="14" rx="3"'
        yield f'<rect class="track" {place} width="{room:.0f}"/>'
        yield f'<rect class="bar" {place} width="{width:.1f}"/>'
        yield _text(right, y, "count", f"{bar.count:,}")
