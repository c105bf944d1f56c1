"""``manage.py flexiq_health``: exit codes, reasons, thresholds."""

import io
import json
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import InterfaceError, connection

from tests.admin import rows
from tests.processes import WorkerProcess

KEYS = {
    "healthy", "namespace", "database", "time", "workers", "oldest_ready_seconds", "reasons",
}  # fmt: skip


def health(*arguments: str) -> tuple[int, dict[str, Any], list[str]]:
    """The exit code, the JSON and the lines on standard error."""
    out, errors = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command("flexiq_health", "--json", *arguments, stdout=out, stderr=errors)
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    found = json.loads(out.getvalue())
    assert set(found) == KEYS
    assert found["healthy"] is (code == 0)
    lines = errors.getvalue().splitlines()
    assert len(lines) == len(found["reasons"])
    return code, found, lines


def reasons(*arguments: str) -> list[str]:
    """The codes of what is wrong."""
    return [each["code"] for each in health(*arguments)[1]["reasons"]]


def hung(**given: Any) -> None:
    """A worker whose heart beats and whose claim loop has not turned for ten minutes."""
    rows.make_worker(turned_at=datetime.now(UTC) - timedelta(minutes=10), **given)


@pytest.mark.django_db
def test_a_fleet_without_workers_is_unhealthy() -> None:
    code, found, lines = health()

    assert (code, found["workers"], found["oldest_ready_seconds"]) == (1, 0, None)
    assert found["reasons"][0]["code"] == "too-few-workers"
    assert lines == ["unhealthy: 0 workers well, 1 expected"]


@pytest.mark.django_db
def test_a_fleet_with_a_worker_and_no_backlog_is_healthy() -> None:
    rows.make_worker()
    rows.make_job(scheduled_at=datetime.now(UTC) - timedelta(seconds=100))

    code, found, _ = health()

    assert (code, found["workers"], found["reasons"]) == (0, 1, [])
    assert 99 < found["oldest_ready_seconds"] < 200
    out = io.StringIO()
    call_command("flexiq_health", stdout=out)
    assert out.getvalue() == "healthy, with 1 worker\n"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["old-job"]),
        (("--max-age", "1h"), []),
        (("--queues", "other"), []),
        (("--queues", "mail,other"), ["old-job"]),
        (("--host", "web-1"), []),
        (("--host", "web-1", "--max-age", "60"), ["old-job"]),
        (("--worker", "web-1-4711-a0b1c2"), []),
        (("--min-workers", "2", "--max-age", "forever"), ["too-few-workers"]),
    ],
)
def test_a_job_that_waits_too_long(arguments: tuple[str, ...], expected: list[str]) -> None:
    rows.make_worker()
    rows.make_job(scheduled_at=datetime.now(UTC) - timedelta(seconds=600))

    assert reasons(*arguments) == expected


