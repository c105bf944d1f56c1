"""A worker that stands still past its lease: what it says when it wakes up no longer counts."""

from collections.abc import Iterator
from typing import Any

import pytest

from flexiq_django import queue
from flexiq_django.models import TaskMetric
from tests.flows import tasks
from tests.flows.conftest import SHORT_LEASE, Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, log_lines_of, values
from tests.flows.gates import Gate
from tests.processes import WorkerProcess
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def rescuer(workers: Workers, second_gate: Gate) -> Iterator[WorkerProcess]:
    """A worker that leads, and takes no other job before `second_gate` opens."""
    worker = workers.start("--concurrency", "1", **SHORT_LEASE)
    worker.wait_for_log("leadership taken")
    tasks.hold.delay(str(second_gate))
    second_gate.wait_until_reached()
    return worker


def freeze_past_the_lease(
    workers: Workers, task: Any, gate: Gate, second_gate: Gate
) -> tuple[WorkerProcess, str]:
    """Let a new worker begin the job, freeze it, and let the rescuer complete the job."""
    frozen = workers.start("--concurrency", "1", **SHORT_LEASE)
    job = task.delay(str(gate))
    gate.wait_until_reached()
    frozen.freeze()
    second_gate.open()
    assert job.result(30) == "attempt 2"
    gate.open()
    return frozen, job.id


def test_late_completion_progress_and_log_are_refused(
    workers: Workers, rescuer: WorkerProcess, gate: Gate, second_gate: Gate
) -> None:
    frozen, job_id = freeze_past_the_lease(workers, tasks.hold_first, gate, second_gate)

    frozen.thaw()
    frozen.wait_for_log(f"late result of job {job_id} .* dropped")
    frozen.wait_for_log(f"late .*(progress|log).* of job {job_id} .* dropped")

    row = job_row(job_id)
    assert (row.status, row.attempt, row.retry_count) == ("complete", 2, 1)
    assert queue.get_job(job_id).result() == "attempt 2"
    assert row.progress == 20
    assert log_lines_of(job_id) == ["attempt 2"]
    (lost,) = errors_of(job_id)
    assert lost.startswith("worker lost")
    assert TaskMetric.objects.filter(job_id=job_id).count() == 1
    assert frozen.terminate() == 0
    assert rescuer.terminate() == 0
    assert_quiet(frozen, rescuer)


def test_late_failure_is_refused(
    workers: Workers, rescuer: WorkerProcess, gate: Gate, second_gate: Gate
) -> None:
    frozen, job_id = freeze_past_the_lease(workers, tasks.hold_first_and_fail, gate, second_gate)

    frozen.thaw()
    frozen.wait_for_log(f"late result of job {job_id} .* dropped")

    row = job_row(job_id)
    assert (row.status, row.error, row.attempt) == ("complete", None, 2)
    assert len(errors_of(job_id)) == 1  # the lost worker's, not the late exception
    assert TaskMetric.objects.filter(job_id=job_id, succeeded=False).count() == 0


@pytest.mark.row_locks
def test_late_transaction_is_rolled_back(
    workers: Workers, rescuer: WorkerProcess, gate: Gate, second_gate: Gate
) -> None:
    frozen, job_id = freeze_past_the_lease(workers, tasks.hold_first_together, gate, second_gate)

    frozen.thaw()
    frozen.wait_for_log(f"late result of job {job_id} .* dropped")

    assert values("together") == ["attempt 2"]
    assert job_row(job_id).status == "complete"


def test_the_thawed_worker_works_on(
    workers: Workers, rescuer: WorkerProcess, gate: Gate, second_gate: Gate
) -> None:
    frozen, job_id = freeze_past_the_lease(workers, tasks.hold_first, gate, second_gate)
    rescuer.terminate()

    frozen.thaw()

    assert tasks.give.delay(7).result(30) == 7
    wait_until(lambda: queue.stats()["running"] == 0)
    assert job_row(job_id).worker_id != job_row(tasks.give.delay(1).id).worker_id
