"""Run claimed jobs in the executor's slots, and hand on how each ended."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence

from asgiref.sync import sync_to_async

from flexiq_django.api.context import Attempt
from flexiq_django.core.outcome import Outcome, decide, is_good
from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import about
from flexiq_django.worker.attempt import Runner, cancelled_before, interrupted, late, too_late
from flexiq_django.worker.buffer import Buffer
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.connections import Keeper, clean_after_job, clean_before_job, close_all
from flexiq_django.worker.executors.base import Executor, NotBegunError
from flexiq_django.worker.heartbeat import Holdings
from flexiq_django.worker.loop import announce_started
from flexiq_django.worker.notebook import Notebook
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.settler import Settler

logger = logging.getLogger(__name__)


class Bodies:
    """The bodies of this process. Each ends once: by itself, by its timeout, or cut off.

    ``run_elsewhere`` runs a body that does not run in this process; ``None``: they all do.
    """

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
        refuse: Callable[[ClaimedJob], None],
        on_settled: Callable[[Sequence[ClaimedJob]], None],
        run_elsewhere: Callable[[Attempt], Outcome | None] | None = None,
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
        self._refuse = refuse
        self._on_settled = on_settled
        self._runner = Runner(
            options.scope,
            keeper,
            catalogue.find,
            max_result_bytes=options.max_result_bytes,
            max_error_bytes=options.max_error_bytes,
        )
        self._run_body = run_elsewhere or self._run_here

    # --- running ----------------------------------------------------------------------------------

    def run(self, job: ClaimedJob) -> None:
        """Run the body of a job from a thread of the executor."""
        try:
            attempt = self._begin(job)
            if attempt is not None:
                announce_started(job, self._worker_id)
                try:
                    outcome = self._run_body(attempt)
                except NotBegunError as reason:
                    self._hand_back(attempt, reason)
                else:
                    self._finish(attempt, outcome)
        except Exception:
            self._holdings.let_go(job)  # a fault of ours must not keep it: the reaper gives it on
            raise

    async def run_async(self, job: ClaimedJob) -> None:
        """Run the body of a job from a coroutine of the executor.

        A body that is no coroutine, or shares its transaction with the completion, runs in a thread
        of its own: the event loop must not wait for it.
        """
        task = self._catalogue.find(job.task_name)
        if task is None or not task.is_async or task.options.transactional:
            await _in_thread(lambda: self.run(job))
            return
        try:
            if not self._is_to_run(job) or not await self._prepare(job):
                return
            attempt = self._begin(job)
            if attempt is not None:
                attempt.is_watched = True  # it can be stopped without asking
                outcome = await self._await_body(attempt)
                self._finish(attempt, outcome)
                await sync_to_async(clean_after_job)(is_good=is_good(outcome))
        except Exception:
            self._holdings.let_go(job)
            raise

    async def _prepare(self, job: ClaimedJob) -> bool:
        """Do first what may have to wait for a shared thread: no time of a body may pass with it.

        False when the worker leaves meanwhile: the job goes back.
        """

        def prepare() -> None:
            announce_started(job, self._worker_id)
            clean_before_job()

        try:
            await sync_to_async(prepare)()
        except asyncio.CancelledError:
            self._refuse(job)
            return False
        return True

    async def _await_body(self, attempt: Attempt) -> Outcome | None:
        body = asyncio.create_task(self._runner.run_async(attempt))
        loop = asyncio.get_running_loop()
        with attempt.stoppable(lambda: loop.call_soon_threadsafe(body.cancel), gently=True):
            try:
                await asyncio.wait([body])
            except asyncio.CancelledError:  # the worker leaves
                body.cancel()
                raise
        return body.result()

    def _is_to_run(self, job: ClaimedJob) -> bool:
        """Whether the job is to run at all; else it has been settled, or goes back."""
        if not self._may_begin(job):
            return False
        if job.is_expired:
            self._settler.add(too_late(job))
            return False
        if job.is_cancel_requested:
            self._settler.add(cancelled_before(job))
            return False
        return True

    def _begin(self, job: ClaimedJob) -> Attempt | None:
        """The attempt that begins now; ``None`` if none does."""
        if not self._is_to_run(job):
            return None
        task = self._catalogue.find(job.task_name)
        attempt = Attempt(
            job,
            namespace=self._namespace,
            journal=self._notebook,
            soft_timeout=task.options.soft_timeout if task else None,
        )
        self._holdings.begin(attempt)
        if logger.isEnabledFor(logging.DEBUG):
            _tell_begin(job)
        return attempt

    def _run_here(self, attempt: Attempt) -> Outcome | None:
        clean_before_job()
        outcome = self._runner.run(attempt)
        clean_after_job(is_good=is_good(outcome))
        return outcome

    def _hand_back(self, attempt: Attempt, reason: NotBegunError) -> None:
        self._holdings.end(attempt)
        if attempt.end():  # else it has been settled over its head meanwhile
            job = attempt.job
            logger.warning(
                "job %s (%s) is given back: %s", job.id, job.task_name, reason, extra=about(job)
            )
            self._refuse(job)

    def _finish(self, attempt: Attempt, outcome: Outcome | None) -> None:
        job = attempt.job
        self._holdings.end(attempt)
        if logger.isEnabledFor(logging.DEBUG):
            _tell_end(job, outcome)
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

    # --- ending over a body's head ----------------------------------------------------------------

    def time_out(self, attempt: Attempt) -> None:
        """The time of an attempt is up: what its body does from now on counts for nothing."""
        if not attempt.end():
            return
        attempt.is_over = True
        logger.warning(
            "job %s (%s) runs longer than its %s ms and is given up",
            attempt.job.id,
            attempt.job.task_name,
            attempt.job.timeout_ms,
            extra=about(attempt.job),
        )
        self._settler.add(late(attempt))
        self._holdings.end(attempt)
        attempt.stop_body()
        self._executor.replace_slot(attempt.job)

    def interrupt(self, attempt: Attempt) -> None:
        """The worker leaves: have the body of an attempt stop where it next asks."""
        attempt.note_over()
        logger.warning(
            "job %s (%s) is interrupted: the worker stops",
            attempt.job.id,
            attempt.job.task_name,
            extra=about(attempt.job),
        )

    def cut_off(self, attempt: Attempt) -> None:
        """Settle an attempt that has been interrupted, whatever its body does."""
        if attempt.is_settled:  # its transaction came through meanwhile
            self._on_settled([attempt.job])
        else:
            self._settler.add(interrupted(attempt))


async def _in_thread(action: Callable[[], None]) -> None:
    """Run an action in a thread of its own, which may outlive the wait for it."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            action()
        finally:
            close_all()
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="flexiq-job-thread", daemon=True).start()
    await done.wait()


# For whoever looks closely: at full speed these lines would cost more than the jobs.


def _tell_begin(job: ClaimedJob) -> None:
    begins = "job %s (%s) begins attempt %s"
    logger.debug(begins, job.id, job.task_name, job.attempt, extra=about(job))


def _tell_end(job: ClaimedJob, outcome: Outcome | None) -> None:
    how = "over its head" if outcome is None else outcome.ending.name.lower()
    logger.debug("job %s (%s) ended: %s", job.id, job.task_name, how, extra=about(job))
