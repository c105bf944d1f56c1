"""``manage.py flexiq_dead``."""

import builtins
import io
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from flexiq_django import Queue
from flexiq_django.core.errors import describe_exception
from flexiq_django.management.commands import flexiq_dead
from flexiq_django.management.given import ProgressLine
from flexiq_django.models import DeadLetter, Job, JobError
from flexiq_django.store import dead_letters
from flexiq_django.store.dead_letters import Wanted
from tests.factories import DeadLetterFactory, JobErrorFactory, JobFactory, at, later
from tests.processes import WorkerProcess

pytestmark = pytest.mark.django_db

UNKNOWN = "01900000-0000-7000-8000-000000000000"


class Shown(io.StringIO):
    """What is printed, on a terminal or not."""

    def __init__(self, is_terminal: bool = False) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def dead(*arguments: str, errors: io.StringIO | None = None) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("flexiq_dead", *arguments, stdout=out, stderr=errors or Shown())
    return out.getvalue()


def ids(*arguments: str) -> list[str]:
    """The ids that it lists."""
    lines = dead("list", "--json", *arguments).splitlines()
    return [json.loads(line)["id"] for line in lines]


def stored_error(message: str) -> str:
    try:
        raise ValueError(message)
    except ValueError as error:
        return describe_exception(error, limit_bytes=65_536)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """A person at a terminal who gives this answer; the questions that were asked."""

    def give(text: str) -> list[str]:
        asked: list[str] = []

        def ask(question: str) -> str:
            asked.append(question)
            if text == "EOF":
                raise EOFError
            return text

        monkeypatch.setattr(builtins, "input", ask)
        monkeypatch.setattr(sys, "stdin", Shown(is_terminal=True))
        return asked

    return give


# --- list and show --------------------------------------------------------------------------------


def test_none() -> None:
    assert dead("list") == "no dead letters\n"
    assert dead("list", "--json") == ""


def test_the_list_is_a_table_with_one_line_of_each_error() -> None:
    letter = DeadLetterFactory(
        queue="mail", task_name="app.send", error=stored_error("bad\nthing " + "x" * 300)
    )
    lines = dead("list").splitlines()
    assert len(lines) == 2
    assert lines[0].split()[:3] == ["dead", "letter", "task"]
    for part in (str(letter.id), "app.send", "mail", "2026-03-02 12:00:00 UTC", "ValueError: bad"):
        assert part in lines[1]
    assert lines[1].endswith("xxx...")


def test_the_json_has_a_letter_on_each_line() -> None:
    letter = DeadLetterFactory(
        error=stored_error("bad\nthing"), metadata="m", auto_retry_at=later(9)
    )
    assert json.loads(dead("list", "--json")) == {
        "id": str(letter.id),
        "original_job_id": str(letter.original_job_id),
        "queue": "default",
        "task_name": "app.tasks.work",
        "error": "ValueError: bad thing",
        "retry_count": 3,
        "failed_at": int(later(0).timestamp() * 1000),
        "metadata": "m",
        "dlq_retry_count": 0,
        "auto_retry_at": int(later(9).timestamp() * 1000),
    }


