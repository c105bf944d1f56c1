"""The stored form of an exception: JSON text with its type, message and traceback.

The text is ASCII and bounded, so recording a failure can never fail itself. Errors the system
writes (a timeout, a lost worker) are stored as plain sentences; every reader here takes both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from traceback import TracebackException
from types import TracebackType
from typing import TypeVar

Value = TypeVar("Value")

#: A smaller limit is raised to this: less has no room for a useful text.
MIN_LIMIT_BYTES = 512
SUMMARY_LENGTH = 500

_CUT = " ... [cut]"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
#: What stands between a worker and the task: this package, and what runs a coroutine for it.
_RUNNERS = (__name__.partition(".")[0] + ".", "asgiref.", "asyncio.", "concurrent.futures.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedError:
    """A stored error, taken apart. ``errtype`` is empty for an error of the system."""

    errtype: str
    message: str
    traceback: tuple[str, ...] = ()


def describe_exception(exc: BaseException, *, limit_bytes: int) -> str:
    """The stored form of ``exc``, at most ``limit_bytes`` long (and not below 512).

    ``errtype`` is the full name of the class, without ``builtins``; ``traceback`` is a list of
    lines that begins at the task's own first frame. What is too long is cut and says so.
    Never raises, whatever ``str(exc)``, its class or its causes do.
    """
    limit = max(limit_bytes, MIN_LIMIT_BYTES)
    name, message, lines = _guard(
        lambda: (_type_name(type(exc)), _message(exc, limit), _traceback_lines(exc, limit)),
        otherwise=lambda reason: ("Exception", f"<the exception cannot be read: {reason}>", []),
    )
    return _fit(clean_text(name), clean_text(message), [clean_text(line) for line in lines], limit)


def summarise_error(stored: str | None) -> str | None:
    """One line, as in ``ValueError: bad``, of at most 500 characters; ``None`` for ``None``."""
    if stored is None:
        return None
    error = parse_error(stored)
    text = ": ".join(part for part in (error.errtype, error.message) if part)
    line = " ".join(clean_text(text[: SUMMARY_LENGTH * 20]).split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 3] + "..."


def parse_error(stored: str | None) -> ParsedError:
    """The parts of a stored error.

    A plain sentence, or text that is no stored exception, is all message. ``None`` has empty parts.
    """
    if stored is None:
        return ParsedError(errtype="", message="")
    if stored.startswith("{"):
        try:
            found = json.loads(stored)
            errtype, message, lines = found["errtype"], found["message"], found["traceback"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return ParsedError(errtype="", message=stored)
        if isinstance(errtype, str) and isinstance(message, str) and isinstance(lines, list):
            return ParsedError(
                errtype=errtype, message=message, traceback=tuple(str(line) for line in lines)
            )
    return ParsedError(errtype="", message=stored)


def clean_text(text: str) -> str:
    """``text`` as every database takes it: NUL and lone surrogates replaced by U+FFFD."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def stored_fragment(text: str) -> str:
    """How ``text`` looks inside a stored exception; for searching there."""
    return json.dumps(clean_text(text))[1:-1]


def _guard(act: Callable[[], Value], *, otherwise: Callable[[str], Value]) -> Value:
    """What ``act`` returns. An exception may do anything when it is looked at, even exit."""
    try:
        return act()
    except BaseException as error:
        return otherwise(_plain_name(type(error)))


def _plain_name(kind: type) -> str:
    # Past a metaclass that makes __name__ a property of its own.
    return str(type.__dict__["__name__"].__get__(kind))


def _type_name(kind: type) -> str:
    def full_name() -> str:
        module, name = kind.__module__, kind.__qualname__
        return f"{name}" if module in ("builtins", "__main__") else f"{module}.{name}"

    return _guard(full_name, otherwise=lambda _reason: _plain_name(kind))


def _message(exc: BaseException, limit: int) -> str:
    # str.__str__ because str() may return a subclass, with slicing of its own.
    return _guard(
        lambda: _beginning(str.__str__(str(exc)), limit),
        otherwise=lambda reason: f"<the message cannot be read: str() raised {reason}>",
    )


def _traceback_lines(exc: BaseException, limit: int) -> list[str]:
    def lines() -> list[str]:
        tb = _skip_runner(exc.__traceback__)
        found = TracebackException(type(exc), exc, tb, compact=True)
        chunks = [_beginning(chunk.rstrip("\n"), limit) for chunk in found.format()]
        return "\n".join(chunks).split("\n")

    return _guard(
        lines, otherwise=lambda reason: [f"<the traceback cannot be read: it raised {reason}>"]
    )


def _skip_runner(tb: TracebackType | None) -> TracebackType | None:
    """The traceback from the task's first frame; all of it when there is none."""
    rest = tb
    while rest is not None:
        if not str(rest.tb_frame.f_globals.get("__name__")).startswith(_RUNNERS):
            return rest
        rest = rest.tb_next
    return tb


def _beginning(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + _CUT


# --- fitting into the limit -----------------------------------------------------------------------


def _fit(errtype: str, message: str, lines: list[str], limit: int) -> str:
    text = _dump(errtype, message, lines)
    if len(text) <= limit:
        return text
    errtype, message = _cut(errtype, limit // 4), _cut(message, limit // 3)
    room = limit - len(_dump(errtype, message, []))
    return _dump(errtype, message, _leave_out_middle(lines, room))


def _dump(errtype: str, message: str, lines: list[str]) -> str:
    return json.dumps(
        {"errtype": errtype, "message": message, "traceback": lines}, separators=(",", ":")
    )


def _cost(text: str) -> int:
    return len(json.dumps(text))


def _cut(text: str, size: int) -> str:
    """The longest beginning of ``text`` that takes at most ``size`` bytes as JSON, marked."""
    text = text[:size]
    if len(text) < size and _cost(text) <= size:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _cost(text[:middle] + _CUT) <= size else (low, middle - 1)
    return text[:low] + _CUT


def _leave_out_middle(lines: list[str], room: int) -> list[str]:
    """The first and the last lines that fit: where the call came from, and what went wrong."""
    room -= _cost(f"... {len(lines)} lines left out") + 1
    if room <= 0:
        return []
    lines = [_cut(line, room // 3) for line in lines]
    last, room = _take(lines[::-1], room, upto=room * 2 // 3)
    first, _ = _take(lines[: len(lines) - len(last)], room, upto=room)
    missing = len(lines) - len(first) - len(last)
    return [*first, f"... {missing} lines left out", *last[::-1]] if missing else lines


def _take(lines: list[str], room: int, *, upto: int) -> tuple[list[str], int]:
    taken: list[str] = []
    spent = 0
    for line in lines:
        cost = _cost(line) + 1
        if spent + cost > upto:
            break
        taken.append(line)
        spent += cost
    return taken, room - spent
