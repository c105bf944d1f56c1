"""What an enqueue refuses: by name, saying what is allowed, before anything is written."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from flexiq_django import Queue
from flexiq_django.exceptions import (
    DependencyError,
    FlexiQError,
    InvalidArgumentsError,
    InvalidOptionError,
    NotesValidationError,
    PayloadTooLargeError,
    SerializationError,
)
from tests.api.conftest import row_counts
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db

NAN, INF, HUGE = float("nan"), float("inf"), 10**400

SECONDS = [-1, -0.001, NAN, INF, HUGE, 1e300, 100 * 366 * 86_400, "5", True, timedelta(1)]
NAMES = ["", " ", "a ", " a", "a\n", "a\x00b", "a\x1fb", "\ud800", 5, b"a"]


def cases() -> list[Any]:
    found: list[tuple[str, Any]] = []
    found += [(name, value) for name in ("delay", "expires", "result_ttl") for value in SECONDS]
    found += [("timeout", value) for value in [0, 0.0, *SECONDS]]
    found += [("queue", value) for value in [*NAMES, "q" * 101]]
    found += [("deployment_id", value) for value in [*NAMES, "d" * 101]]
    found += [("max_retries", value) for value in (-1, 2**31, 1.0, "1", True)]
    found += [("priority", value) for value in (2**31, -(2**31), 0.5, "high", True)]
    found += [("unique_key", value) for value in ("", "k" * 256, 5, "a\x00", "\ud800", b"k")]
    found += [("metadata", value) for value in ({"a": 1}, 5, "a\x00", "\udfff", b"m")]
    for label in ("session_id", "user_id", "trace_id"):
        found += [(label, value) for value in ("", "x" * 201, 5, "a\x00", "\ud800")]
    found += [
        ("run_at", value)
        for value in (
            datetime(2090, 1, 1, tzinfo=UTC).replace(tzinfo=None),
            datetime.min.replace(tzinfo=UTC),
            datetime.max.replace(tzinfo=UTC),
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
            datetime(1969, 12, 31, tzinfo=UTC),
            "2090-01-01",
            5,
            datetime(2090, 1, 1, tzinfo=UTC).date(),
        )
    ]
    found += [("depends_on", value) for value in (5, 1.5)]
    found += [(flag, "no") for flag in ("allow_parent_failure", "idempotent")]
    return [pytest.param(name, value, id=f"{name}-{number}") for number, (name, value) in
            enumerate(found)]  # fmt: skip


@pytest.mark.parametrize(("option", "value"), cases())
def test_a_bad_option_is_refused_by_its_name(queue: Queue, option: str, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=rf"^{option} "):
        queue.enqueue("app.work", **{option: value})

    assert row_counts() == [0, 0, 0, 0]


def test_refusals_are_value_errors_of_ours() -> None:
    assert issubclass(InvalidOptionError, FlexiQError)
    assert issubclass(InvalidOptionError, ValueError)


@pytest.mark.parametrize("notes", [{"a": NAN}, {"": 1}, [1], {"a": {"b": {"c": {"d": 1}}}}])
def test_notes_have_rules_of_their_own(queue: Queue, notes: Any) -> None:
    with pytest.raises(NotesValidationError):
        queue.enqueue("app.work", notes=notes)

    assert row_counts() == [0, 0, 0, 0]


@pytest.mark.parametrize("task", [*NAMES, "t" * 201])
def test_a_task_needs_a_name(queue: Queue, task: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^task "):
        queue.enqueue(task)

    assert row_counts() == [0, 0, 0, 0]


def test_delay_and_run_at_exclude_each_other(queue: Queue) -> None:
    with pytest.raises(InvalidOptionError, match=r"^delay and run_at"):
        queue.enqueue("app.work", delay=1, run_at=datetime(2090, 1, 1, tzinfo=UTC))

    assert row_counts() == [0, 0, 0, 0]


def test_an_unknown_option_is_told_the_known_ones(queue: Queue) -> None:
    with pytest.raises(TypeError, match=r"unknown enqueue option eta, retries; known are .*run_at"):
        queue.enqueue("app.work", retries=1, eta=5)  # type: ignore[call-arg]

    assert row_counts() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "depends_on",
    ["no id", "", [""], "01900000-0000-7000-8000-000000000000", [None], ["x", 5]],
    ids=repr,
)
def test_a_parent_that_is_not_there_is_refused(queue: Queue, depends_on: Any) -> None:
    with pytest.raises(DependencyError, match=r"^depends_on: there is no job"):
        queue.enqueue("app.work", depends_on=depends_on)

    assert row_counts() == [0, 0, 0, 0]


@pytest.mark.parametrize("status", ["dead", "cancelled"])
def test_a_parent_that_failed_is_refused(queue: Queue, status: str) -> None:
    parent = JobFactory(ended=True, status=status)

    with pytest.raises(RuntimeError, match=f"^depends_on: job {parent.id} is {status}"):
        queue.enqueue("app.work", depends_on=parent.id)

    assert row_counts() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("args", "kwargs", "path"),
    [
        ((object(),), {}, r"args\[0\]"),
        ((1, [NAN]), {}, r"args\[1\]\[0\]"),
        ((), {"a": {"b": object()}}, r"kwargs\['a'\]\['b'\]"),
        ("text", {}, "args"),
        ({"a": 1}, {}, "args"),
        ((), [1], "kwargs"),
        ((), {5: 1}, "kwargs"),
    ],
)
def test_arguments_that_cannot_be_stored(queue: Queue, args: Any, kwargs: Any, path: str) -> None:
    with pytest.raises(SerializationError, match=f"^{path}"):
        queue.enqueue("app.work", args, kwargs)

    assert row_counts() == [0, 0, 0, 0]


def test_a_payload_has_a_size(queue: Queue, settings: Any) -> None:
    settings.FLEXIQ = {"MAX_PAYLOAD_BYTES": 100}

    queue.enqueue("app.work", ("x" * 80,))
    with pytest.raises(PayloadTooLargeError, match="at most 100 bytes"):
        queue.enqueue("app.work", ("x" * 120,))

    assert row_counts() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"c": 1}), ((1,), {"a": 2}), ("abc", {}), ((1,), [5])],
)
def test_a_call_that_does_not_fit_a_known_task(queue: Queue, args: Any, kwargs: Any) -> None:
    @queue.task(name="app.known")
    def work(a: int, b: int = 0) -> None: ...

    for task in (work, "app.known"):
        with pytest.raises(InvalidArgumentsError, match=r"^app\.known\(a.*cannot be called"):
            queue.enqueue(task, args, kwargs)
    with pytest.raises(TypeError):
        queue.enqueue_many(work, [(1,), args], [{}, kwargs])

    assert row_counts() == [0, 0, 0, 0]


def test_a_refusal_leaves_the_callers_transaction_usable(queue: Queue) -> None:
    with pytest.raises(InvalidOptionError):
        queue.enqueue("app.work", delay=-1)
    queue.enqueue("app.work")

    assert row_counts() == [1, 0, 0, 0]
