"""Move the queue's clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from flexiq_django.api import clock
from flexiq_django.api import options as check
from flexiq_django.api.default import queue
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.store import inspect
from flexiq_django.store.scope import Scope
from flexiq_django.testing.blocks import block


@dataclass(slots=True)
class Journey:
    """A move of the clock, which begins when the block does."""

    begin: datetime
    #: Up to when what was due on the way has been run, by the place of the queue.
    reached: dict[Scope, datetime] = field(default_factory=dict)

    def since(self, place: Scope) -> datetime:
        """From when on there is something left to live through in this place."""
        return self.reached.get(place, self.begin)


#: The moves at hand, the innermost last.
journeys: list[Journey] = []


@block
def at(moment: datetime) -> Iterator[datetime]:
    """Inside the block it is ``moment`` for every queue of the process: the clock stands there.

    What is enqueued inside counts from then. :func:`run_pending` inside first lives through the
    time in between, for each queue by itself: delayed jobs, retries, schedules and dead letters
    that are retried by themselves, each at its own time. Only the queue's clock moves:
    ``timezone.now()`` in your code does not. Also a decorator, for ``async def`` too. Raises
    ``InvalidOptionError`` for what is no datetime with a time zone.
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


@block
def travel(seconds: float) -> Iterator[datetime]:
    """:func:`at` the time that is so many seconds from now, which it gives."""
    check.check_span("seconds", seconds)
    with at(read_clock() + timedelta(seconds=seconds)) as moment:
        yield moment


def read_clock() -> datetime:
    """What time it is for the queue."""
    return clock.moved_to() or inspect.read_clock(queue.place)
