"""The tagged JSON form of values that JSON has no form for.

A tagged value is an object with one key, ``"$fq:<type>"``. A dict of the user that JSON cannot hold
(a key that is no str) or that could be mistaken for a tagged value is written as ``"$fq:map"``, a
list of pairs, so untagged objects are always plain data.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import re
import reprlib
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from json import JSONEncoder
from typing import Any
from uuid import UUID

from flexiq_django.core.moments import read_moment, write_delta, write_moment
from flexiq_django.exceptions import PayloadTooLargeError, SerializationError

TAG = "$fq:"
#: Containers inside containers, the outermost included.
MAX_DEPTH = 100

#: Python prints and parses decimal integers up to a limit, which is never below 640 digits.
_DECIMAL_INT = 10**640
#: Two halves that JSON would read back as one character.
_SURROGATE_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_sort_key = JSONEncoder(separators=(",", ":")).encode

Path = tuple[object, ...]


class _Place(str):
    """A step of a path that is shown as it is, not as an index."""

    __slots__ = ()


class Writer:
    """Turns one value into plain JSON values; made afresh for each payload.

    ``limit`` is the size in bytes at which writing stops: every value takes a byte or more, so a
    small structure that refers to itself many times over cannot run away.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._open: set[int] = set()

    def write(self, value: Any, path: Path) -> Any:
        """The plain form of ``value``. ``path`` starts with the name of the root.

        Raises ``SerializationError`` with the type and the path of what cannot be written, and
        ``PayloadTooLargeError``.
        """
        self._count += 1
        if self._count > self._limit:
            raise PayloadTooLargeError(
                f"{path[0]} takes more than {self._count} bytes as JSON; "
                f"at most {self._limit} bytes are allowed"
            )
        kind = _known_type(type(value))
        if container := _CONTAINERS.get(kind):
            return self._nest(container, value, path)
        if leaf := _LEAVES.get(kind):
            try:
                return leaf(value)
            except ValueError as error:
                raise SerializationError(f"{_show(path)}: {error}") from None
        raise SerializationError(f"{_show(path)}: {_refusal(value)}")

    def _nest(self, container: _Container, value: Any, path: Path) -> Any:
        if id(value) in self._open:
            raise SerializationError(f"{_show(path)}: the value contains itself")
        if len(path) > MAX_DEPTH:
            raise SerializationError(
                f"{_show(path)}: nested deeper than {MAX_DEPTH} levels; pass a flatter structure"
            )
        self._open.add(id(value))
        try:
            return container(self, value, path)
        finally:
            self._open.discard(id(value))

    def _list(self, value: Iterable[Any], path: Path) -> list[Any]:
        return [self.write(item, (*path, index)) for index, item in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], path: Path) -> dict[str, Any]:
        return {TAG + "tuple": self._list(value, path)}

    def _set(self, value: set[Any] | frozenset[Any], path: Path) -> dict[str, Any]:
        items = [self.write(item, (*path, _Place("{element}"))) for item in value]
        # Sets have no order; a sorted one makes equal payloads equal texts.
        return {TAG + type(value).__name__: sorted(items, key=_sort_key)}

    def _dict(self, value: dict[Any, Any], path: Path) -> dict[str, Any]:
        if all(map(_is_plain_key, value)):
            return {key: self.write(item, (*path, key)) for key, item in value.items()}
        pairs = [
            [self.write(key, (*path, _Place("{key}"))), self.write(item, (*path, key))]
            for key, item in value.items()
        ]
        return {TAG + "map": pairs}


_Container = Callable[[Writer, Any, Path], Any]
_CONTAINERS: dict[type, _Container] = {
    list: Writer._list,
    tuple: Writer._tuple,
    set: Writer._set,
    frozenset: Writer._set,
    dict: Writer._dict,
}


def _known_type(kind: type) -> type:
    if kind.__module__ == "freezegun.api":  # stands in for datetime or date in a project's tests
        return next((base for base in kind.__mro__ if base.__module__ == "datetime"), kind)
    return kind


def _is_plain_key(key: Any) -> bool:
    return type(key) is str and not key.startswith(TAG) and _write_str(key) is key


def _write_str(value: str) -> Any:
    if value.isascii() or not _SURROGATE_PAIR.search(value):
        return value
    return {TAG + "str": _SURROGATE_PAIR.split(value)}


