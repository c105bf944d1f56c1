"""current_job: what a running body may ask and say; outside one, every member refuses."""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest

from flexiq_django import current_job
from flexiq_django.api.context import Attempt, CurrentJob, LogLevel, set_current
from flexiq_django.exceptions import (
    InvalidOptionError,
    LeaseLost,
    SerializationError,
    SoftTimeoutError,
    TaskCancelledError,
)
from tests.factories import ClaimedJobFactory

CALLS: dict[str, tuple[Any, ...]] = {
    "update_progress": (5,),
    "check_cancelled": (),
    "check_timeout": (),
    "log": ("message",),
    "publish": ({"a": 1},),
    "pause": ("why",),
}
MEMBERS = sorted(name for name in vars(CurrentJob) if not name.startswith("_"))


class Notes:
    """A journal that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.looks = 0
        self.answer: dict[str, bool] = {}

    def progress(self, job: Any, value: int) -> None:
        self.told.append(("progress", job.id, value))

    def log(self, job: Any, level: str, message: str, extra: str | None) -> None:
        self.told.append((level, message, extra))

    def look(self, attempt: Attempt) -> None:
        self.looks += 1
        for name, value in self.answer.items():
            setattr(attempt, name, value)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def attempt(notes: Notes) -> Iterator[Attempt]:
    """An attempt that is running here."""
    job = ClaimedJobFactory(queue="mail", task_name="app.send", retry_count=2, attempt=4,
                            metadata="m")  # fmt: skip
    running = Attempt(job, namespace="ns", journal=notes, soft_timeout=100)
    set_current(running)
    yield running
    set_current(None)


@pytest.mark.parametrize("name", MEMBERS)
def test_outside_a_job_every_member_refuses(name: str) -> None:
    with pytest.raises(RuntimeError, match="only be used inside a running task"):
        getattr(current_job, name)(*CALLS[name])


@pytest.mark.parametrize("value", [None, -1, 101, "x", {1}])
def test_outside_a_job_bad_values_refuse_alike(value: Any) -> None:
    for act in (current_job.update_progress, current_job.publish, current_job.log):
        with pytest.raises(RuntimeError, match="only be used inside a running task"):
            act(value)


@pytest.mark.parametrize("reason", [None, "", 5, "x" * 2001, "a\x00b"])
def test_a_pause_must_say_why(attempt: Attempt, reason: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^reason "):
        current_job.pause(reason)


def test_the_members_are_known() -> None:
    methods = {name for name, _ in inspect.getmembers(CurrentJob, inspect.isfunction)}

    assert {name for name in methods if not name.startswith("_")} == set(CALLS)


def test_what_it_says_about_the_job(attempt: Attempt) -> None:
    assert current_job.id == str(attempt.job.id)
    assert (current_job.task_name, current_job.queue_name) == ("app.send", "mail")
    assert (current_job.retry_count, current_job.attempt) == (2, 4)
    assert (current_job.namespace, current_job.metadata) == ("ns", "m")


def test_it_speaks_for_the_attempt_of_its_own_thread_and_coroutine(attempt: Attempt) -> None:
    elsewhere: list[BaseException] = []

    def ask() -> None:
        try:
            current_job.id  # noqa: B018
        except RuntimeError as error:
            elsewhere.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(10)
    assert len(elsewhere) == 1

    async def ask_in_coroutine() -> str:
        return current_job.id

    assert asyncio.run(ask_in_coroutine()) == str(attempt.job.id)
    assert copy_context().run(lambda: current_job.id) == str(attempt.job.id)


@pytest.mark.parametrize("value", [0, 1, 99, 100])
def test_progress_is_passed_on(attempt: Attempt, notes: Notes, value: int) -> None:
    current_job.update_progress(value)

    assert notes.told == [("progress", attempt.job.id, value)]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, InvalidOptionError), (101, InvalidOptionError), (1.5, TypeError), ("5", TypeError),
        (None, TypeError), (True, TypeError),
    ],
)  # fmt: skip
def test_bad_progress_is_refused(
    attempt: Attempt, notes: Notes, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"^progress is"):
        current_job.update_progress(value)

    assert notes.told == []


@pytest.mark.parametrize("level", [*LogLevel, *(level.value for level in LogLevel)])
def test_a_line_has_a_level(attempt: Attempt, notes: Notes, level: Any) -> None:
    current_job.log("message", level, {"a": [1, None]})

    assert notes.told == [(str(level), "message", '{"a": [1, null]}')]


def test_a_plain_line_is_information(attempt: Attempt, notes: Notes) -> None:
    current_job.log("message")

    assert notes.told == [("info", "message", None)]


def test_a_line_is_text_that_every_database_takes(attempt: Attempt, notes: Notes) -> None:
    current_job.log("a\x00b\ud800")
    current_job.log(5)  # type: ignore[arg-type]

    assert [line[1] for line in notes.told] == ["a\ufffdb\ufffd", "5"]


@pytest.mark.parametrize("level", ["INFO", "fatal", "", 5, None])
def test_an_unknown_level_is_told_the_known_ones(
    attempt: Attempt, notes: Notes, level: Any
) -> None:
    with pytest.raises(InvalidOptionError, match=r"^level is .*; allowed are debug, info, warning"):
        current_job.log("message", level)

    assert notes.told == []


def test_published_values_are_results_in_the_log(attempt: Attempt, notes: Notes) -> None:
    current_job.publish({"row": 5})
    current_job.publish(None)

    assert notes.told == [("result", "", '{"row": 5}'), ("result", "", "null")]


def circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), circle()])
def test_what_json_cannot_hold_is_refused(attempt: Attempt, notes: Notes, value: Any) -> None:
    with pytest.raises(SerializationError, match=r"^extra cannot be written"):
        current_job.publish(value)
    with pytest.raises(SerializationError):
        current_job.log("message", extra=value)

    assert notes.told == []


def test_nobody_asked_to_stop(attempt: Attempt, notes: Notes) -> None:
    current_job.check_cancelled()
    current_job.check_cancelled()

    assert attempt.is_watched
    assert notes.looks == 1  # the worker keeps the flags fresh from then on


def test_a_request_known_at_the_first_look(attempt: Attempt, notes: Notes) -> None:
    notes.answer = {"is_cancel_requested": True}

    for _ in range(2):
        with pytest.raises(TaskCancelledError) as caught:
            current_job.check_cancelled()
        assert caught.value.job_id == str(attempt.job.id)


def test_a_request_that_comes_later(attempt: Attempt, notes: Notes) -> None:
    current_job.check_cancelled()
    attempt.is_cancel_requested = True

    with pytest.raises(TaskCancelledError):
        current_job.check_cancelled()


def test_a_lost_lease_outranks_a_request(attempt: Attempt, notes: Notes) -> None:
    notes.answer = {"is_cancel_requested": True, "is_over": True}

    with pytest.raises(LeaseLost):
        current_job.check_cancelled()


def test_a_soft_timeout_is_noticed_once_it_has_passed(attempt: Attempt) -> None:
    current_job.check_timeout()
    attempt.began -= 101

    with pytest.raises(SoftTimeoutError, match="soft timeout of 100 s has passed"):
        current_job.check_timeout()


def test_without_a_soft_timeout_none_passes(attempt: Attempt) -> None:
    attempt.soft_timeout = None
    attempt.began -= 10**9

    current_job.check_timeout()


def test_only_the_first_says_how_an_attempt_ended(attempt: Attempt) -> None:
    assert attempt.end()
    assert not attempt.end()
