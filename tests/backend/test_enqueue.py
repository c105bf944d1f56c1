"""What an enqueue call of the framework stores, gives back and refuses."""

import copy
import dataclasses
import enum
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from flexiq_django import queue
from flexiq_django.backend import FlexiqBackend
from flexiq_django.backend.framework import (
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from flexiq_django.exceptions import PayloadTooLargeError, TaskRevokedError
from tests.backend import tasks
from tests.testapp.models import Mark

pytestmark = pytest.mark.django_db


def backend() -> Any:
    return task_backends["default"]


def test_every_capability_is_there() -> None:
    assert isinstance(backend(), FlexiqBackend)
    for name in ("defer", "async_task", "get_result", "priority"):
        assert getattr(backend(), f"supports_{name}") is True


@pytest.mark.parametrize("task", [tasks.nothing, tasks.nothing_async])
def test_an_enqueued_task_is_ready(task: Any) -> None:
    result = task.enqueue(1, two=3)

    assert result.status == TaskResultStatus.READY
    assert not result.is_finished
    assert result.enqueued_at is not None
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert (result.attempts, result.errors, result.worker_ids) == (0, [], [])
    assert result.task == task
    assert (result.args, result.kwargs) == ([1], {"two": 3})
    assert result.backend == "default"
    assert 0 < len(result.id) <= 64
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value


def test_the_job_has_the_name_of_the_task() -> None:
    result = tasks.nothing.using(priority=7, queue_name="special").enqueue()
    job = queue.get_job(result.id)

    assert job.task_name == "tests.backend.tasks.nothing"
    assert (job.origin, job.queue, job.priority) == ("django_task", "special", 7)
    assert job.max_retries == 0
    assert job.timeout_ms == 300_000


def test_a_result_read_again_is_the_same() -> None:
    later = timezone.now() + timedelta(days=1)
    for task in (tasks.nothing, tasks.nothing.using(priority=3, run_after=later)):
        result = task.enqueue("a", b=[1, {"c": None}])
        assert task.get_result(result.id) == result
        assert backend().get_result(result.id) == result
        before = dataclasses.asdict(result)
        result.refresh()
        assert dataclasses.asdict(result) == before


def test_a_result_can_be_copied() -> None:
    result = tasks.nothing.enqueue([1], a={})
    assert copy.deepcopy(result) == result


@pytest.mark.parametrize("unknown", ["123", "", "0190b5a0-0000-7000-8000-000000000000", 123])
def test_an_unknown_result_does_not_exist(unknown: Any) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        backend().get_result(unknown)
    with pytest.raises(TaskResultDoesNotExist):
        tasks.nothing.get_result(unknown)


def test_a_job_of_another_task_is_no_result() -> None:
    job = queue.enqueue("tests.flows.tasks.quick")
    with pytest.raises(TaskResultDoesNotExist):
        backend().get_result(job.id)


def test_the_result_of_another_task_is_a_mismatch() -> None:
    result = tasks.nothing.enqueue()
    with pytest.raises(Exception, match="Task does not match"):
        tasks.answer.get_result(result.id)


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 1, tzinfo=UTC), {1, 2}, object(), [{"deep": timedelta(1)}]]
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.nothing.enqueue(value)
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.nothing.enqueue(name=value)
    assert queue.list_jobs() == []


def test_arguments_become_json() -> None:
    class Size(enum.StrEnum):
        LARGE = "large"

    result = tasks.nothing.enqueue((1, (2,)), b"text", size=Size.LARGE)
    assert result.args == [[1, [2]], "text"]
    assert backend().get_result(result.id).kwargs == {"size": "large"}


def test_what_is_too_large_is_refused(settings: Any) -> None:
    settings.FLEXIQ = {"MAX_PAYLOAD_BYTES": 100}
    with pytest.raises(PayloadTooLargeError):
        tasks.nothing.enqueue("x" * 200)


@pytest.mark.parametrize("priority", [-101, 101, 3.1])
def test_priorities_outside_the_range_are_refused(priority: Any) -> None:
    with pytest.raises(InvalidTask, match="priority must be a whole number between -100 and 100"):
        tasks.nothing.using(priority=priority)


