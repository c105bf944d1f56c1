"""From what is said of an attempt to its settlement: shared by all that ends attempts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from flexiq_django.api.announce import wake_workers
from flexiq_django.api.auto_retry import auto_retry_for
from flexiq_django.core.outcome import WORKER_LOST, Ending, Outcome, decide
from flexiq_django.core.records import AutoRetry, ClaimedJob, Settlement
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.core.status import JobStatus
from flexiq_django.db.database import JobDatabase, task_of
from flexiq_django.store import link, settle, takeover, verdicts
from flexiq_django.store.settle import Settled

logger = logging.getLogger(__name__)

#: How long jobs wait between attempts whose task is not declared in this process.
_USUAL = RetryPolicy(max_retries=0)

#: What became of attempts, and how that was written.
Ended = tuple[list[Settlement], Settled]
Decide = Callable[[ClaimedJob], Settlement]


def end_owned(db: JobDatabase, outcome: Outcome) -> str | None:
    """Settle an attempt by its token; the stored status, or ``None`` if it lost its job."""
    settlements = [_decide(db, outcome)]
    auto_retry = auto_retry_for(db.scope)
    settled = link.call(db.scope, lambda: settle.settle(db.scope, settlements, auto_retry))
    if outcome.job.id in settled.lost:
        logger.warning(
            "late result of job %s (%s) dropped: the attempt no longer owns the job",
            outcome.job.id,
            outcome.job.task_name,
        )
        return None
    return _told(db, (verdicts.as_written(settlements, settled.buried, settled.stopped), settled))


def end_running(
    db: JobDatabase, job_id: UUID, outcome_of: Callable[[ClaimedJob], Outcome]
) -> str | None:
    """Settle whatever attempt runs a job; the stored status, or ``None`` if it is not running."""
    verb = partial(
        takeover.settle_running,
        db.scope,
        job_id,
        lambda job: _decide(db, outcome_of(job)),
        auto_retry=auto_retry_for(db.scope),
    )
    ended = link.call(db.scope, verb)
    return _told(db, ended) if ended[1].settled else None


def end_lost(db: JobDatabase, verb: Callable[..., Ended], *args: Any, **options: Any) -> int:
    """Settle attempts whose worker is lost, as a verb of the store finds them; how many."""
    auto_retry: AutoRetry | None = auto_retry_for(db.scope)
    lost = partial(_lost, db)
    ended = link.call(
        db.scope, lambda: verb(db.scope, *args, lost, auto_retry=auto_retry, **options)
    )
    for each in ended[0]:
        logger.warning(
            "job %s (%s) is taken back; now %s", each.job_id, each.task_name, each.status
        )
    _told(db, ended)
    return len(ended[0])


def _lost(db: JobDatabase, job: ClaimedJob) -> Settlement:
    outcome = Outcome(job=job, ending=Ending.FAILED, error=WORKER_LOST, retry_after=0.0)
    return _decide(db, outcome)


def _decide(db: JobDatabase, outcome: Outcome) -> Settlement:
    task = task_of(db, outcome.job.task_name)
    return decide(outcome, _USUAL if task is None else task.options.retry)


def _told(db: JobDatabase, ended: Ended) -> str | None:
    """Wake workers where jobs became ready; the status of the only one."""
    settlements, settled = ended
    if settled.released or _has_retries(settlements):
        wake_workers(db.scope)
    return settlements[0].status if settlements else None


def _has_retries(settlements: Sequence[Settlement]) -> bool:
    return any(each.status == JobStatus.PENDING.value for each in settlements)
