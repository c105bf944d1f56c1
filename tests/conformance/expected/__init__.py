"""What the facts of the scenarios are; where the two packages differ on purpose, and why."""

from typing import Any

from . import (
    across,
    by_hand,
    calls,
    cascades,
    dead_letters,
    dispatch,
    edges,
    handles,
    jobs,
    keeping,
    limits,
    queues,
    reading,
    schedules,
    searching,
    sweeping,
    timing,
)
from .differing import ANY, Differs

EXPECTED: dict[str, dict[str, Any]] = {
    **jobs.FACTS,
    **reading.FACTS,
    **dead_letters.FACTS,
    **queues.FACTS,
    **keeping.FACTS,
    **timing.FACTS,
    **limits.FACTS,
    **cascades.FACTS,
    **across.FACTS,
    **sweeping.FACTS,
    **schedules.FACTS,
    **edges.FACTS,
    **handles.FACTS,
    **searching.FACTS,
    **calls.FACTS,
    **dispatch.FACTS,
    **by_hand.FACTS,
}

__all__ = ["ANY", "EXPECTED", "Differs"]
