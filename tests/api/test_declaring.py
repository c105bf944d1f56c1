"""Queues, tasks and schedules are refused as early as they are declared."""

import asyncio
import threading
from typing import Any

import pytest

from flexiq_django import MisfirePolicy, Queue, Task
from flexiq_django.api.registry import declared_queues, queues_of
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.exceptions import (
    ConfigurationError,
    InvalidArgumentsError,
    InvalidOptionError,
    InvalidScheduleError,
    PayloadTooLargeError,
    SerializationError,
)
from flexiq_django.store.scope import Scope

NAMES = ["", " a", "a ", "a\x00", "a\x1fb", "\ud800", 5]
BAD_SECONDS = [-1, float("nan"), float("inf"), 10**400, "5", True]
BAD_PRIORITIES = [2**31, -(2**31), 1.5, "high", True]
BAD_RETRIES = [-1, 2**31, 1.5, "1", True]


def each(option: str, values: list[Any]) -> list[Any]:
    return [pytest.param(option, value, id=f"{option}-{value!r:.20}") for value in values]


# --- queues ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *each("namespace", [*NAMES, "n" * 101]),
        *each("default_retry", BAD_RETRIES),
        *each("default_timeout", [0, *BAD_SECONDS]),
        *each("default_priority", BAD_PRIORITIES),
        *each("result_ttl", BAD_SECONDS),
    ],
)
def test_a_bad_option_of_a_queue(option: str, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=rf"^{option} "):
        Queue(**{option: value})


def test_a_queue_says_where_it_lives() -> None:
    queue = Queue("tenants", using="default")

    assert queue.place == Scope(using="default", namespace="tenants")
    assert repr(queue) == "<Queue 'tenants' on 'default'>"


def test_a_queue_without_options_follows_the_settings(settings: Any) -> None:
    queue = Queue()
    settings.FLEXIQ = {"NAMESPACE": "project", "DEFAULT_RETRY": 8}

    assert queue.place.namespace == "project"
    assert queue.defaults["max_retries"] == 8
    assert queue.follows_settings
    assert not Queue("n").follows_settings


def test_queues_are_found_by_where_they_live() -> None:
    ours, also_ours, other = Queue("found"), Queue("found"), Queue("elsewhere")

    found = queues_of(Scope(namespace="found"))

    assert set(found) >= {ours, also_ours}
    assert other not in found
    assert {ours, also_ours, other} <= set(declared_queues())


def test_queues_may_be_made_while_others_look_for_them() -> None:
    done = threading.Event()

    def make() -> None:
        try:
            for _ in range(3_000):
                Queue("crowd")
        finally:
            done.set()

    maker = threading.Thread(target=make)
    maker.start()
    while not done.is_set():
        queues_of(Scope(namespace="crowd"))
        declared_queues()
    maker.join()


# --- tasks ----------------------------------------------------------------------------------------


def test_a_task_is_named_after_its_function(queue: Queue) -> None:
    @queue.task
    def bare() -> None:
        """Say nothing."""

    @queue.task()
    def called() -> None: ...

    @queue.task(name="app.other")
    def named() -> None: ...

    assert isinstance(bare, Task)
    prefix = f"{__name__}.test_a_task_is_named_after_its_function.<locals>"
    assert [bare.name, called.name, named.name] == [
        f"{prefix}.bare", f"{prefix}.called", "app.other"
    ]  # fmt: skip
    assert queue.tasks == {task.name: task for task in (bare, called, named)}
    assert (bare.__name__, bare.__doc__) == ("bare", "Say nothing.")
    assert repr(named) == "<Task app.other>"


def test_a_task_can_be_called_in_place(queue: Queue) -> None:
    @queue.task
    def add(a: int, b: int = 1) -> int:
        return a + b

    @queue.task
    async def later(a: int) -> int:
        return a

    assert add(2) == 3
    assert add(2, b=5) == 7
    assert asyncio.run(later(5)) == 5
    assert (add.is_async, later.is_async) == (False, True)


def test_declaring_a_name_again_replaces_the_task(queue: Queue) -> None:
    @queue.task(name="app.work")
    def first() -> None: ...

    @queue.task(name="app.work")
    def second() -> None: ...

    assert queue.tasks == {"app.work": second}


def test_the_policy_of_a_task(queue: Queue) -> None:
    @queue.task(
        max_retries=4, retry_backoff=2, retry_delays=[1, 5], max_retry_delay=60, jitter=False,
        retry_on=[OSError], dont_retry_on=[ConnectionError], soft_timeout=3, timeout=9,
    )  # fmt: skip
    def work() -> None: ...

    assert work.options.retry == RetryPolicy(
        max_retries=4, backoff=2, delays=(1, 5), max_delay=60, jitter=False,
        retry_on=(OSError,), dont_retry_on=(ConnectionError,),
    )  # fmt: skip
    assert (work.options.soft_timeout, work.options.timeout) == (3, 9)
    assert not work.options.transactional


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        *(("name", value, "name") for value in ["t" * 201, *NAMES[1:]]),
        *(("queue", value, "queue") for value in NAMES),
        *(("priority", value, "priority") for value in BAD_PRIORITIES),
        *(("max_retries", value, "max_retries") for value in BAD_RETRIES),
        *(("timeout", value, "timeout") for value in [0, *BAD_SECONDS]),
        *(("soft_timeout", value, "soft_timeout") for value in [0, *BAD_SECONDS]),
        *(("result_ttl", value, "result_ttl") for value in BAD_SECONDS),
        *(("retry_backoff", value, "backoff") for value in [-1, "1", float("nan")]),
        *(("max_retry_delay", value, "max_delay") for value in [-1, "1", float("inf")]),
        *(("retry_delays", value, "delays") for value in [[-1], "12", 5, {1: 2}, [True]]),
        *(("retry_on", value, "retry_on") for value in [ValueError, [ValueError()], ["x"], [int]]),
        *(("dont_retry_on", value, "dont_retry_on") for value in [OSError, [None]]),
        ("jitter", 1, "jitter"),
        ("name", "", "name"),
        ("transactional", "no", "transactional"),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_a_bad_option_of_a_task(queue: Queue, option: str, value: Any, name: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"^{name}\b"):
        queue.task(**{option: value})(lambda: None)

    assert queue.tasks == {}


