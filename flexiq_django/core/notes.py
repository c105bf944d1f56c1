"""Notes: a small dict a caller pins to a job for people to read."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from flexiq_django.exceptions import NotesValidationError

MAX_FIELDS = 15
MAX_KEY_LENGTH = 64
MAX_TEXT_LENGTH = 500
MAX_DEPTH = 3
MAX_BYTES = 4096

#: NUL is refused by PostgreSQL, a lone surrogate by every database.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def encode_notes(notes: dict[str, Any] | None) -> str | None:
    """The stored form of ``notes``: compact JSON, sorted keys, non-ASCII kept. ``None`` stays so.

    Allowed: at most 15 entries; keys of 1 to 64 characters; str (up to 500 characters), int, finite
    float, bool, None, list and dict, nested at most 3 deep; 4096 bytes altogether.
    Raises ``NotesValidationError``.
    """
    if notes is None:
        return None
    if type(notes) is not dict:
        raise NotesValidationError(f"notes are a dict, not {type(notes).__name__}")
    if len(notes) > MAX_FIELDS:
        raise NotesValidationError(f"notes have {len(notes)} entries; at most {MAX_FIELDS} allowed")
    _check_entries(notes, "notes", depth=1)
    try:
        text = json.dumps(
            notes, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except ValueError as error:  # an int with thousands of digits
        raise NotesValidationError(f"notes cannot be written as JSON: {error}") from error
    size = len(text.encode())
    if size > MAX_BYTES:
        raise NotesValidationError(f"notes take {size} bytes; at most {MAX_BYTES} allowed")
    return text


def decode_notes(text: str | None) -> dict[str, Any] | None:
    """The dict stored as ``text``; ``None`` for ``None`` and for text that is no JSON object."""
    if text is None:
        return None
    try:
        notes = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return notes if isinstance(notes, dict) else None


def _check_entries(entries: dict[Any, Any], path: str, *, depth: int) -> None:
    for key, value in entries.items():
        if type(key) is not str:
            raise NotesValidationError(f"{path}: keys are str, not {type(key).__name__}")
        if not 1 <= len(key) <= MAX_KEY_LENGTH:
            raise NotesValidationError(
                f"{path}: a key has {len(key)} characters; allowed are 1 to {MAX_KEY_LENGTH}"
            )
        _check_text(key, f"a key of {path}")
        _check_value(value, f"{path}[{key!r}]", depth=depth)


def _check_value(value: Any, path: str, *, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotesValidationError(f"{path} is nested deeper than {MAX_DEPTH} levels")
    kind = type(value)
    if kind is str:
        if len(value) > MAX_TEXT_LENGTH:
            raise NotesValidationError(
                f"{path} has {len(value)} characters; at most {MAX_TEXT_LENGTH} allowed"
            )
        _check_text(value, path)
    elif kind is dict:
        _check_entries(value, path, depth=depth + 1)
    elif kind is list:
        for index, item in enumerate(value):
            _check_value(item, f"{path}[{index}]", depth=depth + 1)
    elif kind is float:
        if not math.isfinite(value):
            raise NotesValidationError(f"{path} is {value!r}; numbers are finite")
    elif kind not in (int, bool, type(None)):
        raise NotesValidationError(
            f"{path} is a {kind.__qualname__}; allowed are str, int, float, bool, None, list, dict"
        )


def _check_text(text: str, path: str) -> None:
    if _UNSTORABLE.search(text):
        raise NotesValidationError(f"{path} holds a NUL or a lone surrogate, which is not text")
