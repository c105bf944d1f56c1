"""Processes that have grown too large leave between jobs and are replaced; no job notices."""

import pytest

from flexiq_django import queue
from flexiq_django.worker.memory import MIB, resident_bytes
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, job_row
from tests.flows.gates import Gate
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.flows,
    pytest.mark.mechanics,
    pytest.mark.django_db(transaction=True),
]

GREW = r"resident memory is (\d+) MiB, more than the (\d+) MiB allowed"


def test_every_process_that_grows_is_replaced_and_no_job_lost(workers: Workers) -> None:
    fleet = workers.launch("--processes", "2", "--concurrency", "1", "--max-rss", "250M")
    wait_until(lambda: len(queue.workers()) == 2, 30)
    before = set(fleet.children())

    jobs = [tasks.keep.delay(270) for _ in range(2)]
    taken = {job.result(30) for job in jobs}
    grown, allowed = fleet.wait_for_log(GREW).groups()
    assert int(grown) > int(allowed) == 250
    wait_until(lambda: not taken & set(fleet.children()), 30, "those that grew are gone")
    wait_until(lambda: len(queue.workers()) == 2, 30, "and replaced")

    assert taken <= before
    more = queue.enqueue_many(tasks.quick, [()] * 20)
    wait_until(lambda: queue.stats()["completed"] == 22, 30)
    assert {job_row(job.id).attempt for job in [*jobs, *more]} == {1}
    assert fleet.log.count("(recycled); replaced in 0.0 s") >= len(taken)
    assert fleet.terminate() == 0
    assert_quiet(fleet)


def test_a_process_waits_for_its_other_jobs_however_short_the_drain(
    workers: Workers, gate: Gate
) -> None:
    worker = workers.start("--max-rss", "0.25G", "--concurrency", "2", "--drain-timeout", "0")
    held = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    assert tasks.keep.delay(270).result(30) == worker.pid
    worker.wait_for_log(GREW)
    late = tasks.quick.delay()
    gate.open()

    assert worker.wait() == 0
    assert held.result(10) == "attempt 1"
    assert job_row(late.id).status == "pending"


def test_a_process_that_is_born_too_large_still_works(workers: Workers) -> None:
    fleet = workers.launch("--processes", "2", "--max-rss", "1")
    jobs = queue.enqueue_many(tasks.quick, [()] * 3)

    wait_until(lambda: queue.stats()["completed"] == 3, 60)

    assert {job_row(job.id).attempt for job in jobs} == {1}
    assert fleet.terminate() == 0


def test_the_memory_of_this_process() -> None:
    before = resident_bytes()
    ballast = bytearray(b"x" * (64 * MIB))
    assert resident_bytes() - before > 32 * MIB
    del ballast
