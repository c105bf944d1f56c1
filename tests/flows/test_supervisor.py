"""Several processes under one supervisor: they stop together, and none stays away for long."""

import os
import signal

import pytest

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row
from tests.flows.gates import Gate
from tests.processes import WorkerProcess
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.flows,
    pytest.mark.mechanics,
    pytest.mark.django_db(transaction=True),
]


def start_fleet(workers: Workers, processes: int, *arguments: str) -> WorkerProcess:
    fleet = workers.launch("--processes", f"{processes}", "--concurrency", "1", *arguments)
    wait_until(lambda: len(queue.workers()) == processes, 30, "all processes at work")
    return fleet


def test_sigterm_lets_every_process_finish(workers: Workers, gate: Gate) -> None:
    fleet = start_fleet(workers, 3)
    queue.enqueue_many(tasks.hold_as, [(str(gate), f"job {number}") for number in range(3)])
    wait_until(lambda: gate.arrivals() == 3, 20)

    fleet.send_signal(signal.SIGTERM)
    wait_until(lambda: fleet.log.count("drains: 1 jobs in hand") == 3, 20)
    gate.open()

    assert fleet.wait() == 0
    assert queue.stats()["completed"] == 3
    assert queue.workers() == []
    assert_quiet(fleet)


def test_stragglers_of_every_process_go_back(workers: Workers, gate: Gate) -> None:
    fleet = start_fleet(workers, 3, "--drain-timeout", "0.5")
    jobs = queue.enqueue_many(tasks.hold_as, [(str(gate), f"job {number}") for number in range(3)])
    wait_until(lambda: gate.arrivals() == 3, 20)

    assert fleet.terminate() == 1

    assert queue.stats()["pending"] == 3
    assert {tuple(errors_of(job.id)) for job in jobs} == {("interrupted by worker shutdown",)}


def test_two_signals_to_the_supervisor_leave_at_once(workers: Workers, gate: Gate) -> None:
    fleet = start_fleet(workers, 2, "--drain-timeout", "60")
    tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    fleet.send_signal(signal.SIGTERM)
    fleet.wait_for_log("drains: 1 jobs in hand")
    fleet.send_signal(signal.SIGTERM)

    assert fleet.wait(10) == 1
    assert queue.stats()["pending"] == 1


def test_children_drain_when_the_supervisor_is_killed(workers: Workers, gate: Gate) -> None:
    fleet = start_fleet(workers, 2)
    children = fleet.children()
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    fleet.send_signal(signal.SIGKILL)
    fleet.wait()
    wait_until(lambda: fleet.log.count("drains") == 2, 20)
    gate.open()

    wait_until(lambda: not any(is_alive(child) for child in children), 20)
    assert job.result() == "attempt 1"
    assert queue.workers() == []


def test_a_killed_child_is_replaced(workers: Workers, gate: Gate) -> None:
    fleet = start_fleet(workers, 2)
    before = set(fleet.children())
    victim = before.pop()

    os.kill(victim, signal.SIGKILL)
    (survivor,) = before

    fleet.wait_for_log(rf"worker process {victim} ended \(signal 9\)")
    wait_until(lambda: len(fleet.children()) == 2, 20)
    wait_until(lambda: {each["pid"] for each in queue.workers()} >= set(fleet.children()), 20)
    assert survivor in fleet.children()
    assert victim not in fleet.children()
    assert fleet.terminate() == 0


def test_a_child_is_recycled_after_its_share_of_jobs(workers: Workers) -> None:
    fleet = start_fleet(workers, 2, "--max-jobs", "10")
    jobs = queue.enqueue_many(tasks.quick, [()] * 60)

    wait_until(lambda: queue.stats()["completed"] == 60, 60)

    assert {job_row(job.id).attempt for job in jobs} == {1}
    assert len({job_row(job.id).worker_id for job in jobs}) >= 6
    assert fleet.terminate() == 0
    assert_quiet(fleet)


def test_a_signal_before_the_children_are_up_stops_all(workers: Workers) -> None:
    fleet = workers.launch("--processes", "3")
    wait_until(lambda: len(fleet.children()) == 3, 20)

    assert fleet.terminate() == 0


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_burst_goes_on_where_a_process_has_run_its_share(workers: Workers) -> None:
    queue.enqueue_many(tasks.quick, [()] * 9)

    fleet = workers.burst("--processes", "2", "--concurrency", "1", "--max-jobs", "2")

    assert queue.stats()["completed"] == 9
    assert "recycled" in fleet.log
