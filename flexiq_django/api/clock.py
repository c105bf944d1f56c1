"""What time it is for the queue: the database's own clock says so, unless a test has moved it."""

from __future__ import annotations

from datetime import datetime

_moved: datetime | None = None


def moved_to() -> datetime | None:
    """The time a test has chosen (``flexiq_django.testing``); ``None``: ask the database."""
    return _moved


def move_to(moment: datetime | None) -> None:
    """From now on, and in every thread, it is this moment; ``None`` gives the clock back."""
    global _moved
    _moved = moment
