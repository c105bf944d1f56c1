"""Each public method that asks the database has an async twin: same arguments, same answer."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from flexiq_django import JobResult, Queue, Task
from flexiq_django.exceptions import InvalidOptionError
from tests.factories import DeadLetterFactory, JobFactory, PeriodicTaskFactory

pytestmark = pytest.mark.django_db

#: These declare, answer without the database, or are iterated over (see test_stream).
PLAIN = {
    Queue: {"task", "periodic"},
    Task: {"check_call"},
    JobResult: {"stream", "astream"},
}


def methods(owner: type[Any]) -> Iterator[str]:
    for name, member in inspect.getmembers(owner, inspect.isfunction):
        if not name.startswith("_") and not inspect.iscoroutinefunction(member):
            yield name


def pairs() -> list[Any]:
    return [
        pytest.param(owner, name, id=f"{owner.__name__}.{name}")
        for owner, plain in PLAIN.items()
        for name in methods(owner)
        if name not in plain
    ]


@pytest.mark.parametrize(("owner", "name"), pairs())
def test_every_method_has_a_twin_with_its_signature(owner: type[Any], name: str) -> None:
    method, twin = getattr(owner, name), getattr(owner, f"a{name}")

    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin) == inspect.signature(method)
    assert twin.__name__ == f"a{name}"
    assert twin.__qualname__.endswith(f".a{name}")
    assert name in (twin.__doc__ or "")


@pytest.mark.parametrize("owner", PLAIN, ids=lambda owner: owner.__name__)
def test_there_are_no_twins_without_a_method(owner: type[Any]) -> None:
    twins = {
        name
        for name, member in inspect.getmembers(owner, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }

    assert {name[1:] for name in twins} == set(methods(owner)) - PLAIN[owner]


def test_reading_twins_answer_alike(queue: Queue) -> None:
    job = str(JobFactory(running=True).id)
    DeadLetterFactory()
    PeriodicTaskFactory()
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("get_job", (job,)),
        ("list_jobs", ()),
        ("list_jobs", ("running", "default")),
        ("list_archived", ()),
        ("stats", ()),
        ("stats_by_queue", ()),
        ("stats_by_queue", ("default",)),
        ("stats_all_queues", ()),
        ("metrics", ()),
        ("metrics_timeseries", ()),
        ("job_errors", (job,)),
        ("why_waiting", (job,)),
        ("job_dag", (job,)),
        ("replay_history", (job,)),
        ("task_logs", (job,)),
        ("query_logs", ()),
        ("dead_letters", ()),
        ("workers", ()),
        ("list_periodic", ()),
        ("oldest_ready_seconds", ()),
        ("effective_retention", ()),
        ("get_setting", ("a",)),
        ("list_settings", ()),
        ("min_contract", ()),
        ("migrate", ()),
    ]
    for name, args in calls:
        assert async_to_sync(getattr(queue, f"a{name}"))(*args) == getattr(queue, name)(*args)
    assert {name for name, _ in calls} <= set(methods(Queue))


def test_a_stream_and_its_twin_have_one_signature() -> None:
    assert inspect.signature(JobResult.stream).parameters == (
        inspect.signature(JobResult.astream).parameters
    )


def test_writing_twins_do_what_they_say(queue: Queue) -> None:
    @queue.task
    def work(a: int = 0) -> None: ...

    async def act() -> list[JobResult]:
        return [
            await queue.aenqueue("app.work", priority=3),
            *await queue.aenqueue_many("app.work", [(), ()]),
            await work.adelay(1),
            await work.aapply_async((1,), priority=2),
            *await work.amap([(1,), (2,)]),
        ]

    handles = async_to_sync(act)()

    assert {handle.status for handle in handles} == {"pending"}
    assert [handle.priority for handle in handles] == [3, 0, 0, 0, 2, 0, 0]
    assert async_to_sync(queue.acancel_job)(handles[0].id)
    assert not async_to_sync(queue.acancel_running_job)(handles[1].id)
    async_to_sync(queue.aupdate_progress)(handles[1].id, 5)
    async_to_sync(handles[1].arefresh)()
    assert handles[1].progress == 5
    assert async_to_sync(handles[0].ato_dict)()["status"] == "cancelled"
    assert async_to_sync(queue.aarchive)(-5) == 1
    assert async_to_sync(queue.adry_run_retention)().total == 0
    assert async_to_sync(queue.aset_setting_if)("a", None, "x")
    async_to_sync(queue.aset_setting)("a", "y")
    assert queue.get_setting("a") == "y"
    assert async_to_sync(queue.adelete_setting)("a")
    async_to_sync(queue.aset_min_contract)(queue.min_contract())


def test_a_twin_raises_what_the_method_raises(queue: Queue) -> None:
    with pytest.raises(InvalidOptionError, match=r"^delay is"):
        async_to_sync(queue.aenqueue)("app.work", delay=-1)
