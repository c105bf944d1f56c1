"""Coroutines: for ``async def`` tasks that wait, by the hundred, on one event loop.

A body can be stopped at its next ``await``. One that does not await, or that swallows being
cancelled, cannot; the slot goes to another coroutine, and the worker knows that it has a stray.

What the bodies do with Django's database API runs in a few threads with a connection each, because
the API of the event loop hands over to threads: each slot always uses the same one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about
from flexiq_django.worker.executors.base import Line

logger = logging.getLogger(__name__)

#: Most threads, and connections, that the slots share for the database API.
DATABASE_THREADS = 8
#: Seconds that bodies which are cancelled in the end get to leave.
LEAVE_SECONDS = 1.0


class CoroutineExecutor(Line):
    """``concurrency`` coroutines that take jobs from one line. ``run`` is awaited with each."""

    def __init__(
        self,
        concurrency: int,
        run: Callable[[ClaimedJob], Awaitable[None]],
        on_low: Callable[[], None],
    ) -> None:
        super().__init__(on_low)
        self.concurrency = concurrency
        self._run_job = run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs_there = asyncio.Semaphore(0)
        self._slots: set[asyncio.Task[None]] = set()
        self._contexts = [
            ThreadSensitiveContext() for _ in range(min(concurrency, DATABASE_THREADS))
        ]
        self._thread = threading.Thread(target=self._serve_loop, name="flexiq-loop", daemon=True)

    def start(self) -> None:
        """See ``Executor``."""
        self._loop = asyncio.new_event_loop()
        for _ in range(self.concurrency):
            self._loop.call_soon(self._start_slot)
        self._thread.start()
        self._tell(lambda: self._announce(self.waiting))

    def submit(self, jobs: Sequence[ClaimedJob]) -> None:
        """See ``Executor``."""
        super().submit(jobs)
        self._tell(lambda: self._announce(len(jobs)))

    def replace_slot(self, job: ClaimedJob) -> None:
        """See ``Executor``."""
        if self.disown(job):
            self._tell(self._start_slot)

    def stop(self) -> None:
        """See ``Executor``."""
        super().stop()
        self._tell(lambda: self._announce(len(self._slots)))

    def close(self) -> None:
        """Cancel every body, and end the loop. Bodies that go on are not waited for long."""
        self._tell(lambda: asyncio.get_running_loop().stop())
        if self._thread.is_alive():
            self._thread.join(LEAVE_SECONDS)

    def _tell(self, action: Callable[[], object]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(action)

    # --- in the loop ------------------------------------------------------------------------------

    def _announce(self, jobs: int) -> None:
        for _ in range(jobs):
            self._jobs_there.release()

    def _serve_loop(self) -> None:
        loop = self._loop
        assert loop is not None  # noqa: S101 - made by start()
        try:
            loop.run_forever()
            loop.run_until_complete(_cancel_all())
        finally:
            loop.close()

    def _start_slot(self) -> None:
        context = self._contexts[len(self._slots) % len(self._contexts)]
        task = asyncio.get_running_loop().create_task(self._serve(context))
        self._slots.add(task)
        task.add_done_callback(self._slots.discard)

    async def _serve(self, context: ThreadSensitiveContext) -> None:
        SyncToAsync.thread_sensitive_context.set(context)
        while not self._stopped:
            await self._jobs_there.acquire()
            job = self.next(waits=False)
            if job is None:  # taken back in the meantime
                continue
            try:
                await self._run_job(job)
            except Exception:  # our own fault; the slot must not be lost with it
                logger.exception("running job %s failed outside its body", job.id, extra=about(job))
            if not self.ended(job):
                return


async def _cancel_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
