"""Whose option counts: the call's, else the task's, else the queue's, else the settings'."""

from typing import Any

import pytest

from flexiq_django import Queue
from flexiq_django.core.lanes import parse_lane
from flexiq_django.exceptions import InvalidArgumentsError
from tests.api.conftest import row_of

pytestmark = pytest.mark.django_db

#: option: (setting, queue keyword, column, then the value in settings, queue, task and call)
LEVELS: dict[str, tuple[str, str, str, list[Any], list[Any]]] = {
    "priority": ("DEFAULT_PRIORITY", "default_priority", "priority", [1, 2, 3, 4], [1, 2, 3, 4]),
    "max_retries": ("DEFAULT_RETRY", "default_retry", "max_retries", [5, 6, 7, 8], [5, 6, 7, 8]),
    "timeout": (
        "DEFAULT_TIMEOUT", "default_timeout", "timeout_ms",
        [1, 2, 3.5, 4], [1_000, 2_000, 3_500, 4_000],
    ),
}  # fmt: skip


@pytest.mark.parametrize("option", LEVELS)
@pytest.mark.parametrize("level", range(4), ids=["settings", "queue", "task", "call"])
def test_the_nearest_level_counts(settings: Any, option: str, level: int) -> None:
    setting, keyword, column, values, stored = LEVELS[option]
    settings.FLEXIQ = {setting: values[0]}
    queue = Queue("default", **({keyword: values[1]} if level >= 1 else {}))

    @queue.task(**({option: values[2]} if level >= 2 else {}))
    def work() -> None: ...

    handle = work.apply_async(**({option: values[3]} if level >= 3 else {}))

    assert getattr(row_of(handle), column) == stored[level]


@pytest.mark.parametrize("option", LEVELS)
def test_zero_is_a_value_at_every_level(settings: Any, option: str) -> None:
    if option == "timeout":
        pytest.skip("a timeout of zero is refused")
    setting, keyword, column, values, _ = LEVELS[option]
    settings.FLEXIQ = {setting: values[0]}
    queue = Queue("default", **{keyword: values[1]})
    of_queue = Queue("default", **{keyword: 0})

    @queue.task(**{option: 0})
    def of_task() -> None: ...

    @queue.task(**{option: values[2]})
    def of_call() -> None: ...

    handles = [of_task.delay(), of_call.apply_async(**{option: 0}), of_queue.enqueue("app.work")]
    assert [getattr(row_of(handle), column) for handle in handles] == [0, 0, 0]


def test_the_queue_of_a_task_and_of_a_call() -> None:
    queue = Queue("default")

    @queue.task(queue="mail")
    def work() -> None: ...

    assert row_of(work.delay()).queue == "mail"
    assert row_of(work.apply_async(queue="slow")).queue == "slow"


def test_no_timeout_by_the_settings(settings: Any) -> None:
    settings.FLEXIQ = {"DEFAULT_TIMEOUT": None}

    assert row_of(Queue("default").enqueue("app.work")).timeout_ms is None


def test_a_name_brings_the_options_that_the_workers_of_the_queue_know() -> None:
    shared, tenant = Queue(), Queue("tenant")

    @shared.task(name="app.shared", max_retries=7, timeout=11, max_concurrent=1)
    def work(number: int) -> None: ...

    row = row_of(tenant.enqueue("app.shared", (1,)))

    assert (row.max_retries, row.timeout_ms) == (7, 11_000)
    assert parse_lane(row.ready_lane).task_name == "app.shared"
    with pytest.raises(InvalidArgumentsError):
        tenant.enqueue("app.shared", (1, 2))

    @tenant.task(name="app.shared", max_retries=1)
    def own(number: int, other: int) -> None: ...

    assert row_of(tenant.enqueue("app.shared", (1, 2))).max_retries == 1


def test_a_name_that_is_known_here_brings_its_options() -> None:
    queue = Queue("default", default_retry=9)

    @queue.task(name="app.known", queue="mail", priority=4, max_retries=1, timeout=7)
    def work() -> None: ...

    known, unknown = row_of(queue.enqueue("app.known")), row_of(queue.enqueue("app.unknown"))

    assert (known.queue, known.priority, known.max_retries, known.timeout_ms) == (
        "mail", 4, 1, 7_000
    )  # fmt: skip
    assert (unknown.queue, unknown.priority, unknown.max_retries, unknown.timeout_ms) == (
        "default", 0, 9, 300_000
    )  # fmt: skip


def test_a_deployment_of_the_settings_pins_every_job(settings: Any) -> None:
    settings.FLEXIQ = {"DEPLOYMENT_ID": "blue"}
    queue = Queue("default")

    assert row_of(queue.enqueue("app.work")).ready_lane == "default\x1fblue"
    assert row_of(queue.enqueue("app.work", deployment_id="green")).deployment_id == "green"


def test_settings_are_read_when_a_job_is_enqueued(settings: Any) -> None:
    queue = Queue()
    settings.FLEXIQ = {"NAMESPACE": "later", "DEFAULT_PRIORITY": 5}

    row = row_of(queue.enqueue("app.work"))

    assert (row.namespace, row.priority) == ("later", 5)


def test_a_lifetime_is_of_the_call_else_of_the_task(settings: Any) -> None:
    settings.FLEXIQ = {"RESULT_TTL": 1}
    queue = Queue("default", result_ttl=2)

    @queue.task(result_ttl=3)
    def mortal() -> None: ...

    handles = [
        mortal.delay(), mortal.apply_async(result_ttl=0), queue.enqueue("app.work", result_ttl=0.5),
    ]  # fmt: skip
    assert [row_of(handle).result_ttl_ms for handle in handles] == [3_000, 0, 500]
    # That of a queue or of the settings is a window of tables, and no lifetime of jobs.
    assert row_of(queue.enqueue("app.work")).result_ttl_ms is None
