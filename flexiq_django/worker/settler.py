"""Write down how attempts ended, many in one transaction, and tell whoever listens.

Nothing waits for company when the worker is otherwise idle; while more results are about to come,
the first waits a few milliseconds for them. While one batch is being written the next one gathers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from flexiq_django import signals
from flexiq_django.api.context import Attempt
from flexiq_django.core.outcome import Outcome, decide
from flexiq_django.core.records import AutoRetry, ClaimedJob
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.core.status import JobStatus
from flexiq_django.store import journal, link, settle
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import GaveUp, Keeper

logger = logging.getLogger(__name__)

#: Most attempts settled in one transaction.
BATCH = 200
#: Longest time a result waits for company, in seconds.
COMPANY_SECONDS = 0.003

Note = tuple[str, ClaimedJob, Any]


class Settler:
    """The thread that settles. Also the journal of the attempts: their progress and log lines."""

    def __init__(
        self,
        scope: Scope,
        keeper: Keeper,
        *,
        worker_id: str,
        policy_of: Callable[[str], RetryPolicy],
        expects_more: Callable[[], bool],
        on_settled: Callable[[Sequence[ClaimedJob]], None],
        on_ready: Callable[[], None],
        makes_room: Callable[[Sequence[ClaimedJob]], bool],
        notifies: bool,
        auto_retry: AutoRetry | None = None,
    ) -> None:
        self._scope = scope
        self._keeper = keeper
        self._worker_id = worker_id
        self._policy_of = policy_of
        self._expects_more = expects_more
        self._on_settled = on_settled
        self._on_ready = on_ready
        self._makes_room = makes_room
        self._notifies = notifies
        self._auto_retry = auto_retry
        self._has_readied = False
        self._outcomes: deque[Outcome] = deque()
        self._notes: deque[Note] = deque()
        #: The last attempts whose notes were refused: each is logged once.
        self._refused: deque[tuple[UUID, int]] = deque(maxlen=100)
        self._ready = threading.Event()
        self._in_hand = 0
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="flexiq-settler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def pending(self) -> int:
        """Attempts that have ended but are not settled yet."""
        return len(self._outcomes) + self._in_hand

    def add(self, outcome: Outcome) -> None:
        """Settle this attempt soon."""
        self._outcomes.append(outcome)
        if not self._ready.is_set():
            self._ready.set()

    def stop(self, timeout: float) -> bool:
        """Settle what is there, then end. False if that took longer than ``timeout`` seconds."""
        self._stop = True
        self._ready.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def note_ready(self) -> None:
        """Settling made other jobs ready or due: look for them, and wake the other workers."""
        self._on_ready()
        self._has_readied = self._notifies
        self._ready.set()

    # --- the journal of the attempts --------------------------------------------------------------

    def progress(self, job: ClaimedJob, value: int) -> None:
        """Store the progress soon; a later value replaces one not yet stored."""
        self._note("progress", job, value)

    def log(self, job: ClaimedJob, level: str, message: str, extra: str | None) -> None:
        """Store a log line soon, in order."""
        self._note("log", job, (level, message, extra))

    def look(self, attempt: Attempt) -> None:
        """Bring the flags of an attempt up to date on the calling thread's connection."""
        if not journal.can_look(self._scope):
            return
        key = (attempt.job.id, attempt.job.token)
        try:
            seen = journal.look(self._scope, [key]).get(attempt.job.id)
        except DatabaseError:  # the heartbeat will tell; the task must not fail over it
            logger.warning("could not look whether job %s is cancelled", key[0], exc_info=True)
            return
        attempt.is_over = attempt.is_over or seen is None
        attempt.is_cancel_requested = bool(seen)

    def _note(self, kind: str, job: ClaimedJob, value: Any) -> None:
        self._notes.append((kind, job, value))
        self._ready.set()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not (self._stop and not self._outcomes and not self._notes):
            self._ready.wait(1.0)
            self._ready.clear()
            try:
                self._write()
            except GaveUp:
                logger.error("stopping with %s attempts not settled", self.pending)
                break
            except Exception:
                logger.exception("settling failed; the leases of the jobs will run out")
                self._in_hand = 0
        self._keeper.close()

    def _write(self) -> None:
        while self._outcomes or self._notes:
            if self._outcomes:
                self._wait_for_company()
            # Notes first: what an attempt said before it ended still carries a valid token.
            batch = [self._outcomes.popleft() for _ in range(min(BATCH, len(self._outcomes)))]
            self._in_hand = len(batch)
            self._write_notes()
            if batch:
                self._settle(batch)
            self._in_hand = 0
        if self._has_readied:
            self._has_readied = False
            self._keeper.call(lambda: link.notify(self._scope))

    def _wait_for_company(self) -> None:
        deadline = time.monotonic() + COMPANY_SECONDS
        while len(self._outcomes) < BATCH and not self._stop and self._expects_more():
            rest = deadline - time.monotonic()
            if rest <= 0:
                return
            self._ready.wait(min(rest, 0.001))
            self._ready.clear()

    def _write_notes(self) -> None:
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        latest = {(job.id, job.token): value for kind, job, value in notes if kind == "progress"}
        for kind, job, value in notes:
            if kind == "log":
                self._write_note(kind, job, partial(self._append, job, value))
            elif (job.id, job.token) in latest:
                progress = latest.pop((job.id, job.token))
                self._write_note(kind, job, partial(self._set_progress, job, progress))

    def _write_note(self, kind: str, job: ClaimedJob, write: Callable[[], bool]) -> None:
        try:
            is_written = self._keeper.call(write)
        except GaveUp:
            raise
        except Exception:  # a note must not keep results from being settled
            logger.exception("%s of job %s (%s) cannot be stored", kind, job.id, job.task_name)
            return
        key = (job.id, job.token)
        if is_written or key in self._refused:
            return
        self._refused.append(key)
        logger.warning(
            "late %s of job %s (%s) dropped: the attempt no longer owns the job",
            kind,
            job.id,
            job.task_name,
        )

    def _set_progress(self, job: ClaimedJob, value: int) -> bool:
        return journal.set_progress(self._scope, job.id, job.token, value)

    def _append(self, job: ClaimedJob, line: tuple[str, str, str | None]) -> bool:
        level, message, extra = line
        return journal.append_log(
            self._scope,
            job.id,
            job.token,
            task_name=job.task_name,
            level=level,
            message=message,
            extra=extra,
        )

    def _settle(self, batch: Sequence[Outcome]) -> None:
        settlements = [decide(each, self._policy_of(each.job.task_name)) for each in batch]
        try:
            outcome = self._keeper.call(
                lambda: settle.settle(self._scope, settlements, self._auto_retry)
            )
        except GaveUp:
            raise
        except Exception as error:
            self._settle_apart(batch, error)
            return
        for each in settlements:
            if each.job_id in outcome.buried:
                logger.warning(
                    "job %s (%s) is dead: the retry budget of its task is used up",
                    each.job_id,
                    each.task_name,
                )
            if each.job_id in outcome.lost:
                logger.warning(
                    "late result of job %s (%s) dropped: the attempt no longer owns the job",
                    each.job_id,
                    each.task_name,
                )
        settlements = settle.as_written(settlements, outcome.buried)
        jobs = [each.job for each in batch]
        self._on_settled(jobs)
        if (
            outcome.released
            or any(each.status == JobStatus.PENDING.value for each in settlements)
            or self._makes_room(jobs)
        ):
            self.note_ready()
        if signals.job_settled.receivers:
            self.tell(each for each in settlements if each.job_id in outcome.settled)

    def _settle_apart(self, batch: Sequence[Outcome], error: Exception) -> None:
        """One bad row must not take the others with it: settle them one by one."""
        if len(batch) > 1:
            logger.warning("settling %s attempts together failed", len(batch), exc_info=error)
            for each in batch:
                self._settle([each])
            return
        # Let go of it: its lease is no longer renewed, and the reaper will say what happened.
        logger.error(
            "job %s cannot be settled; its lease will run out", batch[0].job.id, exc_info=error
        )
        self._on_settled([batch[0].job])

    def tell(self, settlements: Any) -> None:
        """Send ``job_settled`` for settlements that were written."""
        for each in settlements:
            signals.send(
                signals.job_settled,
                job_id=str(each.job_id),
                task_name=each.task_name,
                status=each.status,
                error=each.error or each.attempt_error,
                worker_id=self._worker_id,
            )
