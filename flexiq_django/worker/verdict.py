"""What a probe is told. Plain Python: the parent of worker processes knows no models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Verdict(NamedTuple):
    """The answer to a probe: what is wrong, if anything, and how long ago the loop turned.

    Of several processes ``turn_age`` is the largest, and ``processes`` how many are running.
    """

    reasons: Sequence[str]
    turn_age: float
    processes: int = 1


class Judge(Protocol):
    """Whoever can say how a worker is."""

    def live(self) -> Verdict:
        """Whether it should be left running: what is wrong here, a restart mends."""

    def ready(self) -> Verdict:
        """Whether it takes new jobs."""


def judge_turn(turn_age: float, limit: float) -> Verdict:
    """What the age of the last turn says."""
    hangs = turn_age > limit
    reasons = [f"the claim loop has not turned for {turn_age:.0f} s"] if hangs else []
    return Verdict(reasons, turn_age)
