"""The JSON text in which arguments and results are stored.

The text is pure ASCII, so every database stores it unchanged, NUL and lone surrogates included.
What can be read back is of the same type and value as what was written: None, bool, int, finite
float, str, list, tuple, set, frozenset, dict, bytes, datetime, date, time, timedelta, Decimal and
UUID. Anything else is refused. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from flexiq_django.core.notes import decode_notes, encode_notes
from flexiq_django.core.wire import MAX_DEPTH, TAG, Path, Writer, untag
from flexiq_django.exceptions import PayloadTooLargeError, SerializationError

__all__ = [
    "decode_call",
    "decode_notes",
    "decode_result",
    "encode_call",
    "encode_notes",
    "encode_result",
]

_SCALARS = frozenset({str, int, float, bool, type(None)})
_ONLY_STR = {str}
_TAG_IN_TEXT = f'"{TAG}'
_SURROGATE_IN_TEXT = "\\ud"


def _refuse_constant(word: str) -> NoReturn:
    raise SerializationError(f"{word} is not JSON")


_encode = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode
_decode_plain = json.JSONDecoder(parse_constant=_refuse_constant).decode
_decode_tagged = json.JSONDecoder(parse_constant=_refuse_constant, object_hook=untag).decode


def encode_call(args: Sequence[Any], kwargs: Mapping[str, Any], *, limit_bytes: int) -> str:
    """The stored form of a call's arguments, at most ``limit_bytes`` long.

    ``args`` is a list or tuple. Raises ``SerializationError`` naming the type and the path of a
    value that cannot be stored, as in ``args[2]['a'][0]`` or ``kwargs['user']``, and
    ``PayloadTooLargeError``.
    """
    if not isinstance(args, list | tuple):
        raise SerializationError(f"args is a list or tuple, not {type(args).__name__}")
    if type(kwargs) is not dict and not isinstance(kwargs, Mapping):
        raise SerializationError(f"kwargs is a dict, not {type(kwargs).__name__}")
    call: list[Any] = [list(args), dict(kwargs)]
    text = _encode_plain(call, call, limit_bytes)
    if text is None:
        for name in call[1]:
            if type(name) is not str:
                raise SerializationError(f"kwargs: a name is a {type(name).__name__}, not a str")
        writer = Writer(limit=limit_bytes)
        text = _encode_written(
            lambda: [writer.write(call[0], ("args",)), writer.write(call[1], ("kwargs",))]
        )
    return _within(text, "the arguments take", limit_bytes)


def decode_call(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a stored call. Raises ``SerializationError`` when ``text`` is none."""
    call = _decode(text)
    if type(call) is not list or len(call) != 2:
        raise SerializationError("the stored arguments are not [args, kwargs]")
    args, kwargs = call
    if type(args) is not list or type(kwargs) is not dict:
        raise SerializationError("the stored arguments are not a list and a dict")
    for name in kwargs:
        if type(name) is not str:
            raise SerializationError("the stored kwargs have a name that is not a str")
    return tuple(args), kwargs


def encode_result(value: Any, *, limit_bytes: int) -> str:
    """The stored form of a task's return value, at most ``limit_bytes`` long.

    Raises ``SerializationError`` naming the type and the path of what cannot be stored, as in
    ``result['rows'][0]``, and ``PayloadTooLargeError``.
    """
    kind = type(value)
    text = None
    if kind in _SCALARS:
        text = _encode_plain(value, [], limit_bytes)
    elif kind is list or kind is dict:
        text = _encode_plain(value, [value], limit_bytes)
    if text is None:
        writer = Writer(limit=limit_bytes)
        root: Path = ("result",)
        text = _encode_written(lambda: writer.write(value, root))
    return _within(text, "the result takes", limit_bytes)


def decode_result(text: str) -> Any:
    """The return value that ``text`` stands for. Raises ``SerializationError`` when it is none."""
    return _decode(text)


def _encode_plain(value: Any, containers: list[Any], limit: int) -> str | None:
    """The text of a value that is plain JSON already; ``None`` if that is not certain."""
    if not _is_plain(containers, limit):
        return None
    try:
        text = _encode(value)
        if _TAG_IN_TEXT in text:
            return None
        # Two lone surrogates side by side would be read back as one character.
        if _SURROGATE_IN_TEXT in text and _decode_plain(text) != value:
            return None
    except (ValueError, RecursionError):  # NaN, an int with thousands of digits
        return None
    return text


def _is_plain(containers: list[Any], limit: int) -> bool:
    """Whether the lists and dicts hold exact JSON types only, level by level, not too deep.

    A level of more than ``limit`` containers is not looked at: each takes a byte or more.
    """
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for box in containers:
            items = box
            if type(box) is dict:
                if box and set(map(type, box)) != _ONLY_STR:
                    return False
                items = box.values()
            for item in items:
                kind = type(item)
                if kind in _SCALARS:
                    continue
                if kind is not list and kind is not dict:
                    return False
                below.append(item)
        if not below:
            return True
        if len(below) > limit:
            return False
        containers = below
    return False


def _encode_written(write: Any) -> str:
    try:
        return _encode(write())
    except RecursionError:
        raise SerializationError("the value is nested too deeply for this call stack") from None


def _within(text: str, subject: str, limit: int) -> str:
    if len(text) > limit:
        raise PayloadTooLargeError(
            f"{subject} {len(text)} bytes as JSON; at most {limit} bytes are allowed. "
            "Store large data elsewhere and pass a reference to it"
        )
    return text


def _decode(text: str) -> Any:
    if not isinstance(text, str):
        raise SerializationError(f"the stored value is text, not {type(text).__name__}")
    try:
        return _decode_tagged(text) if _TAG_IN_TEXT in text else _decode_plain(text)
    except SerializationError:
        raise
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"the stored value is not valid JSON: {error}") from error