def test_the_latest_failure_comes_first_and_the_choice_narrows() -> None:
    made = [
        str(DeadLetterFactory(failed_at=later(number // 2), queue=f"q{number % 3}").id)
        for number in range(7)
    ]
    DeadLetterFactory(namespace="other")
    assert ids() == made[::-1]
    assert ids("--limit", "3") == made[:3:-1]
    assert ids("--limit", "0") == []
    assert ids("--queue", "q1") == [made[4], made[1]]
    assert ids("--task", "app.other") == []
    assert len(ids("--namespace", "other")) == 1


def test_pages_of_a_list_meet_without_gap_or_repeat() -> None:
    made = [DeadLetterFactory(failed_at=later(number // 3)).id for number in range(11)]
    for size in (1, 2, 4, 11, 50):
        found = dead_letters.newest(at(), Wanted(), limit=10, size=size)
        assert [each["id"] for each in found] == made[:0:-1]
        assert [
            key for page in dead_letters.oldest_ids(at(), Wanted(), size=size) for key in page
        ] == made


def test_twenty_unless_told_otherwise() -> None:
    for _ in range(25):
        DeadLetterFactory()
    assert len(ids()) == 20


def test_a_letter_in_full() -> None:
    letter = DeadLetterFactory(
        payload='[["é"],{}]', error=stored_error("bad"), metadata="order 7", trace_id="t"
    )
    text = dead("show", str(letter.id))
    for part in (str(letter.id), '[["é"],{}]', "ValueError: bad", "order 7", "Traceback"):
        assert part in text
    found = json.loads(dead("show", str(letter.id), "--json"))
    assert found["payload"] == '[["é"],{}]'
    assert found["error"] == "ValueError: bad"
    assert found["traceback"][-1].startswith("ValueError: bad")
    assert found["trace_id"] == "t"


def test_hostile_text_moves_no_cursor() -> None:
    hostile = "\x1b[2J\u202eevil"
    letter = DeadLetterFactory(error=hostile, metadata=hostile, payload=f'[["{hostile}"],{{}}]')
    for text in (dead("list"), dead("show", str(letter.id))):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "?[2J?evil" in text


@pytest.mark.parametrize("dead_id", ["x", UNKNOWN])
@pytest.mark.parametrize("verb", ["show", "retry", "delete"])
def test_a_letter_that_is_not_there(verb: str, dead_id: str) -> None:
    errors = Shown()
    arguments = [verb, dead_id, *(["--yes"] if verb == "delete" else [])]
    with pytest.raises(CommandError) as raised:
        dead(*arguments, errors=errors)
    assert raised.value.returncode == 1
    assert f"there is no dead letter {dead_id}" in errors.getvalue() + str(raised.value)


# --- retry ----------------------------------------------------------------------------------------


def test_letters_are_retried_by_their_ids() -> None:
    letters = [DeadLetterFactory() for _ in range(3)]
    chosen = [str(each.id) for each in letters[:2]]
    lines = dead("retry", *chosen).splitlines()
    assert [line.split()[0] for line in lines] == chosen
    assert {line.split()[-1] for line in lines} == {str(job.id) for job in Job.objects.all()}
    assert DeadLetter.objects.get() == letters[2]


def test_one_that_fails_stops_no_other() -> None:
    letter, revoked = DeadLetterFactory(), DeadLetterFactory(task_name="app.off")
    Queue().revoke_task("app.off")
    errors = Shown()
    with pytest.raises(CommandError, match="2 of 3 failed"):
        dead("retry", UNKNOWN, str(revoked.id), str(letter.id), errors=errors)
    assert UNKNOWN in errors.getvalue()
    assert "revoked" in errors.getvalue()
    assert DeadLetter.objects.get() == revoked
    assert Job.objects.count() == 1


def test_all_of_them_or_a_choice() -> None:
    for number in range(9):
        DeadLetterFactory(queue=f"q{number % 2}", task_name=f"app.{number % 3}")
    DeadLetterFactory(namespace="other")
    assert dead("retry", "--all", "--queue", "q1", "--task", "app.0") == "1 dead letter retried\n"
    assert dead("retry", "--all", "--queue", "q1") == "3 dead letters retried\n"
    assert dead("retry", "--all") == "5 dead letters retried\n"
    assert dead("retry", "--all") == "0 dead letters retried\n"
    assert Job.objects.count() == 9
    assert DeadLetter.objects.count() == 1


def test_all_but_those_of_revoked_tasks() -> None:
    for number in range(5):
        DeadLetterFactory(task_name=f"app.{number % 2}")
    Queue().revoke_task("app.0")
    with pytest.raises(CommandError, match="3 dead letters stay, as their task is revoked"):
        dead("retry", "--all")
    assert Job.objects.count() == 2


def test_jobs_that_fail_again_at_once_are_not_retried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(4):
        DeadLetterFactory()
    plain = flexiq_dead.retry_letters

    def fail_again(*arguments: Any) -> Any:
        done = plain(*arguments)
        for _ in done.jobs:
            DeadLetterFactory(failed_at=later(9))
        return done

    monkeypatch.setattr(flexiq_dead, "retry_letters", fail_again)
    assert dead("retry", "--all") == "4 dead letters retried\n"


@pytest.mark.parametrize(
    "arguments", [[], ["--all", UNKNOWN], ["--queue", "q"], [UNKNOWN, "--task", "t"]], ids=str
)
def test_what_to_retry_must_be_said_in_one_way(arguments: list[str]) -> None:
    with pytest.raises(CommandError) as raised:
        dead("retry", *arguments)
    assert raised.value.returncode == 2


def test_the_summary_comes_also_when_it_ends_badly(monkeypatch: pytest.MonkeyPatch) -> None:
    DeadLetterFactory()

    def away(*_: Any) -> Any:
        raise OperationalError("gone away\nmore")

    monkeypatch.setattr(flexiq_dead, "retry_letters", away)
    out = io.StringIO()
    with pytest.raises(CommandError, match="gone away"):
        call_command("flexiq_dead", "retry", "--all", stdout=out)
    assert out.getvalue() == "0 dead letters retried\n"


# --- delete and purge -----------------------------------------------------------------------------


def make_dead_jobs(count: int) -> list[str]:
    made = []
    for _ in range(count):
        job = JobFactory(ended=True, status="dead")
        JobErrorFactory(job_id=job.id)
        made.append(str(DeadLetterFactory(original_job_id=job.id).id))
    return made


def counts() -> tuple[int, int, int]:
    return DeadLetter.objects.count(), Job.objects.count(), JobError.objects.count()


@pytest.mark.parametrize("answered", ["y", "Yes "])
def test_deleting_asks_and_leaves_the_jobs(
    answer: Callable[[str], list[str]], answered: str
) -> None:
    made = make_dead_jobs(3)
    asked = answer(answered)
    dead("delete", *made[:2], made[0])
    assert asked == ["Delete 2 dead letters, which can then not be retried? [y/N] "]
    assert counts() == (1, 3, 3)


def test_purging_asks_with_the_count_and_takes_the_jobs(
    answer: Callable[[str], list[str]],
) -> None:
    make_dead_jobs(3)
    asked = answer("y")
    assert dead("purge", "--older-than", "60") == "3 dead letters deleted\n"
    assert len(asked) == 1
    assert "Delete 3 dead letters that failed more than 1 min ago" in asked[0]
    assert counts() == (0, 0, 0)
    assert dead("purge", "--older-than", "60") == "0 dead letters deleted\n"
    assert len(asked) == 1


@pytest.mark.parametrize("answered", ["", "n", "no", "yess", "EOF"])
@pytest.mark.parametrize("verb", ["delete", "purge"])
def test_any_other_answer_changes_nothing(
    answer: Callable[[str], list[str]], verb: str, answered: str
) -> None:
    (made,) = make_dead_jobs(1)
    answer(answered)
    with pytest.raises(CommandError, match="nothing was changed"):
        dead(verb, *([made] if verb == "delete" else ["--older-than", "0"]))
    assert counts() == (1, 1, 1)


@pytest.mark.parametrize("verb", ["delete", "purge"])
def test_where_nobody_can_be_asked_it_takes_a_yes(
    monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    (made,) = make_dead_jobs(1)
    monkeypatch.setattr(sys, "stdin", Shown())
    arguments = [verb, *([made] if verb == "delete" else ["--older-than=-5"])]
    with pytest.raises(CommandError, match="say --yes"):
        dead(*arguments)
    assert counts() == (1, 1, 1)
    dead(*arguments, "--yes")
    assert DeadLetter.objects.count() == 0


@pytest.mark.parametrize(
    "arguments",
    [["purge"], *(["purge", "--older-than", age] for age in ("nan", "soon", "forever", "--5")),
     ["delete"], ["list", "--limit", "-1"], ["list", "--limit", "x"], ["list", "--limit", "9" * 20],
     ["purge", "--older-than", "9" * 400], ["show"], ["bury"], []],
    ids=str,
)  # fmt: skip
def test_a_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        dead(*arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--database", "nowhere"], "nowhere"), (["--namespace", " "], "--name")],
)
def test_where_to_look_must_exist(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        dead("list", *arguments)


def test_ctrl_c_leaves_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(dead_letters, "newest", interrupt)
    with pytest.raises(CommandError, match="interrupted") as error:
        dead("list")
    assert error.value.returncode == 130


# --- the terminal ---------------------------------------------------------------------------------


def test_progress_is_told_on_a_terminal_alone() -> None:
    for is_terminal in (True, False):
        shown = Shown(is_terminal)
        for _ in range(3):
            DeadLetterFactory()
        assert dead("retry", "--all", errors=shown) == "3 dead letters retried\n"
        assert shown.getvalue().strip() == ("3 of 3" if is_terminal else "")


def test_a_progress_line_is_written_over() -> None:
    from django.core.management.base import OutputWrapper

    shown = Shown(is_terminal=True)
    line = ProgressLine(OutputWrapper(shown), 1_500)
    line.add(1_000)
    line.add(1_000)  # more came than were counted
    line.end()
    assert shown.getvalue() == "\r1,000 of 1,500\r2,000 of 2,000\n"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["list", "--json"], 0, '"task_name"'),
        (["purge", "--older-than", "0"], 1, "say --yes"),
        (["retry", UNKNOWN], 1, "there is no dead letter"),
        (["retry"], 2, "--all"),
        (["list", "--limit", "x"], 2, "no whole number"),
    ],
    ids=str,
)
def test_as_a_process(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    DeadLetterFactory()
    log = tmp_path / "log"
    with WorkerProcess(*arguments, command="flexiq_dead", log_path=log) as process:
        assert process.wait() == code
        assert words in process.log
        assert "Traceback" not in process.log
    assert DeadLetter.objects.count() == 1
