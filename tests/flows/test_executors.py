"""What a job may rely on, whichever executor its worker uses."""

import json
import os
import signal
from pathlib import Path

import pytest

from flexiq_django import queue
from flexiq_django.core.errors import parse_error
from tests.flows import executor_tasks, tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, keys, log_lines_of
from tests.flows.gates import Gate
from tests.flows.old_code import enqueue_unfit
from tests.processes import WorkerProcess
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

EXECUTORS = ["threads", "processes", "coroutines"]


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def start(workers: Workers, executor: str, slots: int, *more: str) -> WorkerProcess:
    return workers.start("--executor", executor, "--concurrency", f"{slots}", *more)


def test_every_kind_of_job_ends_as_it_should(workers: Workers, executor: str) -> None:
    worker = start(workers, executor, 2)
    given = tasks.give.delay({"a": [1, 2.5, None, "ü"]})
    added = tasks.add_later.delay(2, 3)
    retried = tasks.fail_until.apply_async((2,), max_retries=2)
    permanent = tasks.fail_for_good.delay()
    limited = tasks.ask_to_wait.delay(0.1)
    exited = tasks.raise_one.delay("SystemExit")
    unfit = tasks.return_one.delay("object")
    wrong = enqueue_unfit(tasks.add.name, 1)
    wrong_later = enqueue_unfit(tasks.add_later.name, 1)
    unknown = queue.enqueue("nobody.knows", max_retries=0)
    together = executor_tasks.note_together.delay("together")
    asked = executor_tasks.ask_in_a_coroutine.delay()
    logged = tasks.log_much.delay(300)
    used = executor_tasks.use_the_database.delay("from a coroutine")

    wait_until(lambda: queue.stats()["pending"] + queue.stats()["running"] == 0, 60)

    assert (given.result(), added.result()) == ({"a": [1, 2.5, None, "ü"]}, 5)
    assert (retried.result(), limited.result()) == ("attempt 2", "attempt 2")
    assert [job_row(each.id).status for each in (permanent, exited, unfit)] == ["dead"] * 3
    assert [
        (job_row(each.id).status, job_row(each.id).attempt) for each in (wrong, wrong_later)
    ] == [("dead", 1)] * 2  # a call that cannot bind is permanent
    assert parse_error(job_row(unknown.id).error).errtype.endswith("UnknownTaskError")
    assert parse_error(job_row(exited.id).error).errtype == "SystemExit"
    assert (together.result(), asked.result()) == (True, asked.id)
    assert log_lines_of(logged.id) == ["x" * 300]
    assert (used.result()["found"], job_row(used.id).progress) == (1, 70)
    assert keys()["together"] == 1
    assert_quiet(worker)


@pytest.mark.mechanics
def test_bodies_that_never_end_leave_slots_and_the_process_behind(
    workers: Workers, executor: str
) -> None:
    worker = workers.start("--executor", executor, "--concurrency", "4", STRAY_GRACE_SECONDS=0.5)
    assert tasks.give.delay("before").result(30) == "before"
    threads = threads_of(worker)
    stuck = queue.enqueue_many(tasks.sleep_for_ever, [()] * 3)
    stuck.append(executor_tasks.await_for_ever.delay())
    wait_until(lambda: queue.stats()["running"] == 4, 30)

    assert tasks.give.delay("quick").result(20) == "quick"

    wait_until(lambda: queue.stats()["dead"] == 4, 10)
    assert {job_row(job.id).error for job in stuck} == {"job timed out after 1000ms"}
    if executor != "processes":  # threads cannot be ended: their process makes way for another
        worker.wait_for_log("the worker drains, to be started anew")
        worker.wait_for_log(r"(?s)worker \S+ started.*worker \S+ started")
    assert tasks.give.delay("after").result(30) == "after"
    wait_until(lambda: threads_of(worker) <= threads, 20, "no thread is left over")
    wait_until(lambda: len(worker.children()) == 4 * (executor == "processes"), 20)
    assert worker.terminate() == 0
    assert_quiet(worker)


@pytest.mark.mechanics
def test_a_requested_cancel_reaches_the_body(
    workers: Workers, executor: str, tmp_path: Path
) -> None:
    start(workers, executor, 2)
    sign = tmp_path / "here"
    job = executor_tasks.ask_often.delay(str(sign))
    wait_until(sign.exists, 30)

    assert queue.cancel_running_job(job.id)

    wait_until(lambda: job_row(job.id).status == "cancelled", 20)
    assert tasks.give.delay("after").result(20) == "after"


