"""Rows as parameters that fit into one statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

#: Longest JSON parameter of one statement, in characters: well below every server's packet limit.
MAX_CHARS = 4_000_000

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """JSON arrays of ``rows``, each short enough for one statement; none for no rows."""
    listed = list(rows)
    whole = _encode(listed) if listed else ""
    if len(whole) <= MAX_CHARS:  # nearly always, and one call of the encoder is much cheaper
        if listed:
            yield whole
        return
    chunk: list[str] = []
    size = 0
    for row in listed:
        text = _encode(row)
        if chunk and size + len(text) > MAX_CHARS:
            yield f"[{','.join(chunk)}]"
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield f"[{','.join(chunk)}]"


def chunks(items: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """The items, so many at a time as one statement takes."""
    return (items[start : start + size] for start in range(0, len(items), size))
