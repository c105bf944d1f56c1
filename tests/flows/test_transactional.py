"""A transactional task and its completion: both, or neither."""

import signal
from datetime import UTC, datetime, timedelta

import pytest

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import SHORT_LEASE, Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, keys, values
from tests.flows.gates import Gate
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def test_a_kill_in_the_middle_leaves_neither(workers: Workers, gate: Gate) -> None:
    doomed = workers.start("--concurrency", "1", **SHORT_LEASE)
    job = tasks.hold_first_together.delay(str(gate))
    gate.wait_until_reached()
    assert values("together") == []  # it is not committed

    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    second = workers.start("--concurrency", "1", **SHORT_LEASE)

    assert job.result(40) == "attempt 2"
    assert values("together") == ["attempt 2"]
    row = job_row(job.id)
    assert (row.status, row.attempt, row.retry_count) == ("complete", 2, 1)
    assert [error[:11] for error in errors_of(job.id)] == ["worker lost"]
    assert_quiet(second)


def test_a_failure_rolls_back_what_the_body_wrote(workers: Workers) -> None:
    job = tasks.write_together_and_fail.delay()
    workers.burst()

    assert job_row(job.id).status == "dead"
    assert keys() == {}
    assert len(errors_of(job.id)) == 1


def test_what_the_body_enqueues_commits_with_it(workers: Workers) -> None:
    good = tasks.enqueue_together.delay(fails=False)
    bad = tasks.enqueue_together.delay(fails=True)

    workers.burst()

    assert keys() == {"enqueued by False": 1}
    assert (job_row(good.id).status, job_row(bad.id).status) == ("complete", "dead")


def test_many_transactional_jobs_and_their_rows(workers: Workers) -> None:
    jobs = queue.enqueue_many(tasks.add_note_together, [(f"{n}",) for n in range(200)])

    workers.burst("--processes", "2")

    assert len(keys()) == 200
    assert set(keys().values()) == {1}
    assert {job_row(job.id).attempt for job in jobs} == {1}


@pytest.mark.row_locks
def test_the_lease_is_renewed_while_the_body_is_inside_its_transaction(
    workers: Workers, gate: Gate
) -> None:
    workers.start("--concurrency", "1", **SHORT_LEASE)
    job = tasks.hold_first_together.delay(str(gate))
    gate.wait_until_reached()
    other = workers.start(**SHORT_LEASE)
    first_lease = job_row(job.id).lease_at

    wait_until(lambda: (job_row(job.id).lease_at - first_lease).total_seconds() > 5, 20)
    gate.open()

    assert job.result(10) == "attempt 1"
    assert values("together") == ["attempt 1"]
    assert_quiet(other)


@pytest.mark.slow
def test_a_long_transaction_on_sqlite_outlives_its_lease(
    workers: Workers, gate: Gate, vendor: str
) -> None:
    if vendor != "sqlite":
        pytest.skip("only on SQLite does a body's transaction keep all others from writing")
    first = workers.start("--concurrency", "1", **SHORT_LEASE)
    job = tasks.hold_first_together.delay(str(gate))
    gate.wait_until_reached()
    second = workers.launch(**SHORT_LEASE)

    # Nobody can renew the lease, and nobody can take the job: the same lock stands before both.
    lease_at = job_row(job.id).lease_at
    wait_until(lambda: datetime.now(UTC) > lease_at + timedelta(seconds=1), 20)
    gate.open()

    assert job.result(20) == "attempt 1"
    assert values("together") == ["attempt 1"]
    assert job_row(job.id).attempt == 1
    assert first.terminate() == 0
    assert_quiet(first, second)
