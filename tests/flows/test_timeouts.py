"""A body that takes too long loses its job, not the worker's slot."""

import time

import pytest

from flexiq_django import queue
from flexiq_django.core.errors import parse_error
from flexiq_django.models import TaskMetric
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, keys
from tests.flows.gates import Gate
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def test_bodies_that_never_end_leave_their_slots_to_others(workers: Workers) -> None:
    worker = workers.start("--concurrency", "4", STOP_TIMEOUT_SECONDS=1)
    stuck = queue.enqueue_many(tasks.sleep_for_ever, [()] * 4)
    wait_until(lambda: queue.stats()["running"] == 4)
    asked = time.monotonic()

    assert tasks.give.delay("quick").result(10) == "quick"

    assert time.monotonic() - asked < 5
    wait_until(lambda: queue.stats()["dead"] == 4, 10)
    for job in stuck:
        assert job_row(job.id).error == "job timed out after 1000ms"
        assert errors_of(job.id) == ["job timed out after 1000ms"]
    metrics = TaskMetric.objects.filter(job_id__in=[job.id for job in stuck])
    assert all(1000 < metric.duration_ms < 4000 for metric in metrics)
    assert metrics.count() == 4
    worker.send_signal(15)
    worker.wait(20)  # the threads that never end do not hold the process
    assert_quiet(worker)


def test_the_slots_are_as_many_as_before(workers: Workers, gate: Gate) -> None:
    workers.start("--concurrency", "3")
    queue.enqueue_many(tasks.sleep_for_ever, [()] * 3)
    wait_until(lambda: queue.stats()["dead"] == 3, 15)

    queue.enqueue_many(tasks.hold_as, [(str(gate), f"body {number}") for number in range(5)])
    wait_until(lambda: gate.arrivals() == 3)
    gate.open()

    wait_until(lambda: queue.stats()["completed"] == 5)


def test_a_retry_beside_its_own_stray_costs_no_slot(workers: Workers, gate: Gate) -> None:
    workers.start("--concurrency", "1")
    job = tasks.sleep_once.delay(str(gate))

    # The second attempt ends while the thread of the first is still stuck.
    assert job.result(15) == "attempt 2"
    assert tasks.give.delay("between").result(15) == "between"
    gate.open()
    wait_until(lambda: keys()["stray has ended"] == 1)

    assert tasks.give.delay("after").result(15) == "after"
    row = job_row(job.id)
    assert (row.status, row.attempt, row.retry_count) == ("complete", 2, 1)
    assert errors_of(job.id) == ["job timed out after 500ms"]


def test_a_body_that_returns_late_has_timed_out(workers: Workers) -> None:
    job = tasks.return_late.delay()
    in_time = tasks.give.delay("in time")
    workers.burst()

    row = job_row(job.id)
    assert (row.status, row.error, row.result) == ("dead", "job timed out after 200ms", None)
    assert in_time.result() == "in time"


@pytest.mark.row_locks
def test_a_transaction_that_ends_late_is_rolled_back(workers: Workers) -> None:
    job = tasks.return_late_together.delay()
    workers.burst()

    assert job_row(job.id).status == "dead"
    assert keys() == {}


def test_the_soft_timeout_is_the_bodys_to_see(workers: Workers) -> None:
    job = tasks.work_until_soft_timeout.delay()
    workers.burst()

    row = job_row(job.id)
    assert row.status == "dead"
    assert parse_error(row.error).errtype.endswith("SoftTimeoutError")


def test_the_timeout_of_the_call_outranks_the_tasks(workers: Workers, gate: Gate) -> None:
    workers.start()
    job = tasks.hold.apply_async((str(gate),), timeout=0.3, max_retries=0)

    wait_until(lambda: job_row(job.id).status == "dead")

    assert job_row(job.id).error == "job timed out after 300ms"
    gate.open()
