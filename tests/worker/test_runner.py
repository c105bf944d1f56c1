"""Runner: every way a body can end becomes an outcome."""

import json
import sys
import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from flexiq_django import Queue, current_job
from flexiq_django.core.errors import parse_error
from flexiq_django.core.outcome import CANCELLED, EXPIRED, Ending, Outcome
from flexiq_django.core.payload import decode_result, encode_call
from flexiq_django.core.records import ClaimedJob
from flexiq_django.exceptions import (
    LeaseLost,
    Permanent,
    RateLimited,
    SerializationError,
    SoftTimeoutError,
    TaskCancelledError,
)
from flexiq_django.worker.attempt import late, too_late
from tests.factories import ClaimedJobFactory
from tests.worker.running import make_attempt, make_runner, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Queue:
    return Queue("default")


def job_of(args: tuple[Any, ...] = (), kwargs: Any = None, **fields: Any) -> ClaimedJob:
    payload = encode_call(args, kwargs or {}, limit_bytes=9_999)
    return ClaimedJobFactory(**{"task_name": "app.work", "payload": payload, **fields})


def run_body(queue: Queue, body: Any, job: ClaimedJob | None = None, **options: Any) -> Outcome:
    queue.task(name="app.work", **options)(body)
    outcome = run(queue, job or job_of())
    assert outcome is not None
    return outcome


def raising(error: BaseException) -> Any:
    def body() -> None:
        raise error

    return body


@pytest.mark.parametrize("value", [None, 0, "ü", [1, {"a": 2}], (1, 2), {3}])
def test_a_returned_value_is_the_result(queue: Queue, value: Any) -> None:
    outcome = run_body(queue, lambda: value)

    assert outcome.ending is Ending.COMPLETED
    assert outcome.error is None
    assert (outcome.result and decode_result(outcome.result)) == (None if value is None else value)
    assert outcome.duration_ms is not None
    assert 0 <= outcome.duration_ms < 60_000


def test_a_body_that_runs_inside_another_leaves_it_its_job(queue: Queue) -> None:
    async def inner() -> str:
        return current_job.id

    def body() -> list[str]:
        attempt = make_attempt(job_of(task_name="app.inner"))
        async_to_sync(make_runner(queue).run_async)(attempt)
        run(queue, attempt.job)
        return [current_job.id]

    queue.task(name="app.inner")(inner)
    job = job_of()
    assert decode_result(run_body(queue, body, job).result or "") == [str(job.id)]


def test_the_arguments_arrive_as_they_were_given(queue: Queue) -> None:
    outcome = run_body(
        queue, lambda *args, **kwargs: [args, kwargs], job_of((1, (2, 3)), {"a": {4}})
    )

    assert decode_result(outcome.result or "") == [(1, (2, 3)), {"a": {4}}]


def test_a_coroutine_is_run_to_its_end(queue: Queue) -> None:
    async def body(value: int) -> str:
        return f"{value} {current_job.task_name}"

    outcome = run_body(queue, body, job_of((5,)))

    assert decode_result(outcome.result or "") == "5 app.work"


def test_a_failing_coroutine_fails_like_any_body(queue: Queue) -> None:
    async def body() -> None:
        raise ValueError("bad")

    outcome = run_body(queue, body)

    error = parse_error(outcome.error)
    assert (outcome.ending, error.errtype, error.message) == (Ending.FAILED, "ValueError", "bad")
    assert error.traceback[1].endswith("in body")


def test_a_body_knows_its_job_and_the_next_one_knows_nothing(queue: Queue) -> None:
    job = job_of(retry_count=2)

    outcome = run_body(queue, lambda: [current_job.id, current_job.retry_count], job)

    assert decode_result(outcome.result or "") == [str(job.id), 2]
    with pytest.raises(RuntimeError):
        current_job.id  # noqa: B018


@pytest.mark.parametrize(
    "error",
    [ValueError("bad"), KeyError("k"), OSError(2, "no"), Exception(), AssertionError("x"),
     SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(5), MemoryError(),
     TimeoutError("network"), SoftTimeoutError(), RecursionError(),
     ExceptionGroup("several", [ValueError("a"), KeyError("b")])],
    ids=repr,
)  # fmt: skip
def test_whatever_is_raised_is_a_failure_that_may_be_tried_again(
    queue: Queue, error: BaseException
) -> None:
    outcome = run_body(queue, raising(error))

    assert (outcome.ending, outcome.retryable, outcome.retry_after) == (Ending.FAILED, True, None)
    assert outcome.result is None
    assert parse_error(outcome.error).errtype.endswith(type(error).__name__)
    assert outcome.duration_ms is not None


def test_an_exception_that_cannot_be_printed_is_a_failure_too(queue: Queue) -> None:
    class Hostile(Exception):  # noqa: N818 - from user code
        def __str__(self) -> str:
            raise RuntimeError("no")

        __repr__ = __str__

    outcome = run_body(queue, raising(Hostile()))

    assert outcome.ending is Ending.FAILED
    assert parse_error(outcome.error).errtype.endswith("Hostile")