@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_priorities_in_the_range_are_kept(priority: int) -> None:
    result = tasks.nothing.using(priority=priority).enqueue()
    assert queue.get_job(result.id).priority == priority


def test_an_unknown_queue_is_refused(other_tasks_setting: Callable[..., None]) -> None:
    chosen = tasks.nothing.using(queue_name="anything")  # QUEUES is empty: every name is right
    other_tasks_setting(default={"QUEUES": ["one"]})
    with pytest.raises(InvalidTask, match="Queue 'anything' is not valid for backend"):
        chosen.enqueue()
    with pytest.raises(InvalidTask, match="Queue 'default' is not valid for backend"):
        tasks.nothing.using(priority=1)
    assert queue.list_jobs() == []


@pytest.mark.parametrize("name", ["", " padded", "x" * 101, "new\nline"])
def test_a_queue_that_no_database_can_hold_is_refused(name: str) -> None:
    with pytest.raises(InvalidTask, match="queue_name is"):
        tasks.nothing.using(queue_name=name)


def test_a_naive_time_is_refused(settings: Any) -> None:
    settings.USE_TZ = True
    with pytest.raises(InvalidTask, match=r"run_after must be an aware datetime\."):
        tasks.nothing.using(run_after=datetime(2026, 1, 1))  # noqa: DTZ001


def test_run_after_delays() -> None:
    later = timezone.now() + timedelta(hours=2)
    result = tasks.nothing.using(run_after=later).enqueue()
    job = queue.get_job(result.id)
    assert job.scheduled_at == int(later.timestamp() * 1000)
    assert result.status == TaskResultStatus.READY


def test_times_are_naive_where_the_project_says_so(settings: Any) -> None:
    settings.USE_TZ = False
    later = datetime.now() + timedelta(hours=1)  # noqa: DTZ005
    result = tasks.nothing.using(run_after=later).enqueue()
    assert timezone.is_naive(result.enqueued_at)
    assert tasks.nothing.get_result(result.id) == result
    assert result.task.run_after == later


def test_functions_that_no_worker_could_find_are_refused() -> None:
    with pytest.raises(InvalidTask, match="must be defined at a module level"):
        Task(func=lambda: None)
    renamed = Task(func=test_run_after_delays)
    with pytest.raises(InvalidTask, match=r"there is no task at 'tests\.backend\.test_enqueue"):
        renamed.enqueue()


def test_a_context_needs_a_first_argument() -> None:
    with pytest.raises(InvalidTask, match="does not have a first argument of 'context'"):
        Task(func=tasks.answer.func, takes_context=True)


@pytest.mark.django_db(transaction=True)
def test_an_enqueue_that_is_rolled_back_never_was() -> None:
    told: list[str] = []

    def receiver(sender: Any, task_result: Any, **_: Any) -> None:
        assert sender is type(backend())
        told.append(task_result.id)

    task_enqueued.connect(receiver)
    try:
        with transaction.atomic():
            Mark.objects.create(key="with the job")
            lost = tasks.nothing.enqueue()
            transaction.set_rollback(True)
        with transaction.atomic():
            kept = tasks.nothing.enqueue()
            assert told == []
    finally:
        task_enqueued.disconnect(receiver)

    with pytest.raises(TaskResultDoesNotExist):
        backend().get_result(lost.id)
    assert told == [kept.id]
    assert [job.id for job in queue.list_jobs()] == [kept.id]


@pytest.mark.django_db(transaction=True)
def test_every_call_has_an_async_form() -> None:
    async def calls() -> None:
        result = await tasks.nothing_async.aenqueue(1)
        assert await tasks.nothing_async.aget_result(result.id) == result
        assert await backend().aget_result(result.id) == result
        await result.arefresh()
        assert result.status == TaskResultStatus.READY
        with pytest.raises(TypeError, match="Unsupported type"):
            await tasks.nothing.aenqueue(object())
        with pytest.raises(TaskResultDoesNotExist):
            await tasks.nothing.aget_result("123")
        with pytest.raises(Exception, match="Task does not match"):
            await tasks.nothing.aget_result(result.id)

    async_to_sync(calls)()


def test_a_revoked_task_is_refused() -> None:
    queue.revoke_task("tests.backend.tasks.nothing")
    with pytest.raises(TaskRevokedError):
        tasks.nothing.enqueue()
