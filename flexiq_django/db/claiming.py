"""Claim jobs and keep them: a lease, a token, heartbeats."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.api import options as check
from flexiq_django.conf import get_settings
from flexiq_django.core import outcome as words
from flexiq_django.core.errors import describe_exception
from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.outcome import Ending, Outcome
from flexiq_django.core.records import ClaimedJob
from flexiq_django.db.database import JobDatabase
from flexiq_django.db.ending import end_owned
from flexiq_django.db.words import data_of, shown_data
from flexiq_django.exceptions import InvalidOptionError, SerializationError
from flexiq_django.store import claim as claiming
from flexiq_django.store import gates, link, promote, reading
from flexiq_django.store import lease as leases
from flexiq_django.store.gates import Gates

#: How often a claim looks again after others took what it saw, or a limit came in between.
_LOOKS = 3
#: Most looks at the heads of the lanes for jobs of limited tasks, in a row.
_RELANE_ROUNDS = 20


class Claim(NamedTuple):
    """One attempt at a job, from its claim until it is settled or its lease runs out.

    ``id`` and ``token`` prove the ownership. ``timeout`` (``None``: none) and ``lease`` are
    seconds. ``attempt`` counts the claims of the job, this one included; ``retry_count`` the failed
    attempts before it. ``began`` is the monotonic clock of the machine at the claim.
    """

    id: str
    data: Any
    task_name: str
    queue: str
    attempt: int
    retry_count: int
    max_retries: int
    timeout: float | None
    metadata: str | None
    deployment_id: str | None
    session_id: str | None
    namespace: str
    worker_id: str
    lease: float
    token: int
    lane: str
    began: float


def get_next_pending(
    db: JobDatabase, *, queues: Collection[str] | None = None
) -> tuple[str, Any] | None:
    """The job that a claim would look at first, as (id, data); ``None`` when none is ready.

    The highest priority, then the one due first, then the oldest; from ``queues``, or from all.
    Jobs that have become due are made ready first. Nothing is claimed: others may be faster, and a
    limit may still hold the job back. Data that cannot be read is given as it is stored.
    """
    _check_queues(queues)
    known, served = _look(db, queues)
    open_lanes = [name for name in served if parse_lane(name).queue not in known.paused]
    found = reading.next_ready(db.scope, open_lanes)
    return None if found is None else (str(found.id), shown_data(found.payload))


def claim_next_job(db: JobDatabase, *, queues: Collection[str] | None = None) -> Claim | None:
    """:func:`claim` under the name of this host and process."""
    return claim(db, f"{socket.gethostname()[:100]}-{os.getpid()}", queues=queues)


def claim(
    db: JobDatabase, worker_id: str, *, queues: Collection[str] | None = None
) -> Claim | None:
    """:func:`claim_with_lease` with a lease of the setting ``LOCK_GRACE_SECONDS``."""
    return claim_with_lease(db, worker_id, get_settings().LOCK_GRACE_SECONDS, queues=queues)


def claim_with_lease(
    db: JobDatabase, worker_id: str, lease: float, *, queues: Collection[str] | None = None
) -> Claim | None:
    """Claim the next eligible job for ``lease`` seconds; ``None`` when none can be claimed now.

    The first of :func:`get_next_pending` that pauses, limits and deployments let through, as for
    any worker. A job that has expired, that has been asked to stop, or whose data cannot be read,
    is ended on the way. ``worker_id`` (up to 150 characters) names who runs it. Call it outside a
    transaction. Raises ``InvalidOptionError``.
    """
    lease_ms = _check(worker_id, lease, queues)
    looks = _LOOKS
    while looks:
        known, lanes = _look(db, queues)
        if not lanes:
            return None
        job = _take(db, known, lanes, worker_id, lease_ms)
        if job is None:
            looks -= 1
        elif claimed := _usable(db, job, worker_id, lease):
            return claimed
    return None


def mark_processing(
    db: JobDatabase, job_id: str, *, worker_id: str | None = None, lease: float | None = None
) -> Claim | None:
    """Claim this very job, as :func:`claim_with_lease` would.

    ``None`` if it is unknown, not pending, not due, waits for other jobs, or if a pause, a limit or
    its deployment holds it back; and if it has expired or been asked to stop, which ends it.
    Defaults as for :func:`claim_next_job` and :func:`claim`.
    """
    name = f"{socket.gethostname()[:100]}-{os.getpid()}" if worker_id is None else worker_id
    seconds = get_settings().LOCK_GRACE_SECONDS if lease is None else lease
    lease_ms = _check(name, seconds, None)
    key = check.parse_id(job_id)
    if key is None:
        return None
    known, served = _look(db, None)
    lane = reading.lane_of(db.scope, key)
    if lane is None or lane not in served:
        return None
    job = _take(db, known, [lane], name, lease_ms, only=key)
    return None if job is None else _usable(db, job, name, seconds)


def heartbeat(db: JobDatabase, claim: Claim, *, lease: float | None = None) -> bool:
    """Renew the lease of an attempt, to ``lease`` seconds from now or as long as it was claimed.

    False if the attempt no longer owns the job: stop its work, nothing it writes is kept. Call it
    two or three times in the length of a lease. Raises ``InvalidOptionError``.
    """
    require_own(db, claim)
    lease_ms = check.check_span("lease", claim.lease if lease is None else lease, above_zero=True)
    key = UUID(claim.id)
    held = [(key, claim.token)]
    renewed = link.call(db.scope, lambda: leases.renew(db.scope, held, lease_ms=lease_ms))
    return key in renewed.owned


def require_own(db: JobDatabase, claim: Claim) -> None:
    """Raises ``InvalidOptionError`` for a claim that was made through another namespace."""
    if claim.namespace != db.namespace:
        raise InvalidOptionError(
            f"claim is of namespace {claim.namespace!r}; the database was opened for"
            f" {db.namespace!r}"
        )


# --- how ------------------------------------------------------------------------------------------


def _check(worker_id: object, seconds: object, queues: object) -> int:
    """The lease in milliseconds, once everything has been looked at."""
    check.check_name("worker_id", worker_id, longest=150)
    _check_queues(queues)
    return check.check_span("lease", seconds, above_zero=True)


def _check_queues(queues: object) -> None:
    if isinstance(queues, str):
        raise InvalidOptionError(f"queues is {queues!r}; it must be a list of names, or None")


def _look(db: JobDatabase, queues: Collection[str] | None) -> tuple[Gates, list[str]]:
    """The gates, and the lanes that may be served, after what is due has been made ready."""
    # There may be no worker in the namespace that would do it.
    link.call(db.scope, lambda: promote.promote_due(db.scope))
    known = gates.read_gates(db.scope)
    lanes = _discover(db, queues)
    moved = False
    for _ in range(_RELANE_ROUNDS if known.tasks else 0):
        moved = True
        if not link.call(db.scope, partial(gates.relane, db.scope, lanes, known)):
            break
    return known, _discover(db, queues) if moved else lanes


def _discover(db: JobDatabase, queues: Collection[str] | None) -> list[str]:
    return claiming.discover_lanes(db.scope, queues=queues, deployment_id=db.deployment_id)


def _take(
    db: JobDatabase,
    known: Gates,
    lanes: list[str],
    worker_id: str,
    lease_ms: int,
    *,
    only: UUID | None = None,
) -> ClaimedJob | None:
    verb = partial(
        claiming.claim,
        db.scope,
        lanes=lanes,
        limit=1,
        worker_id=worker_id,
        lease_ms=lease_ms,
        gates=known,
        only=only,
    )
    jobs, _ = link.call(db.scope, verb)
    return jobs[0] if jobs else None


def _usable(db: JobDatabase, job: ClaimedJob, worker_id: str, seconds: float) -> Claim | None:
    """The claim, unless the job can only be ended."""
    if job.is_expired:
        end_owned(db, Outcome(job=job, ending=Ending.EXPIRED, error=words.EXPIRED))
        return None
    if job.is_cancel_requested:
        end_owned(db, Outcome(job=job, ending=Ending.CANCELLED, error=words.CANCELLED))
        return None
    try:
        data = data_of(job.payload)
    except SerializationError as error:
        text = describe_exception(error, limit_bytes=get_settings().MAX_ERROR_BYTES)
        end_owned(db, Outcome(job=job, ending=Ending.FAILED, error=text, retryable=False))
        return None
    return Claim(
        id=str(job.id),
        data=data,
        task_name=job.task_name,
        queue=job.queue,
        attempt=job.attempt,
        retry_count=job.retry_count,
        max_retries=job.max_retries,
        timeout=None if job.timeout_ms is None else job.timeout_ms / 1000,
        metadata=job.metadata,
        deployment_id=job.deployment_id,
        session_id=job.session_id,
        namespace=db.namespace,
        worker_id=worker_id,
        lease=seconds,
        token=job.token,
        lane=job.lane,
        began=time.monotonic(),
    )
