"""Follow the values that a job publishes while it runs."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from flexiq_django.api.twins import async_twin
from flexiq_django.api.waiting import Patience
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.exceptions import JobNotFoundError
from flexiq_django.store import logs
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Values read by one statement.
PAGE = 500
#: How far each walk goes back. A value gets its time before it is committed, so one may appear
#: behind another; and two may share their time.
OVERLAP = timedelta(seconds=1)
#: Seconds to the last look, for what a transactional task noted in the transaction that ended it:
#: on SQLite that is written just after.
LAST_LOOK = 0.1


class Follower:
    """Reads what a job published, page by page, each value once.

    Holds the ids of about a second of values and no more, however many there are.
    """

    def __init__(
        self, scope: Scope, job_id: UUID, read_status: Callable[[], str | None], interval: float
    ) -> None:
        self._scope = scope
        self._job_id = job_id
        self._read_status = read_status
        self._interval = interval
        self._seen: dict[UUID, datetime] = {}
        self._mark: datetime | None = None
        #: The last row of a page that was full: the walk goes on behind it.
        self._place: logs.Published | None = None
        self._was_running = False
        self.is_ended = False

    def look(self) -> tuple[list[Any], float | None]:
        """The next values, and the seconds to rest before the next look; ``None`` at the end.

        Raises ``JobNotFoundError`` if the job is gone.
        """
        if self._place is None:
            # Before the values: what was published before the end is then there to be read.
            self.is_ended = self._look_at_job()
        rows = logs.published(
            self._scope,
            self._job_id,
            after=self._place,
            since=None if self._mark is None else self._mark - OVERLAP,
            limit=PAGE,
        )
        fresh = [row for row in rows if row.id not in self._seen]
        self._remember(fresh)
        values = [value for row in fresh for value in self._decode(row)]
        self._place = rows[-1] if len(rows) == PAGE else None
        return values, self._rest() if self._place is None else 0.0

    def _look_at_job(self) -> bool:
        status = self._read_status()
        if status is None:
            raise JobNotFoundError(f"there is no job {self._job_id} in {self._scope.namespace}")
        return JobStatus(status) in TERMINAL

    def _remember(self, fresh: list[logs.Published]) -> None:
        """Note what has been seen, and forget what lies before the next walk."""
        if not fresh:
            return
        self._seen.update((row.id, row.logged_at) for row in fresh)
        self._mark = max(self._seen.values())
        edge = self._mark - OVERLAP
        self._seen = {key: moment for key, moment in self._seen.items() if moment >= edge}

    def _rest(self) -> float | None:
        if not self.is_ended:
            self._was_running = True
            return self._interval
        if self._was_running:
            self._was_running = False
            return min(LAST_LOOK, self._interval)
        return None

    def _decode(self, row: logs.Published) -> Iterator[Any]:
        try:
            yield json.loads(row.extra or "")
        except ValueError:  # a bad row must not keep the others back
            logger.warning("value %s of job %s is no JSON", row.id, self._job_id)


def stream(follower: Follower, patience: Patience) -> Iterator[Any]:
    """The values as they come, until the job has ended or the time is up."""
    rest: float | None = 0.0
    while rest is not None:
        values, rest = follower.look()
        yield from values
        rest = _patient(rest, follower, patience)
        if rest:
            time.sleep(rest)  # noqa: TID251


async def astream(follower: Follower, patience: Patience) -> AsyncIterator[Any]:
    """The same for a coroutine."""
    rest: float | None = 0.0
    while rest is not None:
        values, rest = await async_twin(follower.look)()
        for value in values:
            yield value
        rest = _patient(rest, follower, patience)
        if rest:
            await asyncio.sleep(rest)


def _patient(rest: float | None, follower: Follower, patience: Patience) -> float | None:
    """The rest, cut short by the patience, which counts until the job has ended."""
    return rest if rest is None or follower.is_ended else patience.rest(rest)
