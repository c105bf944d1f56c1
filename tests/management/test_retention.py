"""``manage.py flexiq_retention``: preview and sweep."""

import builtins
import io
import json
import signal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from django.db import OperationalError

from flexiq_django.api import retention
from flexiq_django.core.retention import RECOMMENDED, TABLES, policy_of
from flexiq_django.management.durations import parse_duration
from flexiq_django.models import ArchivedJob, Setting, TaskLog
from tests.factories import (
    ArchivedJobFactory,
    DeadLetterFactory,
    JobFactory,
    TaskLogFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def configured(settings: Any) -> None:
    """Windows of the settings, so that queues of other tests do not matter."""
    settings.FLEXIQ = {"NAMESPACE": "swept"}


def run(*arguments: str, **options: Any) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("flexiq_retention", *arguments, stdout=out, **options)
    return out.getvalue()


def as_json(*arguments: str) -> dict[str, Any]:
    text = run("--json", *arguments)
    assert text.count("\n") == 1
    found: dict[str, Any] = json.loads(text)
    return found


def old_rows() -> None:
    """An archived job, an ended one, two log lines and a dead letter, all long past."""
    ArchivedJobFactory(namespace="swept")
    JobFactory(ended=True, namespace="swept")
    TaskLogFactory(namespace="swept")
    TaskLogFactory(namespace="swept")
    DeadLetterFactory(namespace="swept")


def rows_left() -> int:
    return ArchivedJob.objects.count() + TaskLog.objects.count()


# --- preview --------------------------------------------------------------------------------------


def test_the_preview_is_what_it_does_by_itself() -> None:
    old_rows()

    text = run()

    assert text == run("preview")
    assert text.startswith("namespace swept, database default, ")
    assert "recommended windows" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert rows["archived_jobs"] == ["archived_jobs", "7", "d", "2"]
    assert rows["task_logs"] == ["task_logs", "3", "d", "2"]
    assert rows["job_errors"] == ["job_errors", "7", "d", "0"]
    assert text.endswith("5 rows to delete\n")
    assert rows_left() == 3


def test_the_keys_of_the_json() -> None:
    old_rows()

    found = as_json()

    assert set(found) == {
        "database", "namespace", "enabled", "defaulted", "reference_time", "windows", "counts",
        "total",
    }  # fmt: skip
    assert (found["namespace"], found["enabled"], found["defaulted"]) == ("swept", True, True)
    assert found["windows"] == policy_of(RECOMMENDED).windows
    assert (found["counts"]["archived_jobs"], found["total"]) == (2, 5)


def test_windows_of_the_command_line_stand_over_the_configured_ones() -> None:
    old_rows()

    found = as_json("--archived-jobs", "forever", "--task-logs", "36500d", "--job-errors=90")

    assert found["windows"] == {
        **policy_of(RECOMMENDED).windows,
        "archived_jobs": None,
        "task_logs": 36_500 * 86_400_000,
        "job_errors": 90_000,
    }
    assert found["counts"] == {**dict.fromkeys(TABLES, 0), "dead_letter": 1}
    assert not found["defaulted"]


def test_without_windows(settings: Any) -> None:
    settings.FLEXIQ = {"NAMESPACE": "swept", "RETENTION": {}}
    old_rows()

    text = run()

    assert "no windows" in text
    assert "for ever" in text
    assert "0 rows to delete" in text


def test_another_namespace() -> None:
    old_rows()

    assert as_json("--namespace", "other")["total"] == 0


# --- sweep ----------------------------------------------------------------------------------------


def test_a_sweep_that_is_sure_deletes_what_the_preview_counts() -> None:
    old_rows()
    counted = as_json()

    text = run("sweep", "--yes")

    assert text.endswith("5 rows deleted\n")
    assert "\r" not in text  # no bar where there is no terminal
    assert rows_left() == 0
    assert counted["total"] == 5
    assert Setting.objects.count() == 0  # only a worker reports


def test_a_sweep_as_json() -> None:
    old_rows()

    found = as_json("sweep", "--yes")

    assert found["deleted"] == found["counts"]
    assert found["deleted_total"] == found["total"] == 5
    assert rows_left() == 0


def test_a_dry_run_is_a_preview() -> None:
    old_rows()

    before, dry = as_json("preview"), as_json("sweep", "--dry-run")

    assert {**before, "reference_time": 0} == {**dry, "reference_time": 0}
    assert rows_left() == 3


@pytest.mark.parametrize(
    ("answer", "goes"), [("y", True), (" YES ", True), ("", False), ("n", False), ("yess", False)]
)
def test_it_asks_with_the_count(monkeypatch: pytest.MonkeyPatch, answer: str, goes: bool) -> None:
    old_rows()
    asked: list[str] = []
    monkeypatch.setattr(builtins, "input", lambda text: asked.append(text) or answer)

    if goes:
        run("sweep")
    else:
        with pytest.raises(CommandError, match="nothing was deleted") as error:
            run("sweep")
        assert error.value.returncode == 1

    assert asked == ["Delete 5 rows? They cannot be brought back. [y/N] "]
    assert rows_left() == (0 if goes else 3)


@pytest.mark.parametrize("error", [EOFError, KeyboardInterrupt])
def test_nobody_to_ask_is_a_no(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def ask(_: str) -> str:
        raise error

    old_rows()
    monkeypatch.setattr(builtins, "input", ask)

    with pytest.raises(CommandError, match="nothing was deleted"):
        run("sweep")
    assert rows_left() == 3


def test_nothing_to_delete_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "input", pytest.fail)

    assert run("sweep").endswith("0 rows deleted\n")


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutputWrapper, "isatty", lambda _: True)
    for _ in range(3):
        ArchivedJobFactory(namespace="swept")
    TaskLogFactory(namespace="swept")

    text = run("sweep", "--yes", no_color=True)

    assert "100 %  4 of 4 rows\n4 rows deleted" in text.replace("\r", "\n", 1)


