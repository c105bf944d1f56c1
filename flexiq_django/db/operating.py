"""What anybody may do to jobs: cancel, reorder, label, prune."""

from __future__ import annotations

import time
from functools import partial

from flexiq_django.api import options as check
from flexiq_django.core.outcome import CANCELLED
from flexiq_django.core.records import JobRecord
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.db.claiming import Claim, require_own
from flexiq_django.db.database import JobDatabase
from flexiq_django.db.words import Status, word_of
from flexiq_django.exceptions import InvalidOptionError, JobNotCancellableError, JobNotFoundError
from flexiq_django.store import inspect, link, operate, purge


def cancel_job(db: JobDatabase, job_id: str) -> Status:
    """Cancel a job that is pending or processing, and what depends on it; its status before.

    An attempt that runs loses the job at once: its heartbeat fails, :func:`is_cancelled` says so,
    and nothing it still writes is kept. To ask a task to stop by itself there is
    ``queue.cancel_running_job()``. Raises ``JobNotCancellableError`` if the job has ended, and
    ``JobNotFoundError``.
    """
    key = check.parse_id(job_id)
    before = None
    if key is not None:
        verb = partial(operate.cancel_even_running, db.scope, key, error=CANCELLED)
        before = link.call(db.scope, verb)
    if before is None:
        before = _known(db, job_id).status
    if JobStatus(before) in TERMINAL:
        raise JobNotCancellableError(
            f"job {job_id} is {word_of(before)}; only a job that is pending or processing can be"
            " cancelled"
        )
    return word_of(before)


def is_cancelled(db: JobDatabase, job_id: str) -> bool:
    """Whether a job has been cancelled, or was asked to stop by ``queue.cancel_running_job()``.

    For an executor to ask while it runs the job. Raises ``JobNotFoundError``.
    """
    record = _known(db, job_id)
    return record.status == JobStatus.CANCELLED.value or (
        record.status == JobStatus.RUNNING.value and record.cancel_requested_at is not None
    )


def update_priority(db: JobDatabase, job_id: str, priority: int) -> bool:
    """Set the priority of a job in any state; larger is claimed first.

    False if it is unknown or archived. Raises ``InvalidOptionError``.
    """
    return _set_priority(db, job_id, priority, only_pending=False)


def reorder_pending(db: JobDatabase, job_id: str, priority: int) -> bool:
    """:func:`update_priority` of a job that is pending, judged by the statement that writes.

    False if it is unknown or not pending.
    """
    return _set_priority(db, job_id, priority, only_pending=True)


def update_canonical_lineage(
    db: JobDatabase,
    job: Claim | str,
    *,
    attempt_id: str | None = None,
    trial_id: str | None = None,
) -> bool:
    """Store where a job stands in a lineage that you keep elsewhere; False if nothing was stored.

    Each label has up to 200 characters; one that is ``None`` stays as it was. ``job`` is a claim,
    which must still own the job, or the id of a job that is not archived. Raises
    ``InvalidOptionError``.
    """
    attempt = check.check_text("attempt_id", attempt_id, longest=200)
    trial = check.check_text("trial_id", trial_id, longest=200)
    token: int | None = None
    if isinstance(job, Claim):
        require_own(db, job)
        token = job.token
    key = check.parse_id(job.id if isinstance(job, Claim) else job)
    if key is None:
        return False
    labels = partial(operate.set_lineage, attempt_id=attempt, trial_id=trial, token=token)
    return link.call(db.scope, partial(labels, db.scope, key))


def prune_old_jobs(db: JobDatabase, days: float) -> int:
    """Delete jobs that ended more than ``days`` days ago, however they did; how many.

    Archived ones too, each with its errors, log lines, metrics and dead letter. In short
    transactions, so that it may run beside busy workers. Raises ``InvalidOptionError``.
    """
    age = check.check_number("days", days)
    if not 0 <= age <= 36_500:
        raise InvalidOptionError(f"days is {days!r}; allowed is a number from 0 to 36500")
    factor = link.rest_factor(db.scope)
    pruned, began = 0, time.monotonic()
    for batch in purge.purge_ended(db.scope, older_than_ms=round(age * 86_400_000)):
        pruned += batch
        # Leave the others room between two batches: on SQLite they cannot write during one.
        time.sleep(factor * (time.monotonic() - began))  # noqa: TID251 - no stop to hear
        began = time.monotonic()
    return pruned


def _set_priority(db: JobDatabase, job_id: str, priority: int, *, only_pending: bool) -> bool:
    value = check.check_priority("priority", priority)
    if value is None:
        raise InvalidOptionError("priority is None; it must be a whole number")
    key = check.parse_id(job_id)
    if key is None:
        return False
    verb = partial(operate.set_priority, db.scope, key, value, only_pending=only_pending)
    return link.call(db.scope, verb)


def _known(db: JobDatabase, job_id: str) -> JobRecord:
    key = check.parse_id(job_id)
    record = None if key is None else inspect.get(db.scope, key)
    if record is None:
        raise JobNotFoundError(f"there is no job {job_id} in namespace {db.namespace!r}")
    return record
