"""``manage.py flexiq_worker``: what it refuses before it begins. The rest is in tests/flows."""

from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from tests.processes import WorkerProcess


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--concurrency", "many", "is no whole number from 1 to 2147483647"),
        ("--concurrency", "0", "is no whole number from 1 to"),
        ("--processes", "1.5", "is no whole number from 1 to"),
        ("--max-jobs", "9" * 5_000, "is no whole number from 1 to"),
        ("--health-port", "http", "is no whole number from 0 to 65535"),
        ("--health-port", "65536", "is no whole number from 0 to 65535"),
        ("--max-turn-age", "x", "is no number of seconds above 0 and up to 3153600000"),
        ("--drain-timeout", "x", "is no number of seconds from 0 to 3153600000"),
        ("--drain-timeout", "1e10", "is no number of seconds from 0 to 3153600000"),
        ("--drain-timeout", "nan", "is no number of seconds from 0 to"),
        ("--max-rss", "9" * 400, "is no size; allowed are"),
    ],
)
def test_a_wrong_number_is_answered_with_what_is_allowed(
    option: str, value: str, allowed: str
) -> None:
    with pytest.raises(CommandError, match=f"argument {option}: '{value}' {allowed}"):
        call_command("flexiq_worker", option, value)


@pytest.mark.parametrize("queues", ["", ",", " , "])
def test_no_queue_is_not_every_queue(queues: str) -> None:
    with pytest.raises(CommandError, match="name at least one queue, or leave") as error:
        call_command("flexiq_worker", "--queues", queues)
    assert error.value.returncode == 2


def test_a_database_that_is_not_supported_is_one_line(
    start_worker: Callable[..., WorkerProcess],
) -> None:
    foreign = {"DJANGO_SETTINGS_MODULE": "tests.management.foreign_settings"}
    process = start_worker("--database", "foreign", environment=foreign)

    assert process.wait() == 1
    (line,) = process.log.splitlines()
    assert line.startswith("CommandError: database 'foreign': flexiq_django runs on SQLite")