@pytest.mark.parametrize("option", ["retries", "eta", "retry", "max_retry"])
def test_an_unknown_option_of_a_task(queue: Queue, option: str) -> None:
    with pytest.raises(TypeError, match=rf"unknown option {option}$"):
        queue.task(name="app.work", **{option: 1})(lambda: None)


def test_a_coroutine_cannot_be_transactional(queue: Queue) -> None:
    async def work() -> None: ...

    with pytest.raises(ConfigurationError, match="transactional=True needs a plain function"):
        queue.task(transactional=True)(work)


def test_a_call_is_held_against_the_signature(queue: Queue) -> None:
    @queue.task
    def work(a: int, *, b: int = 0) -> None: ...

    work.check_call((1,), {"b": 2})
    for args, kwargs in [((), {}), ((1, 2), {}), ((1,), {"c": 3})]:
        with pytest.raises(InvalidArgumentsError, match=r"work\(a: int, \*, b: int = 0\)"):
            work.check_call(args, kwargs)


# --- schedules ------------------------------------------------------------------------------------


def work(a: int = 0) -> None: ...


def test_a_schedule_as_declared(queue: Queue, settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"

    task = queue.periodic("0 3 * * *", name="nightly", args=(1,), priority=4)(work)

    assert task.options.priority == 4
    assert queue.tasks[task.name] is task
    assert queue.schedules["nightly"].row() == {
        "name": "nightly", "task_name": task.name, "cron": "0 3 * * *",
        "timezone": "Europe/Berlin", "payload": "[[1],{}]", "queue": None,
        "misfire_policy": "once", "misfire_window_ms": 3_600_000,
    }  # fmt: skip


def test_a_task_may_have_several_schedules(queue: Queue) -> None:
    task = queue.task(name="app.work")(work)

    assert queue.periodic("@daily")(task) is task
    queue.periodic(
        "0 0 2 * * *", name="other", kwargs={"a": 2}, queue="slow", timezone="Asia/Tokyo",
        misfire="all", misfire_window=90.5,
    )(task)  # fmt: skip

    assert set(queue.schedules) == {"app.work", "other"}
    row = queue.schedules["other"].row()
    assert (row["timezone"], row["queue"], row["payload"]) == ("Asia/Tokyo", "slow", '[[],{"a":2}]')
    assert (row["misfire_policy"], row["misfire_window_ms"]) == ("all", 90_500)


@pytest.mark.parametrize("policy", [*MisfirePolicy, "skip", "once", "all"])
def test_every_policy_is_accepted(queue: Queue, policy: Any) -> None:
    queue.periodic("@daily", name="s", misfire=policy)(work)

    assert queue.schedules["s"].misfire == MisfirePolicy(policy)


@pytest.mark.parametrize(
    ("cron", "options", "error"),
    [
        ("nonsense", {}, InvalidScheduleError),
        ("* * * *", {}, InvalidScheduleError),
        ("61 * * * *", {}, InvalidScheduleError),
        ("0 0 30 2 *", {}, InvalidScheduleError),
        ("R * * * *", {}, InvalidScheduleError),
        ("H * * * *", {}, InvalidScheduleError),
        ("@daily", {"timezone": "Mars/Olympus"}, InvalidScheduleError),
        ("@daily", {"timezone": ""}, InvalidScheduleError),
        ("@daily", {"misfire": "never"}, InvalidOptionError),
        ("@daily", {"misfire_window": -1}, InvalidOptionError),
        ("@daily", {"misfire_window": "1h"}, InvalidOptionError),
        ("@daily", {"misfire_window": None}, InvalidOptionError),
        ("@daily", {"name": ""}, InvalidOptionError),
        ("@daily", {"name": "n" * 201}, InvalidOptionError),
        ("@daily", {"name": " n"}, InvalidOptionError),
        ("@daily", {"queue": ""}, InvalidOptionError),
        ("@daily", {"args": (1, 2)}, InvalidArgumentsError),
        ("@daily", {"kwargs": {"b": 1}}, InvalidArgumentsError),
        ("@daily", {"args": (object(),)}, SerializationError),
        ("@daily", {"args": ("x" * 2_000_000,)}, PayloadTooLargeError),
        ("@daily", {"max_retries": -1}, InvalidOptionError),
        ("@daily", {"retries": 1}, TypeError),
    ],
)
def test_a_bad_schedule(
    queue: Queue, cron: str, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        queue.periodic(cron, **options)(work)

    assert queue.schedules == {}


def test_a_task_that_is_declared_already_takes_no_options(queue: Queue) -> None:
    task = queue.task(name="app.once")(work)

    with pytest.raises(TypeError, match=r"app\.once is declared already: give max_retries, tries"):
        queue.periodic("@daily", max_retries=3, tries=1)(task)
    assert queue.schedules == {}