def test_the_text_of_an_error_has_a_limit(queue: Queue) -> None:
    queue.task(name="app.work")(raising(ValueError("x" * 10_000)))

    outcome = run(queue, job_of(), max_error_bytes=1_000)

    assert outcome is not None
    assert len(outcome.error or "") <= 1_000
    assert json.loads(outcome.error or "")["errtype"] == "ValueError"


@pytest.mark.parametrize(
    ("error", "options", "retryable"),
    [
        (Permanent("never"), {}, False),
        (Permanent("never"), {"retry_on": [Permanent]}, False),
        (SerializationError("x"), {}, False),
        (ValueError(), {"dont_retry_on": [ValueError]}, False),
        (KeyError(), {"retry_on": [OSError]}, False),
        (ConnectionError(), {"retry_on": [OSError]}, True),
        (TypeError("inside"), {}, True),
    ],
    ids=repr,
)
def test_some_failures_are_final(
    queue: Queue, error: Exception, options: dict[str, Any], retryable: bool
) -> None:
    assert run_body(queue, raising(error), **options).retryable is retryable


def test_a_rate_limit_says_when_to_come_back(queue: Queue) -> None:
    outcome = run_body(queue, raising(RateLimited(2.5)), dont_retry_on=[Exception])

    assert (outcome.ending, outcome.retryable, outcome.retry_after) == (Ending.FAILED, True, 2.5)


def test_a_body_may_cancel_itself(queue: Queue) -> None:
    outcome = run_body(queue, raising(TaskCancelledError()))

    assert (outcome.ending, outcome.error) == (Ending.CANCELLED, CANCELLED)
    assert outcome.duration_ms is not None


def test_a_lost_lease_has_no_outcome(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    queue.task(name="app.work")(raising(LeaseLost()))

    assert run(queue, job_of()) is None
    assert "no longer owns the job" in caplog.text


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, 2), {}), ((1,), {"b": 2}), ((1,), {"a": 2})]
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_does_not_fit_is_final(
    queue: Queue, args: tuple[int, ...], kwargs: dict[str, int], is_async: bool
) -> None:
    def plain(a: int) -> None: ...

    async def coroutine(a: int) -> None: ...

    outcome = run_body(queue, coroutine if is_async else plain, job_of(args, kwargs))

    assert (outcome.ending, outcome.retryable) == (Ending.FAILED, False)
    assert parse_error(outcome.error).errtype == "TypeError"


def test_a_type_error_of_the_body_may_be_tried_again(queue: Queue) -> None:
    def helper(a: int) -> None: ...

    def body() -> None:
        helper()  # type: ignore[call-arg]

    assert run_body(queue, body).retryable


def test_an_unknown_task_may_be_known_by_the_next_worker(queue: Queue) -> None:
    outcome = run(queue, job_of(task_name="app.unknown"))

    assert outcome is not None
    assert (outcome.ending, outcome.retryable) == (Ending.FAILED, True)
    assert "unknown task 'app.unknown'" in parse_error(outcome.error).message


@pytest.mark.parametrize("payload", ["no json", "[]", "[[],{}", '[[{"$fq:future":1}],{}]', "null"])
def test_arguments_that_cannot_be_read_are_final(queue: Queue, payload: str) -> None:
    outcome = run_body(queue, lambda: None, job_of()._replace(payload=payload))

    assert (outcome.ending, outcome.retryable) == (Ending.FAILED, False)
    assert parse_error(outcome.error).errtype.endswith("SerializationError")


@pytest.mark.parametrize("value", [object(), float("nan"), [sys], "x" * 70_000])
def test_a_result_that_cannot_be_stored_is_final(queue: Queue, value: Any) -> None:
    outcome = run_body(queue, lambda: value)

    assert (outcome.ending, outcome.retryable, outcome.result) == (Ending.FAILED, False, None)
    assert "result" in parse_error(outcome.error).message


def test_a_body_that_returns_late_has_timed_out(queue: Queue) -> None:
    def body() -> str:
        deadline = time.monotonic() + 0.005
        while time.monotonic() < deadline:
            pass
        return "late"

    outcome = run_body(queue, body, job_of(timeout_ms=1))

    assert (outcome.ending, outcome.error) == (Ending.FAILED, "job timed out after 1ms")
    assert (outcome.result, outcome.retryable) == (None, True)
    assert outcome.duration_ms is not None
    assert outcome.duration_ms >= 5


def test_the_outcomes_of_the_worker_itself() -> None:
    job = job_of(timeout_ms=50)
    attempt = make_attempt(job)

    assert (late(attempt).ending, late(attempt).error) == (
        Ending.FAILED, "job timed out after 50ms"
    )  # fmt: skip
    assert too_late(job) == Outcome(job=job, ending=Ending.EXPIRED, error=EXPIRED)


def test_a_body_does_not_begin_when_its_time_is_up_already(queue: Queue) -> None:
    ran: list[str] = []
    queue.task(name="app.work")(lambda: ran.append("body"))
    queue.task(name="app.together", transactional=True)(lambda: ran.append("together"))

    @queue.task(name="app.later")
    async def later() -> None:
        ran.append("later")

    runner = make_runner(queue)
    for name in ("app.work", "app.together", "app.later"):
        attempt = make_attempt(job_of(task_name=name))
        attempt.is_over = True
        assert runner.run(attempt) is None
        assert async_to_sync(runner.run_async)(attempt) is None
    assert ran == []
