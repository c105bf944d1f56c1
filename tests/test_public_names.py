"""What `from flexiq_django import ...` promises."""

import importlib
import inspect
import subprocess
import sys

import pytest

import flexiq_django
from flexiq_django import exceptions
from flexiq_django.exceptions import FlexiQError


def test_every_public_name_is_there() -> None:
    for name in flexiq_django.__all__:
        assert getattr(flexiq_django, name) is not None
    assert flexiq_django.__all__ == sorted(flexiq_django.__all__)


def test_the_names_are_those_that_are_documented() -> None:
    assert {
        "Queue", "queue", "task", "current_job", "JobStatus", "JobResult", "Task", "MisfirePolicy",
        "FlexiQError", "LeaseLost", "Permanent", "RateLimited", "Retention", "TaskCancelledError",
    } <= set(flexiq_django.__all__)  # fmt: skip


def test_each_name_has_one_home() -> None:
    assert set(flexiq_django._HOMES) == set(flexiq_django.__all__)
    for name, home in flexiq_django._HOMES.items():
        assert getattr(importlib.import_module(home), name) is getattr(flexiq_django, name)


def test_task_is_that_of_the_default_queue() -> None:
    assert flexiq_django.task == flexiq_django.queue.task


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'flexiq_django' has no attribute 'Job'"):
        flexiq_django.Job  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_needs_no_settings() -> None:
    code = (
        "import sys, flexiq_django; "
        "assert 'django' not in sys.modules; "
        "from flexiq_django import JobStatus, FlexiQError, MisfirePolicy; "
        "assert 'django' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def errors() -> list[type[FlexiQError]]:
    return [
        member
        for _, member in inspect.getmembers(exceptions, inspect.isclass)
        if member.__module__ == exceptions.__name__ and member is not exceptions.JobPaused
    ]


def test_a_pause_is_no_exception_that_a_handler_could_swallow() -> None:
    assert not issubclass(exceptions.JobPaused, Exception)
    assert exceptions.JobPaused("ask Ada").reason == "ask Ada"


@pytest.mark.parametrize("error", errors(), ids=lambda error: error.__name__)
def test_every_error_is_one_of_ours_and_says_what_it_means(error: type[FlexiQError]) -> None:
    assert issubclass(error, FlexiQError)
    assert error.__doc__
    assert error.__doc__[0].isupper()


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        ("InvalidOptionError", ValueError),
        ("OptionTypeError", ValueError),
        ("OptionTypeError", TypeError),
        ("OptionOverflowError", OverflowError),
        ("NotesValidationError", ValueError),
        ("InvalidScheduleError", ValueError),
        ("UnknownStatusError", ValueError),
        ("SerializationError", ValueError),
        ("PayloadTooLargeError", ValueError),
        ("ConfigurationError", ValueError),
        ("InvalidArgumentsError", TypeError),
        ("DependencyError", RuntimeError),
        ("JobNotActiveError", RuntimeError),
        ("ContractError", RuntimeError),
        ("SettingConflictError", RuntimeError),
        ("UnknownTaskError", LookupError),
        ("JobNotFoundError", KeyError),
        ("JobNotFoundError", ValueError),
        ("DeadLetterNotFoundError", RuntimeError),
        ("TaskTimeoutError", TimeoutError),
        ("SoftTimeoutError", TimeoutError),
    ],
)
def test_errors_are_also_what_a_python_user_expects(error: str, builtin: type[Exception]) -> None:
    assert issubclass(getattr(exceptions, error), builtin)


def test_a_default_message_is_the_first_sentence() -> None:
    assert str(exceptions.Permanent()) == (
        "The task cannot succeed however often it is tried: no retry."
    )
    assert str(exceptions.JobNotFoundError()) == "There is no such job in this namespace."
    assert str(exceptions.JobNotFoundError("gone")) == "gone"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_bad_pause_is_refused_where_it_is_asked_for(seconds: float) -> None:
    with pytest.raises(exceptions.InvalidOptionError, match=r"^retry_after is"):
        exceptions.RateLimited(seconds)


def test_a_pause_is_kept() -> None:
    assert exceptions.RateLimited(5).retry_after == 5.0
    assert exceptions.RateLimited(0, "slow down").args == ("slow down",)