def test_stragglers_are_interrupted_and_end_with_the_worker(
    workers: Workers, executor: str, gate: Gate
) -> None:
    worker = start(workers, executor, 2, "--drain-timeout", "0.5")
    again = tasks.hold.delay(str(gate))
    other = gate.beside("other")
    last = tasks.hold.apply_async((str(other),), max_retries=0)
    gate.wait_until_reached()
    other.wait_until_reached()

    assert worker.terminate() == 1

    assert (job_row(again.id).status, job_row(last.id).status) == ("pending", "dead")
    assert errors_of(again.id) == errors_of(last.id) == ["interrupted by worker shutdown"]
    assert worker.children() == []


def test_jobs_that_wait_for_a_shared_thread_go_back_when_the_worker_leaves(
    workers: Workers, gate: Gate
) -> None:
    worker = start(workers, "coroutines", 16, "--drain-timeout", "0.5")
    gates = [gate.beside(f"thread-{number}") for number in range(8)]
    holding = queue.enqueue_many(executor_tasks.hold_a_thread, [(str(each),) for each in gates])
    for each in gates:
        each.wait_until_reached()
    waiting = queue.enqueue_many(executor_tasks.hold_a_thread, [(str(gate),)] * 8)
    wait_until(lambda: queue.stats()["running"] == 16, 20)

    assert worker.terminate() == 1

    assert {job_row(job.id).status for job in holding} == {"dead"}
    assert {(row.status, row.attempt) for row in (job_row(job.id) for job in waiting)} == {
        ("pending", 0)
    }


# --- child processes ------------------------------------------------------------------------------


@pytest.mark.mechanics
def test_a_child_that_dies_fails_one_attempt(workers: Workers, gate: Gate) -> None:
    worker = start(workers, "processes", 2)
    beside = tasks.hold.delay(str(gate))
    gate.wait_until_reached()
    job = executor_tasks.die.delay(True)
    gone = executor_tasks.leave.delay(3)

    assert job.result(30) == "attempt 2"

    wait_until(lambda: job_row(gone.id).status == "dead", 30)
    gate.open()
    assert beside.result(20) == "attempt 1"
    died = "the process of the job ended before its body did (signal 9)"
    assert errors_of(job.id) == [died]
    assert log_lines_of(job.id) == ["about to die"]
    assert "exit code 3" in (job_row(gone.id).error or "")
    assert_quiet(worker)


def test_a_body_is_killed_even_while_it_keeps_everybody_from_the_database(
    workers: Workers, tmp_path: Path
) -> None:
    worker = workers.start(
        *("--executor", "processes", "--concurrency", "1"), HEARTBEAT_SECONDS=0.3
    )
    sign = tmp_path / "here"
    job = executor_tasks.hang_with_a_lock.delay(str(sign))
    wait_until(sign.exists, 30)

    wait_until(lambda: job_row(job.id).status == "dead", 20)

    assert job_row(job.id).error == "job timed out after 1000ms"
    assert keys()["never committed"] == 0
    assert tasks.give.delay("after").result(30) == "after"
    assert_quiet(worker)


@pytest.mark.mechanics
def test_a_child_that_was_killed_while_it_was_idle_costs_no_job(workers: Workers) -> None:
    worker = start(workers, "processes", 1)
    (child, _parent) = executor_tasks.where_am_i.delay().result(30)
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_running(child), 10)

    (other, parent) = executor_tasks.where_am_i.delay().result(30)

    assert (other != child, parent) == (True, worker.pid)


@pytest.mark.mechanics
def test_a_child_that_dies_with_a_job_it_has_not_begun_costs_no_attempt(workers: Workers) -> None:
    worker = start(workers, "processes", 1)
    (child, _parent) = executor_tasks.where_am_i.delay().result(30)
    os.kill(child, signal.SIGSTOP)
    job = executor_tasks.where_am_i.delay()
    wait_until(lambda: job_row(job.id).status == "running", 20)
    os.kill(child, signal.SIGKILL)

    (other, parent) = job.result(30)

    assert (other != child, parent) == (True, worker.pid)
    assert (job_row(job.id).attempt, errors_of(job.id)) == (1, [])
    assert "is given back: its process ended before its body began" in worker.log


@pytest.mark.mechanics
def test_children_are_replaced_after_so_many_jobs(workers: Workers) -> None:
    worker = start(workers, "processes", 1, "--max-jobs", "2")
    seen = [executor_tasks.where_am_i.delay().result(30) for _ in range(5)]

    children = [child for child, _ in seen]
    assert children[0] == children[1] != children[2] == children[3] != children[4]
    assert {parent for _, parent in seen} == {worker.pid}


