"""What the tests of several verbs do: enqueue, claim, settle, and look at rows."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from flexiq_django.core.records import ClaimedJob, NewJob, Settlement
from flexiq_django.models import Job
from flexiq_django.store import claim as claiming
from flexiq_django.store import sessions
from flexiq_django.store.enqueue import insert_jobs
from flexiq_django.store.gates import read_gates, relane
from flexiq_django.store.scope import Scope
from tests.factories import NewJobFactory, at

LEASE_MS = 60_000


def enqueue(count: int = 1, scope: Scope | None = None, **fields: Any) -> list[NewJob]:
    """Store so many jobs alike; as they were given to the store."""
    jobs = [NewJobFactory(**fields) for _ in range(count)]
    insert_jobs(scope or at(), jobs)
    named = {job.session_id for job in jobs if job.session_id is not None}
    if named and connection.in_atomic_block:  # of the test: there is no commit to look after
        sessions.look(scope or at(), named)
    return jobs


def enqueue_one(scope: Scope | None = None, **fields: Any) -> UUID:
    """Store one job; its id."""
    return enqueue(1, scope, **fields)[0].id


def claim(
    scope: Scope | None = None,
    *,
    limit: int = 100,
    queues: Sequence[str] | None = None,
    deployment_id: str | None = None,
    worker_id: str = "worker-1",
    lease_ms: int = LEASE_MS,
) -> list[ClaimedJob]:
    """Claim as a worker does: look for lanes and gates, then take."""
    where = scope or at()
    gates = read_gates(where)
    lanes = claiming.discover_lanes(where, queues=queues, deployment_id=deployment_id)
    if gates.tasks:
        while relane(where, lanes, gates):
            pass
        lanes = claiming.discover_lanes(where, queues=queues, deployment_id=deployment_id)
    return claiming.claim(
        where, lanes=lanes, limit=limit, worker_id=worker_id, lease_ms=lease_ms, gates=gates
    ).jobs


def claim_one(scope: Scope | None = None, **options: Any) -> ClaimedJob:
    """Claim the best job."""
    (job,) = claim(scope, limit=1, **options)
    return job


def running(scope: Scope | None = None, **fields: Any) -> ClaimedJob:
    """Store a job and claim it."""
    enqueue_one(scope, **fields)
    return claim_one(scope)


def settlement(job: ClaimedJob, status: str = "complete", **fields: Any) -> Settlement:
    """How an attempt at this job ends."""
    return Settlement(
        job_id=job.id,
        token=job.token,
        status=status,
        task_name=job.task_name,
        lane=job.lane,
        retry_count=job.retry_count,
        session_id=job.session_id,
        **fields,
    )


def stored(job_id: UUID) -> Job:
    """The row as it is now."""
    return Job.objects.get(id=job_id)


def statuses(*job_ids: UUID) -> list[str]:
    """The status of each."""
    found = dict(Job.objects.filter(id__in=job_ids).values_list("id", "status"))
    return [found[key] for key in job_ids]
