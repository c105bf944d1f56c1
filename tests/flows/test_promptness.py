"""What becomes ready without an enqueue starts soon, whichever process made it ready."""

import time

import pytest

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import job_row, values
from tests.flows.gates import Gate

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

#: Shorter than the pause of a worker that hears nothing, 5 s. Longer than the 2 s after which the
#: leader looks again for due jobs where, as on MariaDB, no enqueue can tell it of them.
SOON = 4.0


def seconds_late(job_id: str) -> float:
    """How long after it was due the job's last attempt began."""
    row = job_row(job_id)
    return float((row.started_at - row.scheduled_at).total_seconds())


def test_a_delayed_job_starts_when_it_is_due(workers: Workers) -> None:
    workers.start()

    jobs = [tasks.quick.apply_async(delay=delay) for delay in (0.3, 0.8, 1.4, 3.1)]

    for job in jobs:
        job.result(20)
        assert 0 <= seconds_late(job.id) < SOON


def test_a_retry_starts_when_it_is_due(workers: Workers) -> None:
    workers.start()

    job = tasks.fail_until.delay(3)

    assert job.result(20) == "attempt 3"
    first, second, third = (float(value) for value in values(job.id))
    assert 0.4 <= second - first < 0.4 + SOON
    assert 0.8 <= third - second < 0.8 + SOON


def test_another_worker_than_the_leader_starts_what_is_due(workers: Workers) -> None:
    leader = workers.start("--queues", "led")
    leader.wait_for_log("leadership taken")
    workers.start("--queues", "served")
    asleep = tasks.quick.apply_async(queue="served", delay=4.0)
    asleep.result(20)

    assert 0 <= seconds_late(asleep.id) < SOON


@pytest.mark.slow
def test_a_dependent_starts_soon_after_its_parent_ended_elsewhere(
    workers: Workers, gate: Gate
) -> None:
    workers.start("--queues", "parents")
    workers.start("--queues", "children")
    parent = tasks.hold.apply_async((str(gate),), queue="parents")
    gate.wait_until_reached()
    child = tasks.quick.apply_async(queue="children", depends_on=parent)
    sibling = tasks.quick.apply_async(queue="parents", depends_on=parent)
    timer = queue.enqueue(tasks.quick, queue="parents", delay=12)  # until then all fall asleep
    timer.result(30)

    gate.open()
    opened = time.monotonic()
    child.result(30, poll_interval=0.01)
    sibling.result(30, poll_interval=0.01)

    assert time.monotonic() - opened < SOON
