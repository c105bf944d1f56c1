"""A running job can be asked to stop, and says how far it is, wherever its body stands."""

import pytest

from flexiq_django import queue
from flexiq_django.exceptions import JobNotActiveError, TaskCancelledError
from flexiq_django.models import DeadLetter
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, keys, log_lines_of
from tests.flows.gates import Gate
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(
    "name",
    [
        "work_until_cancelled",
        pytest.param("work_in_atomic_until_cancelled", marks=pytest.mark.row_locks),
        pytest.param("work_together_until_cancelled", marks=pytest.mark.row_locks),
    ],
)
def test_a_running_job_stops_when_asked(workers: Workers, gate: Gate, name: str) -> None:
    worker = workers.start()
    job = getattr(tasks, name).delay(str(gate))
    gate.wait_until_reached()

    assert queue.cancel_running_job(job.id)

    with pytest.raises(TaskCancelledError):
        job.result(10)
    row = job_row(job.id)
    assert (row.status, row.attempt) == ("cancelled", 1)
    assert keys() == {}  # what it had half done is rolled back
    assert errors_of(job.id) == []
    assert not DeadLetter.objects.exists()
    assert_quiet(worker)


def test_a_job_that_does_not_ask_runs_to_its_end(workers: Workers, gate: Gate) -> None:
    workers.start()
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    assert queue.cancel_running_job(job.id)
    assert queue.cancel_running_job(job.id)  # asking again changes nothing
    assert not queue.cancel_job(job.id)  # that is for jobs that have not begun
    gate.open()

    assert job.result(10) == "attempt 1"


def test_a_cancelled_job_that_goes_on_is_cancelled_again_before_its_body(
    workers: Workers,
) -> None:
    kept, cleared = tasks.note.delay("kept"), tasks.note.delay("cleared")
    for job in (kept, cleared):
        assert queue.cancel_job(job.id)
    queue.grant_attempt(kept.id)
    queue.grant_attempt(cleared.id, clear_cancellation=True)

    workers.burst()

    assert keys() == {"cleared": 1}
    row = job_row(kept.id)
    assert (row.status, row.attempt, row.error) == ("cancelled", 1, "cancelled by request")
    assert row.started_at is None


def test_only_running_jobs_can_be_asked(workers: Workers) -> None:
    pending = tasks.quick.delay()
    assert not queue.cancel_running_job(pending.id)
    workers.burst()
    assert not queue.cancel_running_job(pending.id)
    assert not queue.cancel_running_job("no such job")


def test_progress_and_log_show_while_the_job_runs(workers: Workers, gate: Gate) -> None:
    workers.start()
    job = tasks.report.delay(str(gate))
    gate.wait_until_reached()

    wait_until(lambda: job_row(job.id).progress == 40, 5)
    wait_until(lambda: log_lines_of(job.id) == ["from inside"], 5)
    gate.open()

    job.result(10)
    assert job_row(job.id).progress == 90
    assert log_lines_of(job.id) == ["from inside", "at the end"]


@pytest.mark.row_locks
def test_progress_and_log_show_from_inside_a_transaction(workers: Workers, gate: Gate) -> None:
    workers.start()
    job = tasks.report_together.delay(str(gate))
    gate.wait_until_reached()

    wait_until(lambda: job_row(job.id).progress == 40, 5)
    wait_until(lambda: log_lines_of(job.id) == ["from inside"], 5)
    gate.open()
    job.result(10)


def test_progress_and_log_of_a_transactional_job_are_kept(workers: Workers, gate: Gate) -> None:
    gate.open()
    jobs = queue.enqueue_many(tasks.report_together, [(str(gate),)] * 20)

    worker = workers.burst("--concurrency", "4")

    for job in jobs:
        row = job_row(job.id)
        assert (row.status, row.progress) == ("complete", 90)
        assert log_lines_of(job.id) == ["from inside", "at the end"]
    assert "late" not in worker.log


def test_progress_from_outside_ends_with_the_job(workers: Workers) -> None:
    job = tasks.quick.delay()
    queue.update_progress(job.id, 10)
    assert job_row(job.id).progress == 10
    workers.burst()
    with pytest.raises(JobNotActiveError):
        queue.update_progress(job.id, 20)
