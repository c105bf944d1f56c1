"""The JSON form of dates and times with their zone and fold.

ISO text where that says it all, else ``[text, fold, zone]``. The zone is an IANA key, or a fixed
offset as ``[[days, seconds, microseconds], name]``, or null.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta, timezone, tzinfo
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

Moment = TypeVar("Moment", datetime, time)

_MINUTE = timedelta(minutes=1)


def write_moment(value: datetime | time) -> Any:
    """The JSON form of ``value``. Raises ``ValueError`` for a zone that cannot be stored."""
    if value.fold == 0 and _is_in_iso(value.tzinfo):
        return value.isoformat()
    return [value.replace(tzinfo=None).isoformat(), value.fold, _write_zone(value.tzinfo)]


def read_moment(kind: type[Moment], content: Any) -> Moment:
    """The datetime or time that ``content`` stands for.

    Raises one of ``ValueError``, ``TypeError``, ``LookupError`` and ``OSError`` for anything else.
    """
    if isinstance(content, str):
        return kind.fromisoformat(content)
    text, fold, zone = content
    return kind.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def write_delta(value: timedelta) -> list[int]:
    """The arguments of ``timedelta`` that make ``value`` again."""
    return [value.days, value.seconds, value.microseconds]


def _is_in_iso(zone: tzinfo | None) -> bool:
    if zone is None:
        return True
    if type(zone) is not timezone:
        return False
    offset = zone.utcoffset(None)
    # Of an offset under a second, fromisoformat() makes UTC.
    return not offset % _MINUTE and zone.tzname(None) == timezone(offset).tzname(None)


def _write_zone(zone: tzinfo | None) -> Any:
    if zone is None:
        return None
    if type(zone) is ZoneInfo and zone.key:
        return zone.key
    if type(zone) is timezone:
        return [write_delta(zone.utcoffset(None)), zone.tzname(None)]
    kind = type(zone)
    raise ValueError(
        f"the time zone is a {kind.__module__}.{kind.__qualname__}; "
        "use zoneinfo.ZoneInfo or datetime.timezone"
    )


def _read_zone(zone: Any) -> tzinfo | None:
    if zone is None:
        return None
    if isinstance(zone, str):
        return ZoneInfo(zone)
    offset, name = zone
    plain = timezone(timedelta(*offset))
    return plain if name == plain.tzname(None) else timezone(timedelta(*offset), name)