def _write_int(value: int) -> Any:
    return value if -_DECIMAL_INT < value < _DECIMAL_INT else {TAG + "int": hex(value)}


def _write_float(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value!r} has no JSON form; pass None or a finite number")
    return value


def _write_decimal(value: Decimal) -> dict[str, str]:
    if not value.is_finite():
        raise ValueError(f"{value!r} is not a finite number; pass None or a finite number")
    return {TAG + "decimal": str(value)}


_LEAVES: dict[type, Callable[[Any], Any]] = {
    str: _write_str,
    int: _write_int,
    float: _write_float,
    bool: bool,
    type(None): lambda value: value,
    bytes: lambda value: {TAG + "bytes": base64.b64encode(value).decode("ascii")},
    date: lambda value: {TAG + "date": date.isoformat(value)},
    datetime: lambda value: {TAG + "datetime": write_moment(value)},
    time: lambda value: {TAG + "time": write_moment(value)},
    timedelta: lambda value: {TAG + "timedelta": write_delta(value)},
    Decimal: _write_decimal,
    UUID: lambda value: {TAG + "uuid": str(value)},
}


def _show(path: Path) -> str:
    return "".join((str(path[0]), *map(_show_step, path[1:])))


def _show_step(step: object) -> str:
    if isinstance(step, _Place):
        return step
    try:
        return f"[{reprlib.repr(step)}]"
    except ValueError:  # Python does not print an int of thousands of digits
        return f"[a large {type(step).__name__}]"


def _refusal(value: Any) -> str:
    kind = type(value)
    name = kind.__qualname__
    if kind.__module__ != "builtins":
        name = f"{kind.__module__}.{name}"
    return f"a value of type {name} cannot be stored; {_advice(value, kind)}"


def _advice(value: Any, kind: type) -> str:
    if kind.__name__ == "__proxy__":
        return "it is a lazy string: call str() on it"
    if hasattr(kind, "_meta") and hasattr(kind, "pk"):
        return "it is a model instance: pass its pk and load it in the task"
    if hasattr(kind, "query") and hasattr(kind, "model"):
        return "it is a queryset: pass a list of pks"
    if issubclass(kind, Enum):
        return "it is an enum member: pass its .value"
    if issubclass(kind, bytearray | memoryview):
        return "pass bytes"
    for base in kind.__mro__:
        if base in _LEAVES or base in _CONTAINERS:
            return f"it is a subclass of {base.__name__}: pass a plain {base.__name__}"
    if dataclasses.is_dataclass(value):
        return "it is a dataclass: pass dataclasses.asdict() of it"
    return "pass JSON values, or an id by which the task can find it"


# --- reading --------------------------------------------------------------------------------------


def untag(found: dict[str, Any]) -> Any:
    """The value a JSON object stands for: itself, or what its tag says. Called inside out.

    Raises ``SerializationError`` for an unknown tag or content that does not fit it.
    """
    if len(found) != 1:
        return found
    key, content = next(iter(found.items()))
    if not key.startswith(TAG):
        return found
    reader = _READERS.get(key)
    if reader is None:
        raise SerializationError(f"unknown tag {key!r}: written by a newer flexiq_django?")
    try:
        return reader(content)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise SerializationError(f"the content of {key!r} cannot be read: {error}") from error


def _items(content: Any) -> list[Any]:
    if type(content) is not list:
        raise TypeError(f"a list is needed, not {type(content).__name__}")
    return content


_READERS: dict[str, Callable[[Any], Any]] = {
    TAG + "str": lambda content: "".join(_items(content)),
    TAG + "int": lambda content: int(content, 16),
    TAG + "bytes": lambda content: base64.b64decode(content, validate=True),
    TAG + "date": lambda content: date.fromisoformat(content),
    TAG + "datetime": lambda content: read_moment(datetime, content),
    TAG + "time": lambda content: read_moment(time, content),
    TAG + "timedelta": lambda content: timedelta(*_items(content)),
    TAG + "decimal": lambda content: Decimal(content),
    TAG + "uuid": lambda content: UUID(content),
    TAG + "tuple": lambda content: tuple(_items(content)),
    TAG + "set": lambda content: set(_items(content)),
    TAG + "frozenset": lambda content: frozenset(_items(content)),
    TAG + "map": lambda content: dict(map(_items, _items(content))),
}
