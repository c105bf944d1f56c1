"""An exception that does its worst when it is looked at is recorded all the same."""

# ruff: noqa: N818 - what matters about these exceptions is how they misbehave

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from flexiq_django.core import errors
from flexiq_django.core.errors import ParsedError
from tests.core.recorded import caught, describe, raising


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class Exiting(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class Wordless(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class Slippery(str):
    def __getitem__(self, key: Any) -> NoReturn:
        raise RuntimeError("no")

    def __len__(self) -> NoReturn:
        raise RuntimeError("no")

    isascii = encode = split = __getitem__


class SlipperyMessage(Exception):
    def __str__(self) -> str:
        return Slippery("slippery")


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__qualname__", "__name__", "__module__"):
            raise RuntimeError("no")
        return super().__getattribute__(name)


class Traceless(Exception):
    @property
    def __traceback__(self) -> NoReturn:  # type: ignore[override]
        raise SystemExit

    @property
    def __notes__(self) -> NoReturn:
        raise SystemExit


# Made inside the test: pytest could not show these as parameters.
HOSTILE: dict[str, tuple[Callable[[], BaseException], str]] = {
    "unprintable": (Unprintable, "cannot be read: str() raised RuntimeError"),
    "exiting": (Exiting, "cannot be read: str() raised SystemExit"),
    "wordless": (Wordless, "cannot be read: str() raised TypeError"),
    "slippery": (SlipperyMessage, "slippery"),
    "nameless": (lambda: Nameless("Hidden", (Exception,), {})("text"), "text"),
    "traceless": (lambda: Traceless("text"), "text"),
    "lambda": (lambda: ValueError(lambda: 1), "<lambda>"),
    "interrupt": (KeyboardInterrupt, ""),
    "generator": (lambda: GeneratorExit("bye"), "bye"),
    "syntax": (lambda: SyntaxError("bad", ("a\x00b", 10**9, -5, None)), "bad"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_exception_that_resists_is_recorded(kind: str) -> None:
    make, message = HOSTILE[kind]

    error = describe(caught(raising(make())))

    assert message in error.message
    assert error.errtype
    assert error.traceback


def test_class_without_a_readable_name_is_named_by_its_type() -> None:
    assert describe(Nameless("Hidden", (Exception,), {})()).errtype == "Hidden"


def test_traceback_that_cannot_be_formatted_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "TracebackException", None)

    error = describe(caught(raising(ValueError("bad"))))

    assert error == ParsedError(
        errtype="ValueError",
        message="bad",
        traceback=("<the traceback cannot be read: it raised TypeError>",),
    )


def test_exception_that_cannot_be_described_at_all_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(errors, "_type_name", None)

    assert describe(ValueError("bad")).message == "<the exception cannot be read: TypeError>"


@pytest.mark.parametrize("text", ["a\x00b", "a\udcffb", "a\ud83d\ude00b"])
def test_characters_no_database_takes_are_replaced(text: str) -> None:
    error = describe(caught(raising(OSError(text))))

    assert error.message == "".join("\ufffd" if char not in "ab" else char for char in text)
    assert "\ufffd" in error.traceback[-1]


def test_thousands_of_causes_are_recorded() -> None:
    exc: BaseException = ValueError("first")
    for number in range(5_000):
        later = ValueError(f"cause {number}")
        later.__cause__, exc = exc, later

    error = describe(exc)

    assert error.message == "cause 4999"
    assert error.traceback[-1] == "ValueError: cause 4999"
    assert error.traceback[0] == "ValueError: first"
    assert any("lines left out" in line for line in error.traceback)


def test_causes_in_a_circle_are_recorded() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first

    assert describe(first).message == "first"


def test_groups_in_groups_without_end_are_recorded() -> None:
    exc: Exception = ValueError("core")
    for number in range(5_000):
        exc = ExceptionGroup(f"group {number}", [exc])

    assert describe(exc).message == "group 4999 (1 sub-exception)"


def test_endless_recursion_is_recorded() -> None:
    def dive() -> None:
        dive()

    error = describe(caught(dive))

    assert error.errtype == "RecursionError"
    assert any("more times" in line for line in error.traceback)