@pytest.mark.django_db
def test_a_probe_of_one_host_counts_no_backlog(
    django_assert_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    rows.make_worker()
    rows.make_job()
    with django_assert_num_queries(2):  # the clock and the workers
        _, found, _ = health("--host", "web-1")
    assert found["oldest_ready_seconds"] is None


@pytest.mark.django_db
def test_the_jobs_of_a_paused_queue_may_wait() -> None:
    rows.make_worker()
    rows.make_job(scheduled_at=datetime.now(UTC) - timedelta(seconds=600))
    rows.pause_queue("mail")

    assert reasons() == []


@pytest.mark.django_db
def test_a_claim_loop_that_hangs() -> None:
    hung()

    _, found, lines = health("--host", "web-1")

    assert [each["code"] for each in found["reasons"]] == ["claim-loop-hangs", "too-few-workers"]
    assert "web-1-4711-a0b1c2 had not turned for 10 min" in lines[0]
    assert reasons("--host", "web-1", "--max-turn-age", "900") == []
    rows.make_worker(id="well")
    assert reasons("--host", "web-1") == ["claim-loop-hangs"]
    assert reasons("--worker", "well") == []


@pytest.mark.django_db
def test_the_longest_turn_follows_the_poll_seconds(settings: Any) -> None:
    hung()
    settings.FLEXIQ = {**settings.FLEXIQ, "POLL_SECONDS": 300}

    assert reasons() == []


@pytest.mark.django_db
def test_a_worker_that_is_gone_or_elsewhere() -> None:
    rows.make_worker(lease_at=rows.NOW.replace(year=2020), hostname=socket.gethostname())
    rows.make_worker(id="other", hostname="elsewhere")

    assert reasons("--host") == ["too-few-workers"]
    assert reasons("--worker", "web-1-4711-a0b1c2") == ["too-few-workers"]
    assert reasons("--host", "elsewhere") == []
    assert reasons("--worker", "other", "--host", "web-1") == ["too-few-workers"]
    assert reasons("--namespace", "nobodys") == ["too-few-workers"]
    assert reasons("--min-workers", "0", "--host") == []


@pytest.mark.django_db
def test_each_queue_that_matters_needs_workers() -> None:
    rows.make_worker(queues='["mail"]')

    code, _, lines = health("--queues", "mail, other")

    assert (code, lines) == (1, ["unhealthy: 0 workers well and serving queue other, 1 expected"])


@pytest.mark.django_db
def test_a_fleet_that_only_drains_is_unhealthy_but_its_workers_are_alive() -> None:
    rows.make_worker(state="draining")
    worker = "web-1-4711-a0b1c2"

    code, found, lines = health()

    assert (code, found["workers"]) == (1, 1)
    assert lines == ["unhealthy: 0 workers well, 1 expected; 1 draining"]
    assert reasons("--queues", "mail") == ["too-few-workers"]
    assert reasons("--host", "web-1", "--queues", "mail") == []
    assert reasons("--worker", worker) == []
    rows.make_worker(id="new", hostname="web-2")
    assert reasons() == []
    assert reasons("--min-workers", "2") == ["too-few-workers"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-age", "soon"], ["--min-workers", "-1"], ["--max-turn-age", "0"],
        ["--database", "nowhere"], ["--queues", "\x00"], ["--queues", ""], ["--queues", " , "],
        ["--min-workers", "many"], ["--max-turn-age", "1e10"], ["--max-age", "9" * 400],
    ],
)  # fmt: skip
def test_a_wrong_call_is_an_error(arguments: list[str]) -> None:
    with pytest.raises(CommandError) as error:
        call_command("flexiq_health", *arguments)
    assert "invalid" not in str(error.value)


RunCommand = Callable[..., WorkerProcess]


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--min-workers", "0"], 0), ([], 1), (["--max-age", "soon"], 2),
                            (["--database", "nowhere"], 2), (["--queues", ","], 2)],
)  # fmt: skip
def test_exit_codes_of_a_process(start_worker: RunCommand, arguments: list[str], code: int) -> None:
    process = start_worker(*arguments, command="flexiq_health")

    assert process.wait() == code
    assert "Traceback" not in process.log


@pytest.mark.django_db
def test_a_connection_that_the_driver_gave_up_is_a_reason() -> None:
    def refuse(*_statement: Any) -> None:
        raise InterfaceError("connection already closed")

    with connection.execute_wrapper(refuse):
        code, found, _ = health()

    assert (code, [each["code"] for each in found["reasons"]]) == (1, ["database-away"])


def test_a_database_that_is_away_is_one_line(start_worker: RunCommand) -> None:
    away = {
        "FLEXIQ_TEST_DATABASE_URL": "sqlite://:memory:",
        "FLEXIQ_TEST_DATABASE_NAME": "/nowhere/flexiq.sqlite3",
    }
    process = start_worker(command="flexiq_health", environment=away)

    assert process.wait() == 1
    assert process.log.startswith("unhealthy: the database cannot be read (")
    assert process.log.count("\n") == 1


def test_a_database_that_is_not_supported_is_a_reason(start_worker: RunCommand) -> None:
    foreign = {"DJANGO_SETTINGS_MODULE": "tests.management.foreign_settings"}
    arguments = ("--database", "foreign", "--json")
    process = start_worker(*arguments, command="flexiq_health", environment=foreign)

    assert process.wait() == 1
    answer, told = process.log.splitlines()
    (reason,) = json.loads(answer)["reasons"]
    assert reason["code"] == "database-unsupported"
    assert told == f"unhealthy: {reason['text']}"
