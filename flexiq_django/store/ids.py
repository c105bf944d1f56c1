"""Ids that sort by creation time: UUID version 7 (RFC 9562), monotonic within a process.

Rows of one bulk insert share their due time, so the id is what keeps them first in, first out;
plain random bits would shuffle them. Python has ``uuid.uuid7`` from 3.14 on; this serves 3.11 to
3.14 alike.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from datetime import UTC, datetime
from uuid import UUID

_VERSION_AND_VARIANT = (0x7 << 76) | (0b10 << 62)
_COUNTER_LIMIT = 1 << 12
_STEP_BITS = 62

_lock = threading.Lock()
_last_ms = 0
_counter = 0


def new_id() -> UUID:
    """An id greater than every id this process made before."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[UUID]:
    """``count`` ids in ascending order, all greater than every earlier one of this process."""
    random_bits = secrets.randbits
    return [
        UUID(int=(stamp << 80) | _VERSION_AND_VARIANT | (counter << 64) | random_bits(_STEP_BITS))
        for stamp, counter in _reserve(count)
    ]


def new_token() -> int:
    """A number nobody can guess that fits a signed 64-bit column."""
    return secrets.randbits(63)


def minted_at(key: UUID) -> datetime | None:
    """When an id of ours was made, by the clock of the process; ``None`` for one of another kind.

    To the millisecond. Of a job: when it was stored, near enough.
    """
    if key.version != 7:
        return None
    return datetime.fromtimestamp((key.int >> 80) / 1000, UTC)


def _reserve(count: int) -> list[tuple[int, int]]:
    """Take ``count`` successive (millisecond, counter) pairs."""
    global _last_ms, _counter
    pairs = []
    with _lock:
        now = time.time_ns() // 1_000_000
        if now > _last_ms:
            _last_ms, _counter = now, 0
        for _ in range(count):
            pairs.append((_last_ms, _counter))
            _counter += 1
            if _counter == _COUNTER_LIMIT:  # run ahead of the clock rather than repeat or go back
                _last_ms, _counter = _last_ms + 1, 0
    return pairs


def _forget_after_fork() -> None:
    # A child must not hold a lock that a thread of its parent took.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
