"""Arguments and return values as the framework defines them: plain JSON."""

from __future__ import annotations

from typing import Any

from flexiq_django.backend.framework import normalize_json


def to_json(value: Any) -> Any:
    """The value in plain JSON types: tuples become lists, bytes become text.

    Subclasses of str, int and float become what they are subclasses of. Raises ``TypeError`` for
    what is no JSON, ``ValueError`` for bytes that are no UTF-8.
    """
    return _plain(normalize_json(value))


def _plain(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    # Past whatever the subclass makes of these: an enum member prints its name.
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)