@pytest.mark.mechanics
def test_a_child_that_has_grown_too_large_is_replaced(workers: Workers) -> None:
    worker = start(workers, "processes", 1, "--max-rss", "200")
    small, large, next_one = (
        executor_tasks.hold_memory.delay(size << 20).result(30) for size in (1, 300, 1)
    )

    assert small == large != next_one
    worker.wait_for_log(f"process {large} is recycled")
    assert worker.exit_code is None  # the worker itself stays


@pytest.mark.mechanics
def test_what_a_child_logs_names_its_job(workers: Workers) -> None:
    worker = workers.start(
        *("--executor", "processes", "--concurrency", "1", "--log-format", "json"),
        environment={"DJANGO_SETTINGS_MODULE": "tests.flows.plain_logging_settings"},
    )
    job = executor_tasks.complain.delay()
    job.result(30)

    line = json.loads(worker.wait_for_log(r".*something is odd.*").group())
    assert (line["job_id"], line["task"]) == (job.id, executor_tasks.complain.name)
    assert line["worker"] == job_row(job.id).worker_id


@pytest.mark.mechanics
def test_what_a_body_has_started_is_killed_with_it(workers: Workers, tmp_path: Path) -> None:
    worker = start(workers, "processes", 1)
    path = tmp_path / "pid"
    job = executor_tasks.start_a_program.delay(str(path))

    wait_until(lambda: job_row(job.id).status == "dead", 30)

    wait_until(lambda: not is_running(int(path.read_text())), 10)
    assert tasks.give.delay("after").result(30) == "after"
    assert_quiet(worker)


@pytest.mark.mechanics
def test_no_child_outlives_a_worker_that_is_killed(workers: Workers, gate: Gate) -> None:
    worker = start(workers, "processes", 2)
    tasks.hold.delay(str(gate))
    gate.wait_until_reached()
    children = worker.children()
    assert len(children) == 2

    os.kill(worker.pid, signal.SIGKILL)

    wait_until(lambda: not any(is_running(pid) for pid in children), 10)


# --- coroutines -----------------------------------------------------------------------------------


@pytest.mark.mechanics
def test_many_coroutines_wait_at_the_same_time(workers: Workers, tmp_path: Path) -> None:
    start(workers, "coroutines", 150)
    jobs = queue.enqueue_many(executor_tasks.meet, [(str(tmp_path), 150)] * 150)

    assert min(job.result(40) for job in jobs) >= 150


def test_the_database_api_shares_a_few_connections(workers: Workers) -> None:
    start(workers, "coroutines", 40)
    jobs = queue.enqueue_many(
        executor_tasks.use_the_database, [(f"key {number}",) for number in range(60)]
    )

    found = [job.result(40) for job in jobs]

    assert {each["found"] for each in found} == {1}
    assert 1 < len({each["thread"] for each in found}) <= 8


@pytest.mark.mechanics
def test_a_coroutine_is_cancelled_where_it_waits(workers: Workers, tmp_path: Path) -> None:
    worker = start(workers, "coroutines", 2)
    sign = tmp_path / "here"
    job = executor_tasks.clean_up_when_cancelled.delay(str(sign))
    wait_until(sign.exists, 30)

    queue.cancel_running_job(job.id)

    wait_until(lambda: job_row(job.id).status == "cancelled", 20)
    assert keys()["tidied"] == 1
    assert_quiet(worker)


@pytest.mark.mechanics
def test_a_coroutine_that_is_too_late_is_cancelled_where_it_waits(workers: Workers) -> None:
    worker = start(workers, "coroutines", 4)
    jobs = queue.enqueue_many(executor_tasks.await_for_ever, [()] * 4)
    wait_until(lambda: queue.stats()["dead"] == 4, 20)

    assert tasks.give.delay("after").result(20) == "after"

    assert {job_row(job.id).error for job in jobs} == {"job timed out after 1000ms"}
    assert worker.terminate() == 0
    assert "anew" not in worker.log  # nothing was left behind


@pytest.mark.mechanics
@pytest.mark.parametrize("name", ["swallow_for_ever", "block_the_loop"])
def test_a_coroutine_that_cannot_be_stopped_costs_the_process(workers: Workers, name: str) -> None:
    worker = workers.start(
        "--executor",
        "coroutines",
        "--concurrency",
        "1",
        STRAY_GRACE_SECONDS=0.5,
        STOP_TIMEOUT_SECONDS=1,
    )
    job = getattr(executor_tasks, name).delay()
    wait_until(lambda: job_row(job.id).status == "dead", 20)

    assert tasks.give.delay("after").result(30) == "after"

    worker.wait_for_log(r"(?s)worker \S+ started.*worker \S+ started")


def threads_of(worker: WorkerProcess) -> int:
    """How many threads its process has, now."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    return int(status.partition("Threads:")[2].split()[0])


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
