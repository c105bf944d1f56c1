"""Move the queue's clock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from flexiq_django.api import clock
from flexiq_django.api import options as check
from flexiq_django.api.default import queue
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.store import inspect


@dataclass(slots=True)
class Journey:
    """A move of the clock. ``since``: up to when what was due on the way has been run."""

    since: datetime


#: The moves at hand, the innermost last.
journeys: list[Journey] = []


@contextlib.contextmanager
def at(moment: datetime) -> Iterator[datetime]:
    """Inside the block it is ``moment`` for every queue of the process: the clock stands there.

    What is enqueued inside counts from then. :func:`run_pending` inside first lives through the
    time in between: delayed jobs, retries and schedules, each at its own time. Only the queue's
    clock moves: ``timezone.now()`` in your code does not. Raises ``InvalidOptionError`` for what is
    no datetime with a time zone.
    """
    chosen = check.check_moment("moment", moment)
    if chosen is None:
        raise InvalidOptionError("moment is None; it must be a datetime")
    before = clock.moved_to()
    journeys.append(Journey(read_clock()))
    clock.move_to(chosen)
    try:
        yield chosen
    finally:
        clock.move_to(before)
        journeys.pop()


@contextlib.contextmanager
def travel(seconds: float) -> Iterator[datetime]:
    """:func:`at` the time that is so many seconds from now, which it gives."""
    check.check_span("seconds", seconds)
    with at(read_clock() + timedelta(seconds=seconds)) as moment:
        yield moment


def read_clock() -> datetime:
    """What time it is for the queue."""
    return clock.moved_to() or inspect.read_clock(queue.place)