def test_ctrl_c_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep(*_: Any) -> Any:
        yield "task_logs", 1_200
        raise KeyboardInterrupt

    old_rows()
    monkeypatch.setattr(retention, "sweep", sweep)

    with pytest.raises(CommandError, match="stopped after 1,200 rows") as error:
        run("sweep", "--yes")
    assert error.value.returncode == 130


def test_ctrl_c_while_it_counts_leaves_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "preview", lambda *_: signal.raise_signal(signal.SIGINT))

    with pytest.raises(CommandError, match="interrupted") as error:
        run()
    assert error.value.returncode == 130


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--database", "nowhere"), "there is no database 'nowhere'"),
        (("--namespace", " "), "--namespace is ' '"),
        (("sweep", "--json"), "needs --yes"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*arguments)


@pytest.mark.parametrize(
    "text", ["", "week", "-1", "7w", "1e3", "7 days", "nan", "inf", "36501d", "9" * 400]
)
def test_spans_that_are_none(text: str) -> None:
    with pytest.raises(CommandError, match="is no span of time"):
        run(f"--task-logs={text}")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        ("90s", 90),
        ("1.5m", 90),
        ("2h", 7_200),
        ("7d", 604_800),
        ("7D", 604_800),
    ],
)
def test_spans(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_a_build_below_the_floor(settings: Any) -> None:
    Setting.objects.create(
        key="contract:min_sdk", value="99", updated_at="2026-01-01T00:00:00+00:00"
    )

    with pytest.raises(CommandError, match="upgrade flexiq_django"):
        run()


def test_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OperationalError("connection refused\nmore")

    monkeypatch.setattr(retention, "preview", refuse)

    with pytest.raises(CommandError, match=r"does not answer as it should \(connection refused\)"):
        run()
