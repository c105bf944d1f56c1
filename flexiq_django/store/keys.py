"""Unique keys as the index holds them."""

from __future__ import annotations

import hashlib


def active_key(unique_key: str) -> str:
    """What the unique index holds for a key: its hash, which no collation can fold."""
    return hashlib.sha256(unique_key.encode("utf-8", "surrogatepass")).hexdigest()
