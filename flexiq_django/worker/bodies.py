"""Run claimed jobs in the executor's threads, and hand on how each ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from flexiq_django.api.context import Attempt
from flexiq_django.core.outcome import decide
from flexiq_django.core.records import ClaimedJob
from flexiq_django.worker.attempt import Runner, cancelled_before, interrupted, late, too_late
from flexiq_django.worker.buffer import Buffer
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.connections import Keeper, clean_after_job, clean_before_job
from flexiq_django.worker.executors.base import Executor
from flexiq_django.worker.heartbeat import Holdings
from flexiq_django.worker.loop import announce_started
from flexiq_django.worker.notebook import Notebook
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.settler import Settler

logger = logging.getLogger(__name__)


class Bodies:
    """The bodies of this process. Each ends once: by itself, by its timeout, or cut off."""

    def __init__(
        self,
        options: WorkerOptions,
        *,
        worker_id: str,
        keeper: Keeper,
        catalogue: Catalogue,
        holdings: Holdings,
        buffer: Buffer,
        notebook: Notebook,
        settler: Settler,
        executor: Executor,
        may_begin: Callable[[ClaimedJob], bool],
        on_settled: Callable[[Sequence[ClaimedJob]], None],
    ) -> None:
        self._namespace = options.scope.namespace
        self._worker_id = worker_id
        self._catalogue = catalogue
        self._holdings = holdings
        self._buffer = buffer
        self._notebook = notebook
        self._settler = settler
        self._executor = executor
        self._may_begin = may_begin
        self._on_settled = on_settled
        self._runner = Runner(
            options.scope,
            keeper,
            catalogue.find,
            max_result_bytes=options.max_result_bytes,
            max_error_bytes=options.max_error_bytes,
        )

    def run(self, job: ClaimedJob) -> None:
        """Run the body of a job, in a thread of the executor."""
        if not self._may_begin(job):
            return
        if job.is_expired:
            self._settler.add(too_late(job))
            return
        if job.is_cancel_requested:
            self._settler.add(cancelled_before(job))
            return
        task = self._catalogue.find(job.task_name)
        attempt = Attempt(
            job,
            namespace=self._namespace,
            journal=self._notebook,
            soft_timeout=task.options.soft_timeout if task else None,
        )
        self._holdings.begin(attempt)
        announce_started(job, self._worker_id)
        clean_before_job()
        outcome = self._runner.run(attempt)
        clean_after_job()
        self._holdings.end(attempt)
        if not attempt.end():
            return  # timed out or interrupted: that has been said already
        if outcome is None:
            self._holdings.drop([job])
            return
        if outcome.duration_ms is not None:
            self._buffer.note(outcome.duration_ms / 1000)
        if attempt.is_settled:
            self._on_settled([job])
            self._settler.note_ready()  # jobs that depend on this one, perhaps
            self._settler.tell([decide(outcome, self._catalogue.policy_of(job.task_name))])
            return
        self._settler.add(outcome)

    def time_out(self, attempt: Attempt) -> None:
        """The time of an attempt is up: what its body does from now on counts for nothing."""
        if not attempt.end():
            return
        attempt.is_over = True
        logger.warning(
            "job %s (%s) runs longer than its %s ms; its thread is given up",
            attempt.job.id,
            attempt.job.task_name,
            attempt.job.timeout_ms,
        )
        self._settler.add(late(attempt))
        self._holdings.end(attempt)
        self._executor.replace_slot(attempt.job)

    def interrupt(self, attempt: Attempt) -> None:
        """The worker leaves: an attempt that has been ended for that is settled as cut off."""
        attempt.is_over = True
        logger.warning(
            "job %s (%s) is interrupted: the worker stops", attempt.job.id, attempt.job.task_name
        )
        self._settler.add(interrupted(attempt))
