"""SIGTERM: what is in hand gets its time, what is not begun goes back, nothing new is taken."""

import signal
import threading
import time

import pytest
from django.db import transaction

from flexiq_django import queue
from flexiq_django.models import DeadLetter, Job, Worker
from tests.concurrency import OtherConnection
from tests.flows import tasks
from tests.flows.conftest import SHORT_LEASE, Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, keys, values
from tests.flows.gates import Gate
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

INTERRUPTED = "interrupted by worker shutdown"


def test_an_idle_worker_leaves_at_once(workers: Workers) -> None:
    worker = workers.start()

    asked = time.monotonic()
    assert worker.terminate() == 0
    assert time.monotonic() - asked < 5
    assert queue.workers() == []
    assert_quiet(worker)


def test_a_short_job_in_hand_finishes(workers: Workers, gate: Gate) -> None:
    worker = workers.start()
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    worker.send_signal(signal.SIGTERM)
    worker.wait_for_log("drains: 1 jobs in hand")
    gate.open()

    assert worker.wait() == 0
    assert job.result() == "attempt 1"
    assert errors_of(job.id) == []
    assert_quiet(worker)


def test_nothing_is_claimed_after_the_first_signal(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--concurrency", "4")
    tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    worker.send_signal(signal.SIGTERM)
    worker.wait_for_log("drains")
    late = tasks.quick.delay()
    gate.open()

    assert worker.wait() == 0
    row = job_row(late.id)
    assert (row.status, row.attempt, row.worker_id) == ("pending", 0, None)


def test_a_long_job_with_attempts_left_goes_back(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--drain-timeout", "0.5")
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    assert worker.terminate() == 1

    row = job_row(job.id)
    assert (row.status, row.retry_count, row.lease_at) == ("pending", 1, None)
    assert errors_of(job.id) == [INTERRUPTED]
    gate.open()
    workers.burst()
    assert job.result() == "attempt 2"


@pytest.mark.parametrize("ask", ["check_cancelled", "check_timeout"])
def test_a_straggler_is_told_and_gone_before_its_job_is_free(
    workers: Workers, gate: Gate, ask: str
) -> None:
    worker = workers.start("--drain-timeout", "0.3")
    job = tasks.hold_until_over.delay(str(gate), ask)
    gate.wait_until_reached()

    assert worker.terminate() == 1

    row = job_row(job.id)
    assert (row.status, errors_of(job.id)) == ("pending", [INTERRUPTED])
    assert values(f"told by {ask}") == ["running"]  # nobody else could have claimed it by then
    assert worker.log.count(f"job {job.id}") == 2  # interrupted, and what it returned is dropped
    gate.open()
    workers.burst()
    assert job.result() == "attempt 2"
    assert_quiet(worker)


def test_a_long_job_without_attempts_left_dies(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--drain-timeout", "0.5")
    job = tasks.hold.apply_async((str(gate),), max_retries=0)
    gate.wait_until_reached()

    assert worker.terminate() == 1

    row = job_row(job.id)
    assert (row.status, row.error) == ("dead", INTERRUPTED)
    assert DeadLetter.objects.get().original_job_id == row.id


def test_two_signals_leave_at_once(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--drain-timeout", "60")
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    worker.send_signal(signal.SIGTERM)
    worker.wait_for_log("drains")
    asked = time.monotonic()
    worker.send_signal(signal.SIGTERM)

    assert worker.wait() == 1
    assert time.monotonic() - asked < 6
    assert job_row(job.id).status == "pending"
    assert errors_of(job.id) == [INTERRUPTED]


def test_the_lease_is_kept_during_the_drain(workers: Workers, gate: Gate) -> None:
    draining = workers.start("--drain-timeout", "60", **SHORT_LEASE)
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()
    draining.send_signal(signal.SIGTERM)
    draining.wait_for_log("drains")
    other = workers.start(**SHORT_LEASE)
    first_lease = job_row(job.id).lease_at

    # Three times as long as a lease lasts, by the database's own clock.
    wait_until(lambda: (job_row(job.id).lease_at - first_lease).total_seconds() > 6, 20)
    gate.open()

    assert draining.wait() == 0
    assert job.result() == "attempt 1"
    assert not gate.has_been_reached(2)
    assert other.terminate() == 0


def test_unstarted_jobs_are_given_back_unchanged(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--concurrency", "1")
    queue.enqueue_many(tasks.quick, [()] * 300)  # quick ones: from now on it fetches many
    wait_until(lambda: queue.stats()["completed"] == 300, 30)
    blocker = tasks.hold.apply_async((str(gate),), priority=5, delay=0.5)
    notes = queue.enqueue_many(tasks.note, [("late",)] * 20, delay=0.5)
    gate.wait_until_reached()
    claimed = Job.objects.filter(id__in=[job.id for job in notes], status="running")
    wait_until(claimed.exists, 10, "jobs claimed in advance")

    worker.send_signal(signal.SIGTERM)
    wait_until(lambda: not claimed.exists())
    gate.open()

    assert worker.wait() == 0
    assert blocker.result() == "attempt 1"
    rows = Job.objects.filter(id__in=[job.id for job in notes])
    assert set(rows.values_list("status", "attempt", "retry_count")) == {("pending", 0, 0)}
    assert keys()["late"] == 0
    workers.burst()
    assert keys()["late"] == 20
    assert set(rows.values_list("status", "attempt")) == {("complete", 1)}


def test_jobs_held_in_advance_go_to_others_when_a_long_one_blocks(
    workers: Workers, gate: Gate
) -> None:
    blocked = workers.start("--concurrency", "1")
    queue.enqueue_many(tasks.quick, [()] * 300)
    wait_until(lambda: queue.stats()["completed"] == 300, 30)
    tasks.hold.apply_async((str(gate),), priority=5, delay=0.5)
    queue.enqueue_many(tasks.note, [("late",)] * 20, delay=0.5)
    gate.wait_until_reached()

    workers.start("--concurrency", "1")

    wait_until(lambda: keys()["late"] == 20, 30, "the other worker to run what waits")
    rows = Job.objects.filter(task_name=tasks.note.name)
    wait_until(lambda: set(rows.values_list("status", "attempt")) == {("complete", 1)})
    gate.open()
    assert blocked.terminate() == 0


def test_short_jobs_do_not_wait_behind_long_ones_while_a_slot_is_free(
    workers: Workers, gate: Gate
) -> None:
    for _ in range(2):
        workers.start("--concurrency", "2")
    queue.enqueue_many(tasks.quick, [()] * 400)  # both have learnt to fetch many
    wait_until(lambda: queue.stats()["completed"] == 400, 30)

    with transaction.atomic():  # three of the four slots for long ones, wherever they fall
        for number in range(30):
            tasks.note.delay("short")
            if number % 10 == 0:
                tasks.hold_as.delay(str(gate), f"long {number}")

    wait_until(lambda: keys()["short"] == 30, 30, "every short job to end")
    assert gate.arrivals() == 3
    assert queue.stats()["running"] == 3
    rows = Job.objects.filter(task_name=tasks.note.name)
    assert set(rows.values_list("attempt", flat=True)) == {1}
    gate.open()


@pytest.mark.row_locks
def test_a_locked_table_does_not_hold_the_process(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--drain-timeout", "1", HEARTBEAT_SECONDS=0.3)
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()
    locker = OtherConnection()
    is_locked, may_end = threading.Event(), threading.Event()

    def lock_the_workers_row() -> None:
        with transaction.atomic():
            list(Worker.objects.select_for_update())
            is_locked.set()
            may_end.wait(60)

    locked = locker.submit(lock_the_workers_row)
    assert is_locked.wait(20)
    asked = time.monotonic()

    assert worker.terminate(45) == 1

    assert time.monotonic() - asked < 25
    assert job_row(job.id).status == "pending"
    may_end.set()
    locked.result(20)
    locker.close()
