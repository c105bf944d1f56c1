"""Where a verb works: which database, which namespace, whose clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """The first argument of every store verb.

    ``using`` is the database alias. ``now`` is ``None`` in production, where the database's own
    clock judges every due time, lease and window; tests pass an aware datetime.
    """

    using: str = "default"
    namespace: str = "default"
    now: datetime | None = None
