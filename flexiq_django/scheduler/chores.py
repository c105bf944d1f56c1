"""The chores: promote, reap, expire, retry dead letters, find lost dependents.

None waits for a row that somebody else has locked, as all share a thread: it passes over the row,
and looks again soon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.records import AutoRetry, ClaimedJob, Settlement
from flexiq_django.exceptions import FlexiQError
from flexiq_django.scheduler.pauses import GrowingPause
from flexiq_django.store import (
    dependencies,
    promote,
    revive,
    sessions,
    settle,
    workers,
)
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Seconds between two looks for due jobs when none is known to be due sooner.
PROMOTE_SECONDS = 2.0
#: Seconds between two looks for leases that ran out.
REAP_SECONDS = 5.0
#: Seconds between two looks for pending jobs that are too late to start.
EXPIRE_SECONDS = 10.0
#: Seconds between two looks for dead letters that are to be retried.
RETRY_SECONDS = 10.0
#: Seconds between two looks for lost dependents.
NET_SECONDS = 30.0

#: What a row may raise that somebody wrote by hand; it must not stop the others.
BAD_ROW = (FlexiQError, DatabaseError, ValueError, TypeError, ArithmeticError, LookupError)

Call = Callable[[Callable[[], Any]], Any]
Enqueued = Callable[[int], None]


class Promotion:
    """Makes due jobs ready."""

    def __init__(self, scope: Scope, call: Call, on_ready: Enqueued) -> None:
        self._scope, self._call, self._on_ready = scope, call, on_ready
        self._pause = GrowingPause()

    def run(self) -> float:
        """Move one batch; rest until the next is due."""
        moved, wait = self._call(lambda: promote.promote_due(self._scope))
        if moved:
            self._on_ready(moved)
        if wait == 0.0 and not moved:  # somebody else has locked all that is due
            return self._pause.longer()
        self._pause.reset()
        return PROMOTE_SECONDS if wait is None else min(PROMOTE_SECONDS, wait)


class Expiry:
    """Cancels pending jobs that are too late to start.

    ``on_passed_over`` is called when dependents were left, which the net has to find.
    """

    def __init__(
        self, scope: Scope, call: Call, on_ready: Enqueued, on_passed_over: Callable[[], None]
    ) -> None:
        self._scope, self._call, self._on_ready = scope, call, on_ready
        self._on_passed_over = on_passed_over
        self._pause = GrowingPause()

    def run(self) -> float:
        """Cancel one batch."""
        moved: dependencies.Moved = self._call(lambda: promote.cancel_expired(self._scope))
        if moved.released:
            self._on_ready(moved.released)
        if moved.passed_over and not moved.cancelled:
            return self._pause.longer()
        self._pause.reset()
        if moved.passed_over:
            self._on_passed_over()
        return 0.0 if moved.cancelled else EXPIRE_SECONDS


class Reaper:
    """Takes back jobs whose lease ran out: pending again, or dead when the budget is spent.

    Rests ``seconds`` when there is none. ``on_passed_over``: see ``Expiry``.
    """

    def __init__(
        self,
        scope: Scope,
        call: Call,
        decide: Callable[[ClaimedJob], Settlement],
        *,
        on_settled: Callable[[Sequence[Settlement]], None],
        on_passed_over: Callable[[], None],
        seconds: float = REAP_SECONDS,
        auto_retry: AutoRetry | None = None,
    ) -> None:
        self._scope, self._call, self._decide = scope, call, decide
        self._on_settled, self._on_passed_over = on_settled, on_passed_over
        self._seconds = seconds
        self._auto_retry = auto_retry
        self._pause = GrowingPause()

    def run(self) -> float:
        """Take back one batch."""
        settlements, outcome = self._call(
            lambda: settle.reap(self._scope, self._decide, auto_retry=self._auto_retry)
        )
        for each in settlements:
            _warn_of_lost(each)
        self._on_settled(settlements)
        if outcome.passed_over and not outcome.settled:
            return self._pause.longer()
        self._pause.reset()
        if outcome.passed_over:
            self._on_passed_over()
        return 0.0 if outcome.settled else self._seconds


def _warn_of_lost(settlement: Settlement) -> None:
    logger.warning(
        "lease of job %s (%s) ran out; now %s",
        settlement.job_id,
        settlement.task_name,
        settlement.status,
        extra={
            "job_id": str(settlement.job_id),
            "task_name": settlement.task_name,
            "queue": parse_lane(settlement.lane).queue,
        },
    )


class DeadLetterRetries:
    """Retries dead letters that are due, ``most`` times in a chain.

    ``limited`` says of the tasks whose code is here whether they have a limit of their own.
    """

    def __init__(
        self,
        scope: Scope,
        call: Call,
        most: int,
        limited: Callable[[], Mapping[str, bool]],
        on_ready: Enqueued,
        seconds: float = RETRY_SECONDS,
    ) -> None:
        self._scope, self._call, self._on_ready = scope, call, on_ready
        self._most, self._limited = most, limited
        self._seconds = seconds
        self._pause = GrowingPause()

    def run(self) -> float:
        """Retry one batch; rest if none is due."""
        due: list[UUID] = self._call(lambda: revive.due_letters(self._scope))
        if not due:
            return self._rest()
        self._pause.reset()
        try:
            self._retry(due)
        except BAD_ROW:
            for letter in due:
                self._retry_alone(letter)
        return 0.0

    def _rest(self) -> float:
        if self._call(lambda: revive.seconds_until_due(self._scope)) == 0.0:
            return self._pause.longer()  # somebody else has locked all that is due
        self._pause.reset()
        return self._seconds

    def _retry(self, letters: Sequence[UUID]) -> None:
        verb = partial(
            revive.retry_due, self._scope, letters, most=self._most, limited=self._limited()
        )
        outcome: revive.Retried = self._call(verb)
        if outcome.revoked:
            logger.warning("%s dead letters of revoked tasks stay", len(outcome.revoked))
        if outcome.jobs:
            logger.info("%s dead letters retried", len(outcome.jobs))
            self._on_ready(len(outcome.jobs))

    def _retry_alone(self, letter: UUID) -> None:
        try:
            self._retry([letter])
        except BAD_ROW:
            logger.exception("dead letter %s cannot be retried", letter)
            self._call(partial(revive.leave_letters, self._scope, [letter]))


def forget_workers(scope: Scope, call: Call) -> float:
    """Delete the rows of workers that have been gone for an hour."""
    call(lambda: workers.remove_gone(scope))
    return 600.0


class DependencyNet:
    """Finds dependents whose parent ended between their commit and their re-check."""

    def __init__(self, scope: Scope, call: Call, on_ready: Enqueued) -> None:
        self._scope, self._call, self._on_ready, self._after = scope, call, on_ready, 0
        self._pause = GrowingPause()
        self._is_needed_again = False

    def walk_again(self) -> None:
        """Begin anew soon after this walk: dependents were passed over, perhaps behind it."""
        self._is_needed_again = True

    def run(self) -> float:
        """Walk on over the open edges."""
        moved: dependencies.Moved
        self._after, moved = self._call(lambda: dependencies.sweep_ended(self._scope, self._after))
        if moved.released:
            self._on_ready(moved.released)
        if moved.passed_over:
            self.walk_again()
        if self._after:
            return 1.0
        if self._is_needed_again:
            self._is_needed_again = False
            return self._pause.longer()
        self._pause.reset()
        return NET_SECONDS


class SessionNet:
    """Finds lines that nobody holds, as a process died between its commit and its look."""

    def __init__(self, scope: Scope, call: Call, on_ready: Enqueued) -> None:
        self._scope, self._call, self._on_ready, self._after = scope, call, on_ready, ""

    def run(self) -> float:
        """Walk on over the lines, without a rest until that is through."""
        self._after, moved = self._call(lambda: sessions.sweep(self._scope, self._after))
        if moved:
            self._on_ready(moved)
        return 0.0 if self._after else NET_SECONDS
