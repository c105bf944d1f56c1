"""How the processes of one supervisor are: shared memory that each writes and the parent reads.

One place for each process holds when its claim loop last turned, in monotonic seconds, which are
the same for all processes of a machine, and whether it is ready. A process that is stopped writes
no more, so its time stands still as that of a loop that hangs.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterable, MutableSequence
from typing import TYPE_CHECKING

from flexiq_django.worker.verdict import Verdict, judge_turn

if TYPE_CHECKING:
    from flexiq_django.worker.pulse import Pulse

#: Seconds between two reports of a process.
REPORT_SECONDS = 0.5

#: The shared part, handed to the processes: (turned at, is ready) of each place.
Places = MutableSequence[float]


class Board:
    """The parent's side. ``at_work`` names the places whose process runs."""

    def __init__(
        self,
        processes: int,
        *,
        at_work: Callable[[], Iterable[int]],
        is_stopping: Callable[[], bool],
        limit: float,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.places: Places = context.RawArray("d", 2 * processes)
        self._processes = processes
        self._at_work = at_work
        self._is_stopping = is_stopping
        self._limit = limit

    def clear(self, slot: int) -> None:
        """A new process begins in this place; it counts as having turned just now."""
        self.places[2 * slot : 2 * slot + 2] = [time.monotonic(), 0.0]

    def live(self) -> Verdict:
        """Not live when the claim loop of any process hangs, or a process is stopped.

        One that has died is no reason: the supervisor replaces it.
        """
        now = time.monotonic()
        slots = sorted(self._at_work())
        ages = {slot: max(0.0, now - self.places[2 * slot]) for slot in slots}
        if self._is_stopping():  # how long that may take is limited in another way
            ages = dict.fromkeys(slots, 0.0)
        reasons = [
            f"process {slot}: {reason}"
            for slot, age in ages.items()
            for reason in judge_turn(age, self._limit).reasons
        ]
        return Verdict(reasons, max(ages.values(), default=0.0), len(slots))

    def ready(self) -> Verdict:
        """Ready when every process is."""
        reasons, turn_age, count = self.live()
        found = list(reasons)
        if self._is_stopping():
            found.append("draining")
        at_work = set(self._at_work())
        found += [
            f"process {slot} is not ready"
            for slot in range(self._processes)
            if slot not in at_work or not self.places[2 * slot + 1]
        ]
        return Verdict(found, turn_age, count)


def report(places: Places, slot: int, pulse: Pulse) -> None:
    """The child's side: from now on, keep its place up to date."""

    def run() -> None:
        nothing = threading.Event()
        while True:
            places[2 * slot] = time.monotonic() - pulse.turn_age
            places[2 * slot + 1] = float(pulse.is_ready)
            nothing.wait(REPORT_SECONDS)

    threading.Thread(target=run, name="flexiq-report", daemon=True).start()
