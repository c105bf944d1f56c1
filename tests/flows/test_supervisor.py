"""Several processes under one supervisor: they stop together, and none stays away for long."""

import os
import signal

import pytest

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row
from tests.flows.gates import Gate
from tests.processes import WorkerProcess, is_alive
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


#: Handles that a process has open always. To open one more is then refused.
STANDARD_STREAMS = 3


def test_ctrl_c_before_the_children_are_up_is_a_clean_end(workers: Workers) -> None:
    fleet = workers.launch("--processes", "3")
    wait_until(lambda: len(fleet.children()) == 3, 20)

    fleet.send_signal_to_group(signal.SIGINT)

    assert fleet.wait() == 0


def test_what_cannot_be_started_is_tried_again(workers: Workers) -> None:
    fleet = start_fleet(workers, 2)
    fleet.limit_handles(STANDARD_STREAMS)
    os.kill(fleet.children()[0], signal.SIGKILL)
    refused = r"cannot be started: .*; next try in"
    fleet.wait_for_log(rf"{refused} 1\.0 s(.*\n)*.*{refused} 2\.0 s")

    fleet.limit_handles(None)

    wait_until(lambda: len(fleet.children()) == 2, 20)
    wait_until(lambda: {each["pid"] for each in queue.workers()} >= set(fleet.children()), 20)
    assert fleet.terminate() == 0
    assert "Traceback" not in fleet.log


def test_a_signal_is_heard_while_nothing_can_be_started(workers: Workers) -> None:
    fleet = start_fleet(workers, 2)
    fleet.limit_handles(STANDARD_STREAMS)
    os.kill(fleet.children()[0], signal.SIGKILL)
    fleet.wait_for_log("cannot be started")

    assert fleet.terminate() == 0
    assert queue.stats()["running"] == 0
    assert len(queue.workers()) == 1  # of the one that was killed


def test_a_supervisor_that_fails_lets_its_children_drain(workers: Workers, gate: Gate) -> None:
    broken = {"DJANGO_SETTINGS_MODULE": "tests.flows.broken_supervisor_settings"}
    fleet = workers.launch("--processes", "2", "--concurrency", "1", environment=broken)
    wait_until(lambda: len(queue.workers()) == 2, 30)
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    (idle,) = [each for each in queue.workers() if each["id"] != job_row(job.id).worker_id]
    os.kill(idle["pid"], signal.SIGKILL)
    fleet.wait_for_log("drains: 1 jobs in hand")
    gate.open()

    assert fleet.wait() == 1
    assert "a fault of the supervisor" in fleet.log
    assert job.result(1) == "attempt 1"


def test_a_burst_goes_on_where_a_process_has_run_its_share(workers: Workers) -> None:
    queue.enqueue_many(tasks.quick, [()] * 9)

    fleet = workers.burst("--processes", "2", "--concurrency", "1", "--max-jobs", "2")

    assert queue.stats()["completed"] == 9
    assert "recycled" in fleet.log
