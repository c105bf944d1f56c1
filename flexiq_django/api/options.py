"""Check what a caller asks for, before anything is written."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from flexiq_django.core.lanes import SEPARATOR
from flexiq_django.exceptions import (
    DependencyError,
    InvalidLimitError,
    InvalidOptionError,
    OptionOverflowError,
    OptionTypeError,
)

_LONGEST_PART = 1_000
_LONGEST_MS = 100 * 365 * 86_400_000  # a hundred years
#: Years that every database stores, in whichever zone its session is.
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = (datetime(_LAST_YEAR, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def check_name(option: str, value: Any, *, longest: int) -> str:
    """A queue, task, namespace or similar name: the same rule on every database.

    Blanks at the ends are refused because MariaDB cannot tell them apart in an index.
    """
    if not isinstance(value, str):
        raise OptionTypeError(f"{option} is {value!r}; it must be a text")
    if not value or value != value.strip() or len(value) > longest or not value.isprintable():
        raise InvalidOptionError(
            f"{option} is {value!r}; allowed are 1 to {longest} printable characters without blanks"
            " at the ends"
        )
    return value


def check_text(option: str, value: Any, *, longest: int | None = None) -> str | None:
    """An optional text that every database can store."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise OptionTypeError(f"{option} is a {type(value).__name__}; it must be a text or None")
    if "\x00" in value or SEPARATOR in value:
        raise InvalidOptionError(f"{option} holds a NUL or unit separator character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidOptionError(f"{option} holds half of a surrogate pair") from None
    if longest is not None and not 0 < len(value) <= longest:
        raise InvalidOptionError(
            f"{option} has {len(value)} characters; allowed are 1 to {longest}"
        )
    return value


def check_whole(option: str, value: object, *, least: int, most: int) -> int:
    """A whole number within bounds; ``True`` and ``False`` are none."""
    allowed = f"allowed is a whole number from {least} to {most}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise OptionTypeError(f"{option} is {value!r}; {allowed}")
    if not least <= value <= most:
        raise InvalidOptionError(f"{option} is {value!r}; {allowed}")
    return value


def check_flag(option: str, value: Any) -> bool | None:
    """Yes or no; ``None`` stays ``None``."""
    if value is not None and not isinstance(value, bool):
        raise OptionTypeError(f"{option} is {value!r}; it must be True, False or None")
    return value


def check_priority(option: str, value: Any) -> int | None:
    """A priority whose negative is a whole number of 32 bits too; ``None`` stays ``None``."""
    if value is None:
        return None
    most = 2**31 - 1
    if isinstance(value, int) and abs(value) > most:
        raise OptionOverflowError(f"{option} is {value}; allowed is -{most} to {most}")
    return check_whole(option, value, least=-most, most=most)


def check_concurrency(option: str, value: object) -> int:
    """How many jobs may run at once. 0 is refused: pausing is the way to stop a queue."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 2**31 - 1:
        raise InvalidLimitError(
            f"{option} is {value!r}; allowed is a whole number from 1 to {2**31 - 1}"
            " (to stop a queue, pause it)"
        )
    return value


def check_seconds(option: str, value: Any, *, above_zero: bool = False) -> int | None:
    """A number of seconds as whole milliseconds; ``None`` stays ``None``."""
    if value is None:
        return None
    bound = "above 0" if above_zero else "0 or more"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf or (above_zero and value == 0):
        refusal = InvalidOptionError if number else OptionTypeError
        raise refusal(f"{option} is {value!r}; allowed is a number of seconds, {bound}")
    if value * 1000 > _LONGEST_MS:
        raise InvalidOptionError(f"{option} is too long; the longest is 100 years")
    milliseconds: int = math.ceil(value * 1000)
    return milliseconds


def check_number(option: str, value: object) -> float:
    """A number of seconds of either sign; NaN is none.

    What is more than a trillion comes back as that: it is for ever, and no float may overflow.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise OptionTypeError(f"{option} is {value!r}; it must be a number of seconds")
    if value != value:
        raise InvalidOptionError(f"{option} is NaN; it must be a number of seconds")
    return float(max(-1e12, min(1e12, value)))


def check_moment(option: str, value: Any) -> datetime | None:
    """A point in time. Must be aware under ``USE_TZ``; else naive means the project's zone."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise OptionTypeError(f"{option} is {value!r}; it must be a datetime")
    if timezone.is_naive(value) and settings.USE_TZ:
        raise InvalidOptionError(f"{option} is {value!r}; it must have a time zone")
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise InvalidOptionError(
            f"{option} is {value!r}; allowed are the years {_FIRST_YEAR} to {_LAST_YEAR}"
        )
    if not timezone.is_naive(value):
        return value
    aware: datetime = timezone.make_aware(value, timezone.get_default_timezone())
    return aware


def check_instant(option: str, value: Any, *, is_last: bool = False) -> datetime | None:
    """A point in time given as Unix milliseconds or as a datetime; ``None`` stays ``None``.

    A whole number of milliseconds stands for all of that millisecond, as times are reported in
    whole ones: with ``is_last`` the end of it is meant. What is beyond the years that can be stored
    comes back as their bound.
    """
    if value is None or isinstance(value, datetime):
        return check_moment(option, value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or value != value:
        refusal = InvalidOptionError if number else OptionTypeError
        raise refusal(
            f"{option} is {value!r}; allowed are Unix milliseconds or a datetime with a time zone"
        )
    bounded = max(0, min(_LAST_MS, value))
    rest = 999 if is_last and bounded == int(bounded) else 0
    return _EPOCH + timedelta(microseconds=round(bounded * 1000) + rest)


def check_span(option: str, value: Any, *, above_zero: bool = False) -> int:
    """A number of seconds, which must be given, as whole milliseconds."""
    milliseconds = check_seconds(option, value, above_zero=above_zero)
    if milliseconds is None:
        raise OptionTypeError(f"{option} is None; it must be a number of seconds")
    return milliseconds


def check_pace(option: str, value: Any) -> float:
    """Seconds between two looks: above 0."""
    check_span(option, value, above_zero=True)
    return float(value)


def check_parents(depends_on: Any) -> tuple[UUID, ...]:
    """The ids of ``depends_on``: one job, its id, or several of either; repeats count once."""
    if depends_on is None:
        return ()
    if isinstance(depends_on, str | UUID) or hasattr(depends_on, "id"):
        depends_on = [depends_on]
    if not isinstance(depends_on, Iterable):
        raise InvalidOptionError(
            f"depends_on is {depends_on!r}; it must be a job, a job id, or a list of them"
        )
    return tuple(dict.fromkeys(_parent(each) for each in depends_on))


def _parent(value: Any) -> UUID:
    found = parse_id(getattr(value, "id", value))
    if found is None:
        raise DependencyError(f"depends_on: there is no job {value!r}")
    return found


def parse_id(value: Any) -> UUID | None:
    """A job id, or ``None`` where the text cannot be one (so no job has it)."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        return None


def check_part(option: str, value: Any) -> str | None:
    """A text to look for in a column."""
    if check_text(option, value) is not None and len(value) > _LONGEST_PART:
        raise InvalidOptionError(
            f"{option} has {len(value)} characters; allowed are up to {_LONGEST_PART}"
        )
    return value  # type: ignore[no-any-return]


def check_page(limit: int, offset: int = 0) -> None:
    """``limit`` and ``offset`` of a listing must not be negative."""
    check_whole("limit", limit, least=0, most=2**31 - 1)
    check_whole("offset", offset, least=0, most=2**62)


def check_lengths(expected: int, lists: dict[str, Any]) -> None:
    """Every list of a bulk call must be as long as ``args_list``."""
    for name, values in lists.items():
        if len(values) != expected:
            raise InvalidOptionError(
                f"the list of {name} has {len(values)} entries; it must have {expected}"
            )


def is_coroutine(function: Any) -> bool:
    """Whether calling the function gives a coroutine."""
    return inspect.iscoroutinefunction(function)
