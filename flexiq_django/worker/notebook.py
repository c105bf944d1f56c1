"""The journal of the attempts: what running bodies say, written soon and in order."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import Error as DjangoDatabaseError

from flexiq_django.api.context import Attempt
from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about
from flexiq_django.store import journal
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import GaveUp, Keeper
from flexiq_django.worker.shutdown import within

logger = logging.getLogger(__name__)

#: Seconds a coroutine waits for a look; then it goes on, and the heartbeat will tell.
LOOK_SECONDS = 5.0

Note = tuple[str, ClaimedJob, Any]


class Notebook:
    """Progress and log lines on their way to the database. Any thread may put some in."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._notes: deque[Note] = deque()
        #: One batch is written at a time: whoever wants to settle waits until it is there.
        self._writing = threading.Lock()
        #: The last attempts whose notes were refused: each is logged once.
        self._refused: deque[tuple[UUID, int]] = deque(maxlen=100)
        #: Called after a note was put in.
        self.on_note: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self._notes)

    # --- for bodies -------------------------------------------------------------------------------

    def progress(self, job: ClaimedJob, value: int) -> None:
        """Store the progress soon; a later value replaces one not yet stored."""
        self._put("progress", job, value)

    def log(self, job: ClaimedJob, level: str, message: str, extra: str | None) -> None:
        """Store a log line soon, in order."""
        self._put("log", job, (level, message, extra))

    def look(self, attempt: Attempt) -> None:
        """Bring the flags of an attempt up to date on the calling thread's connection."""
        look(self._scope, attempt)

    def _put(self, kind: str, job: ClaimedJob, value: Any) -> None:
        self._notes.append((kind, job, value))
        self.on_note()

    # --- for the settler --------------------------------------------------------------------------

    def write(self, keeper: Keeper) -> None:
        """Store every note that was put in before this call."""
        with self._writing:
            self._write([self._notes.popleft() for _ in range(len(self._notes))], keeper)

    def _write(self, notes: Sequence[Note], keeper: Keeper) -> None:
        latest = {(job.id, job.token): value for kind, job, value in notes if kind == "progress"}
        for kind, job, value in notes:
            if kind == "log":
                self._write_one(keeper, kind, job, partial(self._append, job, value))
            elif (job.id, job.token) in latest:
                progress = latest.pop((job.id, job.token))
                self._write_one(keeper, kind, job, partial(self._set_progress, job, progress))

    def _write_one(
        self, keeper: Keeper, kind: str, job: ClaimedJob, write: Callable[[], bool]
    ) -> None:
        try:
            is_written = keeper.call(write)
        except GaveUp:
            raise
        except Exception:  # a note must not keep results from being settled
            logger.exception(
                "%s of job %s (%s) cannot be stored",
                kind,
                job.id,
                job.task_name,
                extra=about(job),
            )
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
            extra=about(job),
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


def look(scope: Scope, attempt: Attempt) -> None:
    """Bring the flags of an attempt up to date, if that can be done now.

    On the calling thread's connection; from a coroutine, where Django refuses database work, on a
    thread of its own.
    """
    if is_in_coroutine():
        within(LOOK_SECONDS, partial(_look, scope, attempt))
    else:
        _look(scope, attempt)


def _look(scope: Scope, attempt: Attempt) -> None:
    if not journal.can_look(scope):
        return
    key = (attempt.job.id, attempt.job.token)
    try:
        seen = journal.look(scope, [key]).get(attempt.job.id)
    except DjangoDatabaseError:  # the heartbeat will tell; the task must not fail over it
        logger.warning(
            "could not look whether job %s is cancelled",
            key[0],
            exc_info=True,
            extra=about(attempt.job),
        )
        return
    attempt.is_over = attempt.is_over or seen is None
    attempt.is_cancel_requested = bool(seen)


def is_in_coroutine() -> bool:
    """Whether this thread runs an event loop just now: there Django refuses database work."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
