"""Threads: the default. Fits tasks that wait for the network or the database.

A thread cannot be killed. A body that does not end when its time is up keeps its thread; the slot
goes to a new one, and the worker knows that it has a stray.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about
from flexiq_django.worker.executors.base import Line

logger = logging.getLogger(__name__)


class ThreadExecutor(Line):
    """``concurrency`` threads that take jobs from one line. ``run`` is called in one with each."""

    def __init__(
        self,
        concurrency: int,
        run: Callable[[ClaimedJob], None],
        on_low: Callable[[], None],
    ) -> None:
        super().__init__(on_low)
        self.concurrency = concurrency
        self._run_job = run
        self._started = 0

    def start(self) -> None:
        """See ``Executor``."""
        for _ in range(self.concurrency):
            self._start_thread()

    def _start_thread(self) -> None:
        self._started += 1
        threading.Thread(
            target=self._serve, name=f"flexiq-job-{self._started}", daemon=True
        ).start()

    def replace_slot(self, job: ClaimedJob) -> None:
        """See ``Executor``."""
        if self.disown(job):
            self._start_thread()

    def close(self) -> None:
        """Nothing: only the end of the process ends a thread."""

    def _serve(self) -> None:
        while (job := self.next()) is not None:
            try:
                self._run_job(job)
            except Exception:  # our own fault; the slot must not be lost with it
                logger.exception("running job %s failed outside its body", job.id, extra=about(job))
            if not self.ended(job):
                return
