"""Which part of the world an airport is in, and what its country is called."""

from __future__ import annotations

import zoneinfo
from functools import cache
from importlib import resources
from pathlib import Path

#: In the order of the legend; each has its colour on the map.
REGIONS = (
    "North America",
    "South America",
    "Europe",
    "Africa",
    "Asia",
    "Oceania",
    "Islands of the Atlantic and the Indian Ocean",
    "Antarctica",
    "Unknown",
)

_SOUTH_AMERICA = frozenset(
    ["AR", "BO", "BR", "CL", "CO", "EC", "FK", "GF", "GS", "GY", "PE", "PY", "SR", "UY", "VE"]
)

_BY_ZONE = {
    "Africa": "Africa",
    "America": "North America",
    "Antarctica": "Antarctica",
    "Arctic": "Europe",
    "Asia": "Asia",
    "Atlantic": "Islands of the Atlantic and the Indian Ocean",
    "Australia": "Oceania",
    "Europe": "Europe",
    "Indian": "Islands of the Atlantic and the Indian Ocean",
    "Pacific": "Oceania",
}


def region_of(zone: str, country: str) -> str:
    """The part of the world, from the time zone and the country's two letters."""
    if country in _SOUTH_AMERICA:
        return "South America"
    if country == "AQ":
        return "Antarctica"
    return _BY_ZONE.get(zone.partition("/")[0], "Unknown")


def country_name(code: str) -> str:
    """The English name of a country, or its code where the machine has no list of names."""
    return _country_names().get(code.upper(), code) or "Unknown"


@cache
def _country_names() -> dict[str, str]:
    lines = _country_table().splitlines()
    pairs = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {"XK": "Kosovo", **{pair[0]: pair[1] for pair in pairs if len(pair) == 2}}


def _country_table() -> str:
    """The list that comes with the time zones of the system, or of the package tzdata."""
    for folder in zoneinfo.TZPATH:
        path = Path(folder, "iso3166.tab")
        if path.is_file():
            return path.read_text(encoding="utf-8")
    try:
        return resources.files("tzdata.zoneinfo").joinpath("iso3166.tab").read_text("utf-8")
    except (ImportError, OSError):
        return ""
