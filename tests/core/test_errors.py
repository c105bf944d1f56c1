"""An exception is recorded whatever it does, and what was recorded can be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, NoReturn

import pytest

from flexiq_django.core import errors
from flexiq_django.core.errors import ParsedError
from flexiq_django.exceptions import FlexiQError
from tests.core.recorded import LIMIT, caught, describe, raising

# --- ordinary exceptions --------------------------------------------------------------------------


def test_type_message_and_traceback() -> None:
    error = describe(caught(raising(ValueError("bad"))))

    assert (error.errtype, error.message) == ("ValueError", "bad")
    assert error.traceback[0] == "Traceback (most recent call last):"
    assert error.traceback[-1] == "ValueError: bad"
    assert any("in action" in line for line in error.traceback)
    assert all("\n" not in line for line in error.traceback)


def test_type_outside_builtins_has_its_module() -> None:
    class LocalError(Exception):
        pass

    assert describe(FlexiQError("x")).errtype == "flexiq_django.exceptions.FlexiQError"
    assert describe(LocalError()).errtype == f"{LocalError.__module__}.{LocalError.__qualname__}"


def test_cause_is_part_of_the_traceback() -> None:
    def action() -> None:
        try:
            raise KeyError("inner")
        except KeyError as exc:
            raise ValueError("outer") from exc

    text = "\n".join(describe(caught(action)).traceback)

    assert "KeyError: 'inner'" in text
    assert "direct cause" in text
    assert text.index("inner") < text.index("outer")


def test_members_of_a_group_are_part_of_the_traceback() -> None:
    group = ExceptionGroup("several", [ValueError("one"), ExceptionGroup("in", [OSError("two")])])

    error = describe(caught(raising(group)))

    assert error.errtype == "ExceptionGroup"
    assert error.message == "several (2 sub-exceptions)"
    assert "ValueError: one" in "\n".join(error.traceback)
    assert "OSError: two" in "\n".join(error.traceback)


def test_notes_are_part_of_the_traceback() -> None:
    exc = ValueError("bad")
    exc.add_note("while counting")

    assert describe(exc).traceback[-1] == "while counting"


def run_as(module: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as if it were code of ``module``."""
    return FunctionType(function.__code__, {**function.__globals__, "__name__": module})


def call(action: Callable[[], Any]) -> Any:
    return action()


def fail() -> NoReturn:
    raise ValueError("bad")


@pytest.mark.parametrize("runner", ["flexiq_django.api.task", "asgiref.sync", "asyncio.runners"])
def test_frames_of_the_runner_are_left_out(runner: str) -> None:
    catch = run_as("flexiq_django.worker.attempt", caught)
    wrapper = run_as(runner, call)

    def task() -> None:
        call(fail)

    lines = describe(catch(partial(wrapper, task))).traceback

    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith("in task")
    assert [line.rpartition(" in ")[2] for line in lines if " in " in line] == [
        "task",
        "call",
        "fail",
    ]


def test_later_frames_of_ours_are_kept() -> None:
    wrapper = run_as("flexiq_django.api.task", call)

    assert any("in call" in line for line in describe(caught(partial(wrapper, fail))).traceback)


def test_error_of_our_own_keeps_its_frames() -> None:
    catch = run_as("flexiq_django.worker.attempt", caught)

    lines = describe(catch(run_as("flexiq_django.worker.attempt", fail))).traceback

    assert any("in fail" in line for line in lines)


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 600, 4_096, LIMIT])
@pytest.mark.parametrize("letter", ["x", "ż", "\U0001f600", "\x00", '"', "\n", " "])
def test_huge_message_is_cut_and_marked(letter: str, limit: int) -> None:
    error = describe(caught(raising(ValueError(f"start {letter * 5_000_000}"))), limit)

    assert error.message.startswith("start")
    assert error.message.endswith("[cut]")
    assert error.errtype == "ValueError"


def test_message_that_just_fits_is_whole() -> None:
    error = describe(ValueError("x" * 20_000))

    assert error.message == "x" * 20_000
    assert error.traceback == (f"ValueError: {'x' * 20_000}",)


def test_long_traceback_keeps_both_ends() -> None:
    def step(level: int) -> None:
        if level == 0:
            raise ValueError("bottom")
        (step if level % 2 else other)(level - 1)

    def other(level: int) -> None:
        step(level)

    lines = describe(caught(lambda: step(300)), 4_096).traceback

    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: bottom"
    assert sum("lines left out" in line for line in lines) == 1


def test_long_class_name_is_cut() -> None:
    error = describe(type("ż" * 50_000, (Exception,), {})("bad"), 1_000)

    assert error.errtype.endswith("[cut]")
    assert error.message == "bad"


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "line"),
    [
        (None, None),
        ("", ""),
        ("job timed out after 300000ms", "job timed out after 300000ms"),
        ("two\nlines", "two lines"),
        ('{"errtype":"ValueError","message":"bad","traceback":[]}', "ValueError: bad"),
        ('{"errtype":"ValueError","message":"","traceback":[]}', "ValueError"),
        ('{"errtype":"A","message":" b\\n\\tc ","traceback":["x"]}', "A: b c"),
        ('{"errtype":"ValueError"', '{"errtype":"ValueError"'),
        (
            '{"errtype":1,"message":"b","traceback":[]}',
            '{"errtype":1,"message":"b","traceback":[]}',
        ),
        ("{}", "{}"),
        ("[1]", "[1]"),
        ("bad\x00\ud800", "bad\ufffd\ufffd"),
        ("x" * 500, "x" * 500),
        ("x" * 501, "x" * 497 + "..."),
    ],
)
def test_summary_is_one_line(stored: str | None, line: str | None) -> None:
    assert errors.summarise_error(stored) == line


@pytest.mark.parametrize(
    "stored",
    [
        "expired",
        "",
        "{",
        "{}",
        "null",
        '{"errtype":"A"}',
        '{"errtype":"A","message":1,"traceback":[]}',
        '{"errtype":"A","message":"b","traceback":"c"}',
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=range(10),
)
def test_what_is_no_stored_exception_is_all_message(stored: str) -> None:
    assert errors.parse_error(stored) == ParsedError(errtype="", message=stored)


def test_absent_error_has_empty_parts() -> None:
    assert errors.parse_error(None) == ParsedError(errtype="", message="")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("zażółć \U0001f600", "zażółć \U0001f600"),
        ("a\x00", "a\ufffd"),
        ("ż\x00\udc00", "ż\ufffd\ufffd"),
        ("\ud83d\ude00", "\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_clean_text(text: str, clean: str) -> None:
    assert errors.clean_text(text) == clean


@pytest.mark.parametrize("text", ["plain", 'say "no"', "żółw", "C:\\temp", "a\x00b"])
def test_fragment_is_found_in_what_is_stored(text: str) -> None:
    stored = errors.describe_exception(ValueError(f"before {text} after"), limit_bytes=LIMIT)

    assert errors.stored_fragment(text) in stored
