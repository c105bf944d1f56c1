"""Run the chores, each when it is due, on a thread and a connection of their own.

A chore says how long it may rest. So a busy worker does them on time, and an idle one hardly ever
asks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flexiq_django.scheduler.leader import Leader

logger = logging.getLogger(__name__)

#: Seconds until a chore that failed is tried again.
_AFTER_ERROR = 5.0


class Interrupted(Exception):  # noqa: N818 - control flow
    """The process is stopping: what a chore waits for is given up."""


class Blocked(Exception):  # noqa: N818 - control flow
    """Other transactions hold what a chore needs, and it has waited for them long enough."""


@dataclass(kw_only=True, slots=True)
class Chore:
    """A thing to do now and then. ``run`` returns the seconds it may rest.

    ``by_leader`` chores run in one process of the namespace, the others in every worker. A chore
    that ``is_nudged`` also runs when new work has been seen.
    """

    name: str
    run: Callable[[], float]
    by_leader: bool = True
    is_nudged: bool = False
    due: float = 0.0
    is_blocked: bool = False

    def run_within(self, seconds: float) -> None:
        """Run again no later than that."""
        self.due = min(self.due, time.monotonic() + seconds)


class ChoreLoop:
    """The thread that runs the chores until it is told to stop. ``on_end`` is its last act."""

    def __init__(
        self, leader: Leader, chores: Sequence[Chore], *, on_end: Callable[[], None]
    ) -> None:
        self._leader = leader
        self._on_end = on_end
        self._chores = chores
        self._wake = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="flexiq-chores", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def nudge(self) -> None:
        """There may be something to do sooner than the chores expected."""
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """End after the chore at hand, within ``timeout`` seconds, and give up leadership."""
        self._stop = True
        self._wake.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._stop:
                rest = self.tick(time.monotonic())
                if self._wake.wait(rest):
                    self._wake.clear()
                    for chore in self._chores:
                        if chore.is_nudged:
                            chore.due = 0.0
        except Interrupted:
            logger.info("the chores end")
        finally:
            self._end()

    def _end(self) -> None:
        try:
            self._leader.resign()
        except Exception as error:  # the role then passes on when its lease runs out
            logger.warning("could not resign as leader: %s", error)
        self._on_end()

    def tick(self, now: float) -> float:
        """Run every chore that is due at ``now`` (monotonic seconds); the seconds to rest."""
        is_leader = self._is_leader(now)
        for chore in self._chores:
            if self._stop or chore.due > now or (chore.by_leader and not is_leader):
                continue
            try:
                rest = chore.run()
                chore.is_blocked = False
            except Interrupted:
                raise
            except Blocked as error:
                rest = self._pass_over(chore, error)
            except Exception:
                logger.exception("chore %s failed; next try in %s s", chore.name, _AFTER_ERROR)
                rest = _AFTER_ERROR
            chore.due = time.monotonic() + rest
        mine = [chore.due for chore in self._chores if is_leader or not chore.by_leader]
        return max(0.0, min([self._leader.due, *mine]) - time.monotonic())

    def _pass_over(self, chore: Chore, error: Blocked) -> float:
        if not chore.is_blocked:  # said once, or a transaction that stays open fills the log
            logger.warning(
                "chore %s waits for another transaction (%s); tried every %s s",
                chore.name,
                error,
                _AFTER_ERROR,
            )
        chore.is_blocked = True
        return _AFTER_ERROR

    def _is_leader(self, now: float) -> bool:
        try:
            return self._leader.hold(now)
        except Interrupted:
            raise
        except Exception:
            logger.exception("the election failed; next try in %s s", _AFTER_ERROR)
            self._leader.due = now + _AFTER_ERROR
            return False
