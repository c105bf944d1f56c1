"""enqueue, delay and apply_async: each option reaches its column."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from flexiq_django import JobResult, Queue
from flexiq_django.models import Job, JobDependency
from tests.api.conftest import call_of, open_first, row_of
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


def after_creation(row: Job, moment: datetime | None) -> timedelta:
    assert moment is not None
    return moment - row.created_at


NAIVE = datetime(2090, 7, 1, 12, tzinfo=UTC).replace(tzinfo=None)
MILLISECOND = timedelta(milliseconds=1)


def test_the_defaults(queue: Queue) -> None:
    @queue.task
    def work() -> None: ...

    row = row_of(work.delay())

    assert row.task_name == work.name
    assert (row.queue, row.priority, row.max_retries, row.timeout_ms) == ("default", 0, 3, 300_000)
    assert (row.result_ttl_ms, row.metadata, row.notes, row.unique_key) == (None,) * 4
    assert (row.status, row.origin, row.namespace) == ("pending", "task", "default")


def test_the_arguments(queue: Queue) -> None:
    @queue.task
    def work(a: int, b: int = 0, *, c: int = 0) -> None: ...

    assert call_of(work.delay(1, c=3)) == [[1], {"c": 3}]
    assert call_of(work.apply_async((1, 2), {"c": 3})) == [[1, 2], {"c": 3}]
    assert call_of(work.apply_async([1])) == [[1], {}]
    assert call_of(queue.enqueue(work, (1,))) == [[1], {}]
    assert call_of(queue.enqueue(work.name, (1,), {"b": 2})) == [[1], {"b": 2}]


@pytest.mark.parametrize(
    ("option", "value", "column", "stored"),
    [
        ("priority", 7, "priority", 7),
        ("priority", -(2**31) + 1, "priority", -(2**31) + 1),
        ("priority", 2**31 - 1, "priority", 2**31 - 1),
        ("queue", "mail", "queue", "mail"),
        ("queue", "q" * 100, "queue", "q" * 100),
        ("max_retries", 0, "max_retries", 0),
        ("max_retries", 2**31 - 1, "max_retries", 2**31 - 1),
        ("timeout", 1.5, "timeout_ms", 1_500),
        ("timeout", 0.0001, "timeout_ms", 1),
        ("result_ttl", 0, "result_ttl_ms", 0),
        ("result_ttl", 2.5, "result_ttl_ms", 2_500),
        ("unique_key", "k", "unique_key", "k"),
        ("idempotency_key", "k", "unique_key", "k"),
        ("metadata", "", "metadata", ""),
        ("metadata", '{"a": 1}', "metadata", '{"a": 1}'),
        ("notes", {}, "notes", "{}"),
        ("notes", {"b": 1, "a": ["ü"]}, "notes", '{"a":["ü"],"b":1}'),
        ("session_id", "s", "session_id", "s"),
        ("user_id", "u", "user_id", "u"),
        ("deployment_id", "blue", "deployment_id", "blue"),
        ("trace_id", "t", "trace_id", "t"),
    ],
)
def test_an_option_reaches_its_column(
    queue: Queue, option: str, value: Any, column: str, stored: Any
) -> None:
    handle = queue.enqueue("app.work", **{option: value})

    assert getattr(row_of(handle), column) == stored


def test_none_means_as_if_not_given(queue: Queue) -> None:
    names = (
        "priority", "delay", "run_at", "queue", "max_retries", "timeout", "unique_key",
        "idempotency_key", "expires", "result_ttl", "metadata", "notes", "depends_on",
        "session_id", "user_id", "deployment_id", "trace_id",
    )  # fmt: skip
    plain = row_of(queue.enqueue("app.work"))
    given = row_of(queue.enqueue("app.work", **dict.fromkeys(names)))

    varying = ("id", "created_at", "updated_at", "scheduled_at", "_state")
    assert {k: v for k, v in vars(plain).items() if k not in varying} == {
        k: v for k, v in vars(given).items() if k not in varying
    }


@pytest.mark.parametrize("delay", [0.001, 90, 3_600.5])
def test_a_delay_is_in_seconds(queue: Queue, delay: float) -> None:
    row = row_of(queue.enqueue("app.work", delay=delay))

    wait = after_creation(row, row.promote_at)
    assert abs(wait - timedelta(seconds=delay)) < MILLISECOND
    assert row.ready_lane is None


@pytest.mark.parametrize("delay", [0, 0.0])
def test_no_delay_is_ready(queue: Queue, delay: float) -> None:
    assert row_of(queue.enqueue("app.work", delay=delay)).ready_lane == "default"


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("America/New_York")])
def test_a_time_to_run(queue: Queue, zone: Any) -> None:
    moment = datetime(2090, 7, 1, 12, 0, 0, 5, tzinfo=zone)

    assert row_of(queue.enqueue("app.work", run_at=moment)).promote_at == moment


def test_a_naive_time_is_one_of_the_project_where_it_is_naive(queue: Queue, settings: Any) -> None:
    settings.USE_TZ = False
    settings.TIME_ZONE = "America/New_York"

    row = row_of(queue.enqueue("app.work", run_at=NAIVE))

    assert row.promote_at == datetime(2090, 7, 1, 16, tzinfo=UTC)


def test_an_expiry_counts_from_now(queue: Queue) -> None:
    row = row_of(queue.enqueue("app.work", expires=5.5, delay=1))

    wait = after_creation(row, row.expires_at)
    assert abs(wait - timedelta(seconds=5.5)) < MILLISECOND


def test_unique_key_wins_over_its_other_name(queue: Queue) -> None:
    handle = queue.enqueue("app.work", unique_key="a", idempotency_key="b")

    assert row_of(handle).unique_key == "a"


def test_a_taken_key_gives_the_handle_of_its_holder(queue: Queue) -> None:
    first = queue.enqueue("app.work", unique_key="k", priority=1)
    second = queue.enqueue("app.other", ("x",), unique_key="k", priority=2, queue="mail")

    assert second == first
    assert second.id == first.id
    assert (second.task_name, second.priority) == ("app.work", 1)
    assert Job.objects.count() == 1


@pytest.mark.parametrize("form", ["handle", "text", "uuid", "list", "repeated", "mixed"])
def test_parents_in_every_form(queue: Queue, form: str) -> None:
    first, second = queue.enqueue("app.a"), queue.enqueue("app.b")
    depends_on: dict[str, Any] = {
        "handle": first,
        "text": first.id,
        "uuid": UUID(first.id),
        "list": [first],
        "repeated": [first, first.id, UUID(first.id)],
        "mixed": (first, second.id),
    }

    child = queue.enqueue("app.c", depends_on=depends_on[form])

    expected = [first.id, second.id] if form == "mixed" else [first.id]
    assert child.dependencies == expected
    assert first.dependents == [child.id]
    assert row_of(child).ready_lane is None


def test_no_parents(queue: Queue) -> None:
    assert queue.enqueue("app.work", depends_on=[]).dependencies == []


def test_parents_that_have_completed_are_still_shown(queue: Queue) -> None:
    parent = JobFactory(ended=True)

    child = queue.enqueue("app.work", depends_on=str(parent.id))

    assert child.dependencies == [str(parent.id)]
    assert row_of(child).ready_lane == "default"


def test_a_failed_parent_may_be_tolerated(queue: Queue) -> None:
    parent = JobFactory(ended=True, status="dead")

    child = queue.enqueue("app.work", depends_on=parent.id, allow_parent_failure=True)

    assert JobDependency.objects.get(job_id=UUID(child.id)).allow_failure


def test_a_handle_can_be_had_without_a_look_at_the_database(
    queue: Queue, django_assert_num_queries: Any
) -> None:
    open_first(queue)
    with django_assert_num_queries(1):
        handle = queue.enqueue("app.work")
        assert isinstance(handle, JobResult)
        assert UUID(handle.id).version == 7


def test_every_type_of_argument_comes_back(queue: Queue) -> None:
    from flexiq_django.core.payload import decode_call

    args = (None, True, 1, 1.5, "ü\x00", b"\xff", (1, (2,)), {3}, [{}], {1: 2}, timedelta(1))
    handle = queue.enqueue("app.work", args, {"when": datetime(2026, 1, 1, tzinfo=UTC)})

    assert decode_call(row_of(handle).payload) == (
        args, {"when": datetime(2026, 1, 1, tzinfo=UTC)}
    )  # fmt: skip
