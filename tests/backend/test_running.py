"""Tasks of the framework, run by a worker."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from flexiq_django import queue
from flexiq_django.backend.framework import (
    NAME,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_finished,
    task_started,
)
from flexiq_django.exceptions import TaskCancelledError, TaskFailedError, TaskTimeoutError
from flexiq_django.testing import run_pending
from tests.backend import slow_tasks, tasks
from tests.docs.running import ended_threads
from tests.processes import WorkerProcess
from tests.store.acting import claim
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

Work = Callable[[], None]
LOGGER = NAME  # Django names its logger like the package


def finished(*results: Any) -> list[Any]:
    for result in results:
        result.refresh()
        assert result.is_finished
    return list(results)


def test_tasks_succeed(work: Work) -> None:
    results = [
        tasks.nothing.enqueue(1, two=3),
        tasks.nothing_async.enqueue(1, two=3),
        tasks.answer.enqueue(),
        tasks.echo.enqueue({"a": [1, None, 2.5, True, "ä"]}),
        tasks.echo_async.enqueue("from a coroutine"),
        tasks.kind_of.enqueue((1, 2)),
        tasks.tell_id.enqueue(),
        tasks.tell_attempt.enqueue(factor=3),
    ]
    work()

    for result in finished(*results):
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.enqueued_at <= result.started_at <= result.finished_at
        assert result.last_attempted_at == result.started_at
        assert (result.attempts, len(result.worker_ids), result.errors) == (1, 1, [])
    assert results[0].task == tasks.nothing
    assert (results[0].args, results[0].kwargs) == ([1], {"two": 3})
    assert [result.return_value for result in results] == [
        None, None, 42, {"a": [1, None, 2.5, True, "ä"]}, "from a coroutine", "list",
        results[6].id, 3,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "kind", "last_line"),
    [
        (tasks.refuse, ValueError, "ValueError: the task does not want to\n"),
        (tasks.leave, SystemExit, "SystemExit: the task wants to leave\n"),
        (tasks.refuse_async, LookupError, "LookupError: not found\n"),
        (tasks.refuse_in_two_layers, ValueError, "ValueError: inner\n"),
        (tasks.give_no_json, TypeError, "TypeError: Unsupported type: <class 'set'>\n"),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_tasks_fail(
    task: Any,
    kind: type[BaseException],
    last_line: str,
    work: Work,
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = task.enqueue()
    with caplog.at_level(logging.ERROR, LOGGER):
        work()

    finished(result)
    assert result.status == TaskResultStatus.FAILED
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.attempts == len(result.worker_ids) == len(result.errors) == 1
    assert result.errors[0].exception_class is kind
    assert result.errors[0].traceback.endswith(last_line)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert f"id={result.id} path={task.module_path} state=FAILED" in record.getMessage()
    # What error trackers take from a log record.
    assert record.exc_info is not None
    assert record.exc_info[0] is kind


def test_a_cause_is_in_the_traceback(work: Work) -> None:
    result = tasks.refuse_in_two_layers.enqueue()
    work()
    finished(result)
    assert 'raise ValueError(ValueError("inner"))' in result.errors[0].traceback


def test_the_framework_logs_every_step(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, LOGGER):
        result = tasks.nothing.enqueue()
        work()

    lines = [each.getMessage() for each in caplog.records if each.name == LOGGER]
    assert len(lines) == 3
    assert all(result.id in line for line in lines)
    assert "enqueued backend=default" in lines[0]
    assert "state=RUNNING" in lines[1]
    assert "state=SUCCESSFUL" in lines[2]
    assert "NoneType" not in caplog.text


def test_the_signals_tell_of_a_task_and_of_nothing_else(work: Work) -> None:
    told: list[tuple[str, Any]] = []

    def on_started(sender: Any, task_result: Any, **_: Any) -> None:
        told.append(("started", task_result))
        assert sender is type(task_backends["default"])
        raise RuntimeError("a receiver must not fail a job")

    def on_finished(sender: Any, task_result: Any, **_: Any) -> None:
        told.append(("finished", task_result))
        assert sender is type(task_backends["default"])

    task_started.connect(on_started)
    task_finished.connect(on_finished)
    try:
        queue.enqueue("tests.flows.tasks.quick")
        result = tasks.answer.enqueue()
        work()
    finally:
        task_started.disconnect(on_started)
        task_finished.disconnect(on_finished)

    assert [(step, each.id) for step, each in told] == [
        ("started", result.id),
        ("finished", result.id),
    ]
    started, ended = told[0][1], told[1][1]
    assert (started.status, started.attempts) == (TaskResultStatus.RUNNING, 1)
    assert started.finished_at is None
    assert (ended.status, ended.return_value) == (TaskResultStatus.SUCCESSFUL, 42)
    finished(result)
    assert result == ended


def test_higher_priorities_run_first(work: Work) -> None:
    order: list[str] = []

    def on_started(task_result: Any, **_: Any) -> None:
        order.append(task_result.args[0])

    task_started.connect(on_started)
    try:
        for priority in (0, -100, 100, 1):
            tasks.echo.using(priority=priority).enqueue(str(priority))
        with ended_threads():
            call_command("flexiq_worker", burst=True, concurrency=1, verbosity=0)
    finally:
        task_started.disconnect(on_started)
    assert order == ["100", "1", "0", "-100"]


def test_what_is_due_later_waits(work: Work) -> None:
    late = tasks.answer.using(run_after=timezone.now() + timedelta(hours=1)).enqueue()
    past = tasks.answer.using(run_after=timezone.now() - timedelta(hours=1)).enqueue()
    work()

    late.refresh()
    assert late.status == TaskResultStatus.READY
    finished(past)
    assert past.status == TaskResultStatus.SUCCESSFUL


def test_a_backend_may_allow_retries(other_tasks_setting: Callable[..., None]) -> None:
    other_tasks_setting(default={"QUEUES": [], "OPTIONS": {"MAX_RETRIES": 2}})
    result = tasks.succeed_at.enqueue(2)
    run_pending(limit=1)

    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert not result.is_finished
    assert (result.attempts, len(result.worker_ids)) == (1, 1)
    assert result.last_attempted_at >= result.enqueued_at
    run_pending(until=60)

    finished(result)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == "at last"
    assert (result.attempts, len(result.worker_ids)) == (2, 2)
    assert [error.exception_class for error in result.errors] == [RuntimeError]
    assert result.enqueued_at <= result.started_at < result.last_attempted_at <= result.finished_at


def test_our_own_context_is_there_too(work: Work) -> None:
    result = tasks.tell_job.enqueue()
    work()
    finished(result)
    assert result.return_value == [result.id, "tests.backend.tasks.tell_job", "default"]
    assert [line["message"] for line in queue.task_logs(result.id)] == ["from a Django task"]


def test_a_cancelled_task_has_failed(work: Work) -> None:
    result = tasks.answer.enqueue()
    assert queue.cancel_job(result.id)
    work()
    finished(result)
    assert result.status == TaskResultStatus.FAILED
    assert result.attempts == 0
    assert [error.exception_class for error in result.errors] == [TaskCancelledError]


def test_a_worker_imports_what_a_job_names(
    start_worker: Callable[..., WorkerProcess],
) -> None:
    # A process of its own, in which nothing else imports the module.
    results = [tasks.tell_job.enqueue(), tasks.tell_attempt.enqueue(), tasks.refuse.enqueue()]
    worker = start_worker("--burst")
    assert worker.wait(60) == 0, worker.log_tail()
    finished(*results)
    assert [result.status for result in results] == ["SUCCESSFUL", "SUCCESSFUL", "FAILED"]
    assert results[0].return_value[0] == results[0].id


def test_a_running_task_that_is_asked_to_stop_has_failed() -> None:
    result = tasks.stop_when_asked.enqueue()
    run_pending()
    finished(result)
    assert result.status == TaskResultStatus.FAILED
    assert result.attempts == 1
    assert [error.exception_class for error in result.errors] == [TaskCancelledError]


def test_a_bad_backend_does_not_keep_others_from_working(
    work: Work, other_tasks_setting: Callable[..., None]
) -> None:
    other_tasks_setting(bad={"OPTIONS": {"UNKNOWN": 1}}, default={"QUEUES": []})
    result = tasks.answer.enqueue()
    run_pending()
    finished(result)
    assert result.return_value == 42


def test_a_task_whose_worker_was_lost_has_failed(work: Work) -> None:
    told: list[Any] = []

    def on_finished(task_result: Any, **_: Any) -> None:
        told.append(task_result)

    result = tasks.answer.enqueue()
    (lost,) = claim(worker_id="lost", lease_ms=1)
    result.refresh()
    assert (result.status, result.worker_ids) == (TaskResultStatus.RUNNING, ["lost"])
    assert result.id == str(lost.id)
    task_finished.connect(on_finished)
    try:
        # The chores come first, but a worker in burst mode does not wait for them.
        wait_until(lambda: work() or told, 30, "the job is taken from the lost worker")
    finally:
        task_finished.disconnect(on_finished)
    assert [each.id for each in told] == [result.id]
    assert [error.exception_class for error in told[0].errors] == [TaskFailedError]
    assert told[0].errors[0].traceback.startswith("worker lost")
    finished(result)


def test_an_archived_result_is_found(work: Work) -> None:
    result = tasks.answer.enqueue()
    work()
    finished(result)
    queue.archive(0)
    assert queue.list_jobs() == []
    assert tasks.answer.get_result(result.id) == result


def test_a_replay_is_a_result_of_its_own(work: Work) -> None:
    result = tasks.answer.enqueue()
    work()
    again = queue.replay(result.id)
    work()
    copy = tasks.answer.get_result(getattr(again, "id", again))
    assert copy.return_value == 42
    assert copy.id != result.id


def test_a_name_that_is_no_task_is_never_called(work: Work) -> None:
    job = queue.enqueue("tests.backend.tasks.not_a_task", max_retries=0)
    gone = queue.enqueue("tests.backend.nowhere.task", max_retries=0)
    work()
    for each in (job, gone):
        each.refresh()
        assert each.status == "dead"
        assert "unknown task" in each.error


def test_a_result_whose_task_is_gone_does_not_exist(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tasks.answer.enqueue()
    monkeypatch.delattr(tasks, "answer")
    with pytest.raises(TaskResultDoesNotExist, match=r"there is none at 'tests\.backend\.tasks"):
        task_backends["default"].get_result(result.id)


def test_a_timeout_is_an_error_of_ours(
    work: Work, other_tasks_setting: Callable[..., None]
) -> None:
    other_tasks_setting(default={"QUEUES": [], "OPTIONS": {"TIMEOUT": 0.05}})
    result = slow_tasks.outlast.enqueue(0.1)
    work()
    finished(result)
    assert [error.exception_class for error in result.errors] == [TaskTimeoutError]


def test_a_backend_may_have_a_namespace_of_its_own(
    work: Work, other_tasks_setting: Callable[..., None]
) -> None:
    other_tasks_setting(
        default={"QUEUES": []}, apart={"QUEUES": [], "OPTIONS": {"NAMESPACE": "apart"}}
    )
    here, there = tasks.answer.enqueue(), tasks.answer.using(backend="apart").enqueue()
    assert there.backend == "apart"
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(there.id)
    work()
    finished(here)
    there.refresh()
    assert there.status == TaskResultStatus.READY

    with ended_threads():
        call_command("flexiq_worker", burst=True, namespace="apart", verbosity=0)
    finished(there)
    assert there.return_value == 42
    assert there.backend == "apart"


@pytest.mark.parametrize("executor", ["processes", "coroutines"])
def test_the_other_executors_run_them_too(
    start_worker: Callable[..., WorkerProcess], executor: str
) -> None:
    results = [
        tasks.echo.enqueue([1, "ä"]),
        tasks.echo_async.enqueue("from a coroutine"),
        tasks.tell_attempt.enqueue(factor=3),
        tasks.refuse.enqueue(),
        tasks.refuse_async.enqueue(),
    ]
    worker = start_worker("--burst", "--executor", executor, "--concurrency", "2")
    assert worker.wait(60) == 0, worker.log_tail()

    echo, coroutine, attempt, refused, refused_later = finished(*results)
    values = [each.return_value for each in (echo, coroutine, attempt)]
    assert values == [[1, "ä"], "from a coroutine", 3]
    assert refused.errors[0].exception_class is ValueError
    assert refused_later.errors[0].exception_class is LookupError
