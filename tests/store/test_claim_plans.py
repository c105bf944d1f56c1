"""A worker's whole look reads by index, whatever is at the head of the line and must not start.

It finds the lanes, reads pauses and limits, and claims. Two thousand jobs of each kind are older,
and of a higher priority, than the few it is after.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flexiq_django.core.lanes import lane_name
from flexiq_django.models import Job, QueueState, TaskState
from flexiq_django.store import claim
from flexiq_django.store.gates import read_gates
from tests.store import crowd
from tests.store.crowd import HOUR, SCOPE, TRAPS, WANTED, job_fields, store
from tests.store.plans import Case, assert_reads_by_index

LIMITED = "app.tasks.limited"
NOW = datetime.now(UTC)
RATE = {"rate_limit": "1/h", "rate_full_at": NOW + HOUR * 24}

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def stored_crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    yield from crowd.stored(django_db_blocker, _store_crowd, Job)


def _store_crowd() -> None:
    ready: dict[str, Any] = {"priority": 9, "scheduled_at": NOW - HOUR}
    task = {"task_name": LIMITED}
    running = {"status": "running", "token": 1, "lease_at": NOW + 24 * HOUR}
    for count, fields in [
        (TRAPS, {**ready, "ready_lane": "mail"}),
        (TRAPS, {**ready, **task, "ready_lane": lane_name("mail", None, LIMITED)}),
        (TRAPS, {**ready, "promote_at": NOW + HOUR}),
        (TRAPS, ready),
        (TRAPS, {**ready, "status": "complete", "completed_at": NOW - HOUR}),
        (1, running),
        (1, {**running, **task}),
        (WANTED, {"ready_lane": "third", "queue": "third"}),
    ]:
        store(Job, count, {**job_fields("default", NOW), **fields})


def look_for_one_queue() -> None:
    """The crowd is in a queue that this worker does not serve, or is not ready."""
    _look(queues=["third"])


def look_beside_paused() -> None:
    """The queue of the crowd is paused."""
    QueueState.objects.create(namespace="default", name="mail", paused_at=NOW)
    _look()


def look_beside_rate_of_queue() -> None:
    """The queue of the crowd has used up its rate."""
    QueueState.objects.create(namespace="default", name="mail", **RATE)
    _look()


def look_beside_cap_of_queue() -> None:
    """As many jobs of the queue of the crowd run as may."""
    QueueState.objects.create(namespace="default", name="mail", max_concurrent=2)
    _look()


def look_beside_rate_of_task() -> None:
    """The task of the crowd has used up its rate."""
    TaskState.objects.create(namespace="default", name=LIMITED, **RATE)
    _look(queue="mail")


def look_beside_cap_of_task() -> None:
    """As many jobs of the task of the crowd run as may."""
    TaskState.objects.create(namespace="default", name=LIMITED, max_concurrent=1)
    _look(queue="mail")


def _look(*, queue: str = "third", queues: list[str] | None = None) -> None:
    """Find lanes and gates and claim ten jobs, all of this queue and without a limit."""
    lanes = claim.discover_lanes(SCOPE, queues=queues, deployment_id=None)
    gates = read_gates(SCOPE)
    jobs = claim.claim(
        SCOPE, lanes=lanes, limit=10, worker_id="plan", lease_ms=60_000, gates=gates
    ).jobs
    assert [(job.queue, job.task_name) for job in jobs] == [(queue, "app.tasks.work")] * 10


CASES = [
    Case(verb=look_for_one_queue, indexes=("flexiq_jobs_claim",), most=80),
    Case(verb=look_beside_paused, indexes=("flexiq_jobs_claim",), most=80),
    Case(verb=look_beside_rate_of_queue, indexes=("flexiq_jobs_claim",), most=80),
    Case(
        verb=look_beside_cap_of_queue, indexes=("flexiq_jobs_claim", "flexiq_jobs_lease"), most=80
    ),
    Case(
        verb=look_beside_rate_of_task,
        indexes=("flexiq_jobs_claim",),
        sorts={"sqlite": 1, "postgresql": 1},
        most=200,
    ),
    Case(
        verb=look_beside_cap_of_task,
        indexes=("flexiq_jobs_claim", "flexiq_jobs_lease"),
        sorts={"sqlite": 1, "postgresql": 1},
        most=200,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.verb.__name__)
def test_a_look_reads_by_its_index(vendor: str, case: Case) -> None:
    assert_reads_by_index(vendor, case)
