"""Rate limits: ``"<count>/<unit>"``, kept by a token bucket.

A bucket holds ``count`` tokens and is full at first; a start takes one, and ``count`` tokens flow
back in the course of the unit. Its whole state is one moment, the one at which it is full again: a
row that nobody has to touch while nothing happens.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from flexiq_django.exceptions import InvalidLimitError

_UNITS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hr": 3600,
    "hour": 3600,
}
_COUNT = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_MOST = 1e9
#: Longest text of a limit, as the column that stores it.
LONGEST_TEXT = 50


@dataclass(frozen=True, slots=True)
class RateLimit:
    """``count`` starts in ``seconds``."""

    count: float
    seconds: int

    @property
    def seconds_each(self) -> float:
        """The time in which one token flows back."""
        return self.seconds / self.count

    def tokens(self, full_at: datetime | None, now: datetime) -> float:
        """The tokens in a bucket that is full again at ``full_at`` (``None``: it is full)."""
        return self.count - self._missing_seconds(full_at, now) / self.seconds_each

    def spend(self, full_at: datetime | None, now: datetime, tokens: int) -> datetime:
        """When the bucket is full again after ``tokens`` were taken; fewer than 0 put some back."""
        missing = self._missing_seconds(full_at, now) + tokens * self.seconds_each
        return now + timedelta(seconds=max(0.0, missing))

    def opens_in(self, full_at: datetime | None, now: datetime) -> float:
        """Seconds until there is a token; 0 when there is one."""
        return max(0.0, (1.0 - self.tokens(full_at, now)) * self.seconds_each)

    def _missing_seconds(self, full_at: datetime | None, now: datetime) -> float:
        # An empty bucket is full again after one unit, whatever a former limit has left behind.
        missing = 0.0 if full_at is None else (full_at - now).total_seconds()
        return min(max(0.0, missing), float(self.seconds))


def whole_tokens(tokens: float) -> int:
    """How many starts so many tokens pay for. A microsecond of rounding does not cost one."""
    return max(0, math.floor(tokens + 1e-6))


def parse_rate_limit(option: str, text: object) -> RateLimit:
    """The limit that a text such as ``"100/m"`` means.

    Units are ``s``, ``sec``, ``second``, ``m``, ``min``, ``minute``, ``h``, ``hr`` and ``hour``.
    Raises ``InvalidLimitError``.
    """
    if isinstance(text, str) and len(text) <= LONGEST_TEXT:
        count_text, _, unit = (part.strip() for part in text.partition("/"))
        if _COUNT.fullmatch(count_text) and unit in _UNITS:
            count = float(count_text)
            if 1 <= count <= _MOST:
                return RateLimit(count, _UNITS[unit])
    raise InvalidLimitError(
        f"{option} is {text!r}; allowed is a number from 1 to {_MOST:g}, a slash and a unit"
        f" ({', '.join(_UNITS)}), such as '100/m'"
    )
