"""``manage.py flexiq_info``."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from flexiq_django import Queue
from flexiq_django.core.ages import as_age
from flexiq_django.management import report
from flexiq_django.management.tables import as_moment, table
from flexiq_django.models import Job
from tests.admin import rows
from tests.processes import WorkerProcess

HELD = ("pending", "running", "completed", "failed", "dead", "cancelled")


def info(*arguments: str, **options: Any) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("flexiq_info", *arguments, stdout=out, **options)
    return out.getvalue()


def as_json(*arguments: str) -> dict[str, Any]:
    """What the command prints with --json."""
    text = info("--json", *arguments)
    assert text.count("\n") == 1
    found: dict[str, Any] = json.loads(text)
    return found


def warnings(*arguments: str) -> list[str]:
    """The codes of what looks wrong."""
    return [each["code"] for each in as_json(*arguments)["warnings"]]


@pytest.mark.django_db
def test_an_empty_namespace() -> None:
    found = as_json()
    assert found["namespace"] == "default"
    assert found["database"] == "default"
    assert found["stats"] == dict.fromkeys(HELD, 0)
    assert found["oldest_ready_seconds"] is None
    assert found["queues"] == found["workers"] == found["schedules"] == found["warnings"] == []
    text = info()
    assert "no queues" in text
    assert "no workers" in text
    assert "no schedules" in text
    assert "WARNING" not in text


@pytest.mark.django_db
def test_the_keys_of_the_json() -> None:
    rows.make_job()
    rows.make_worker()
    rows.make_schedule()
    found = as_json()
    assert set(found) == {
        "namespace", "database", "time", "stats", "oldest_ready_seconds", "queues", "workers",
        "schedules", "warnings",
    }  # fmt: skip
    assert set(found["queues"][0]) == {
        "name", *HELD, "ready", "oldest_ready_seconds", "paused", "workers",
    }  # fmt: skip
    assert set(found["workers"][0]) == {
        "id", "hostname", "pid", "queues", "executor", "concurrency", "deployment_id", "state",
        "version", "started_at", "heartbeat_at", "heartbeat_age_seconds", "turned_at",
        "turn_age_seconds", "clock_skew_ms", "config",
    }  # fmt: skip
    assert set(found["schedules"][0]) == {
        "name", "task_name", "cron", "timezone", "queue", "enabled", "next_run_at", "last_run_at",
        "missed",
    }  # fmt: skip
    for key in (
        found["time"],
        found["workers"][0]["started_at"],
        found["schedules"][0]["next_run_at"],
    ):
        assert isinstance(key, int)


@pytest.mark.django_db
def test_counts_queues_and_ages() -> None:
    now = datetime.now(UTC)
    rows.make_job(scheduled_at=now - timedelta(seconds=90))
    rows.make_job(scheduled_at=now - timedelta(seconds=10))
    rows.make_job(ready_lane=None, promote_at=now + timedelta(hours=1), queue="slow")
    for status in ("running", "complete", "dead", "cancelled", "paused"):
        rows.make_job(status, queue="slow")
    rows.make_job(namespace="elsewhere")
    rows.pause_queue("slow")
    rows.make_worker(queues='["mail", "idle"]')
    found = as_json()
    assert found["stats"] == {
        "pending": 4, "running": 1, "completed": 1, "failed": 0, "dead": 1, "cancelled": 1,
    }  # fmt: skip
    by_name = {each["name"]: each for each in found["queues"]}
    assert set(by_name) == {"mail", "slow", "idle"}
    assert by_name["mail"]["ready"] == 2
    assert 89 < by_name["mail"]["oldest_ready_seconds"] < 150
    assert by_name["mail"]["oldest_ready_seconds"] == found["oldest_ready_seconds"]
    assert by_name["slow"]["ready"] == 0
    assert by_name["slow"]["oldest_ready_seconds"] is None
    assert [each["paused"] for each in by_name.values()] == [False, False, True]
    assert by_name["idle"]["workers"] == by_name["mail"]["workers"] == 1
    assert by_name["slow"]["workers"] == 0


@pytest.mark.django_db
def test_counts_agree_with_the_queue() -> None:
    queue = Queue(namespace="agreement")
    queue.enqueue("some.task")
    queue.enqueue("some.task", queue="other")
    found = as_json("--namespace", "agreement")
    assert found["stats"] == queue.stats()
    assert {each["name"]: {key: each[key] for key in HELD} for each in found["queues"]} == (
        queue.stats_by_queue()
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: None, ["no-worker"]),
        (lambda: rows.make_worker(), []),
        (lambda: rows.make_worker(queues='["mail"]'), []),
        (lambda: rows.make_worker(queues='["other"]'), ["unserved-queue"]),
        (lambda: rows.make_worker(state="draining"), ["no-worker"]),
        (lambda: rows.make_worker(lease_at=rows.NOW.replace(year=2020)), ["no-worker"]),
        (lambda: rows.make_worker(namespace="elsewhere"), ["no-worker"]),
        (lambda: rows.pause_queue("mail"), []),
    ],
)
def test_jobs_that_nobody_can_serve(make: Callable[[], Any], expected: list[str]) -> None:
    rows.make_job()
    make()
    assert warnings() == expected


@pytest.mark.django_db
def test_a_worker_that_drains_serves_no_queue() -> None:
    rows.make_job()
    rows.make_worker(id="leaves", state="draining")

    found = as_json()

    assert found["warnings"][0]["text"] == "1 job waits in queue mail, and every live worker drains"
    assert found["queues"][0]["workers"] == 0
    rows.make_worker(queues='["other"]')
    assert warnings() == ["unserved-queue"]


@pytest.mark.django_db
def test_jobs_of_a_deployment_that_nobody_has() -> None:
    queue = Queue()
    queue.enqueue("some.task", deployment_id="blue")
    rows.make_worker(deployment_id="green")
    assert warnings() == ["unserved-deployment"]
    rows.make_worker(id="other", deployment_id="blue", queues='["elsewhere"]')
    assert warnings() == ["unserved-deployment"]
    rows.make_worker(id="third", deployment_id="blue")
    assert warnings() == []


@pytest.mark.django_db
def test_workers_that_differ() -> None:
    rows.make_worker(config='{"lock_grace_seconds": 60, "default_retry": 3}')
    rows.make_worker(id="same", config='{"lock_grace_seconds": 60.0, "default_retry": 3}')
    assert warnings() == []
    rows.make_worker(
        id="other", config='{"lock_grace_seconds": 30, "default_retry": 3}', version="0.2.0"
    )
    found = as_json()["warnings"]
    assert [each["code"] for each in found] == ["fleet-differs", "fleet-differs"]
    assert "lock_grace_seconds: 60 on web-1-4711-a0b1c2, same; 30 on other" in found[0]["text"]
    assert "version" in found[1]["text"]


@pytest.mark.django_db
def test_a_claim_loop_that_hangs() -> None:
    rows.make_worker(id="hung", turned_at=datetime.now(UTC) - timedelta(minutes=5))
    rows.make_worker(turned_at=datetime.now(UTC) - timedelta(seconds=50))
    (found,) = as_json()["warnings"]
    assert found["code"] == "claim-loop-hangs"
    assert "worker hung had not turned for 5 min" in found["text"]


@pytest.mark.django_db
def test_clocks_and_schedules_that_are_off() -> None:
    rows.make_worker(clock_skew_ms=-7_500)
    rows.make_schedule(next_run_at=datetime.now(UTC) - timedelta(hours=2))
    rows.make_schedule(
        name="off", enabled=False, next_run_at=datetime.now(UTC) - timedelta(hours=2)
    )
    found = as_json()["warnings"]
    assert [each["code"] for each in found] == ["clock-skew", "schedule-overdue"]
    assert "-7.5 s" in found[0]["text"]
    assert "nightly has been due for 2 h" in found[1]["text"]


@pytest.mark.django_db
def test_the_text_is_aligned_and_says_the_same() -> None:
    rows.make_job()
    rows.make_job("running", queue="a queue with a long name")
    rows.make_worker(queues='["mail"]', deployment_id="blue")
    rows.make_schedule(missed_count=3)
    text = info()
    lines = text.splitlines()
    assert lines[0].startswith("namespace default, database default, ")
    assert lines[1] == "pending 1, running 1, completed 0, failed 0, dead 0, cancelled 0"
    head = next(line for line in lines if line.startswith("queue "))
    mail = next(line for line in lines if line.startswith("mail "))
    assert head.index("state") == mail.index("open")
    assert "web-1-4711-a0b1c2  web-1  mail" in text
    assert "nightly" in text
    assert "Europe/Dublin" in text


@pytest.mark.django_db
def test_hostile_names_move_no_cursor() -> None:
    rows.make_worker(hostname="\x1b[2J\u202eevil\n", id="w")
    text = info()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "?[2J?evil?" in text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--database", "nowhere"], "nowhere"),
        (["--namespace", " blank "], "--namespace"),
    ],
)
def test_what_cannot_be_shown_is_an_error(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words) as raised:
        info(*arguments)
    assert raised.value.returncode == 1


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon", "1e10"])
def test_strange_seconds_are_a_wrong_usage(seconds: str) -> None:
    words = f"--watch: '{seconds}' is no number of seconds above 0 and up to 3153600000"
    with pytest.raises(CommandError, match=words):
        info(f"--watch={seconds}")


def test_a_database_that_is_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("connection refused\nmore")

    monkeypatch.setattr(report.inspect, "read_clock", away)
    with pytest.raises(CommandError, match=r"connection refused\).*migrate"):
        info()


@pytest.mark.django_db(transaction=True)
def test_watching_goes_on_through_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = report.figures.stats_by_queue, iter(["away", "here", "stop"])

    def by_turns(*arguments: Any) -> Any:
        match next(calls):
            case "away":
                raise OperationalError("gone away")
            case "here":
                return real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(report.figures, "stats_by_queue", by_turns)
    errors = io.StringIO()
    text = info("--watch", "0.01", stderr=errors)
    assert "gone away" in errors.getvalue()
    assert text.count("namespace default") == 1


@pytest.fixture
def run_command(transactional_db: None, tmp_path: Path) -> Callable[..., WorkerProcess]:
    """Start the command as a process of its own."""

    def run(*arguments: str) -> WorkerProcess:
        return WorkerProcess(*arguments, command="flexiq_info", log_path=tmp_path / "log")

    return run


def test_as_a_process(run_command: Callable[..., WorkerProcess]) -> None:
    Job.objects.create(**rows.job_fields())
    with run_command("--json") as process:
        assert process.wait() == 0
        assert json.loads(process.log)["stats"]["pending"] == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--no-such-option"], 2), (["--watch", "soon"], 2), (["--database", "nowhere"], 1)],
)
def test_exit_codes(
    run_command: Callable[..., WorkerProcess], arguments: list[str], code: int
) -> None:
    with run_command(*arguments) as process:
        assert process.wait() == code
        assert "Traceback" not in process.log


def test_ctrl_c_ends_watching_quietly(run_command: Callable[..., WorkerProcess]) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        pytest.skip("what a shell starts in the background ignores Ctrl-C, and so do its children")
    with run_command("--watch", "0.1", "--json") as process:
        process.wait_for_log(r"(?s)\"namespace\".*\"namespace\"")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert "Traceback" not in process.log
        for line in filter(None, process.log.splitlines()):
            assert json.loads(line)["namespace"] == "default"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, None),
        (0.04, "0.0 s"),
        (59.96, "60.0 s"),
        (60, "1 min"),
        (61.5, "1 min 1 s"),
        (7_500, "2 h 5 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_ages(seconds: float | None, text: str | None) -> None:
    assert as_age(seconds) == text


def test_moments_say_their_zone(settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"
    assert as_moment(0) == "1970-01-01 05:30:00 IST"
    assert as_moment(None) is None


def test_tables() -> None:
    assert table("thing", ("n",), []) == "\nno things"
    shown = table("thing", ("n", "x"), [("a", 5, None), ("日本", 10, "y")])
    assert shown.splitlines() == ["", "thing   n  x", "a       5  -", "日本   10  y"]


def test_the_help_is_there() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-m", "django", "flexiq_info", "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    for option in ("--json", "--watch", "--namespace", "--database"):
        assert option in done.stdout
