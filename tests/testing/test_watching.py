"""`immediate`, `captured_jobs`, `assert_enqueued` and the fixtures for pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.testing import assert_enqueued, captured_jobs, immediate, run_pending
from tests.backend.conftest import HAS_FRAMEWORK
from tests.processes import ROOT
from tests.testapp.models import Mark
from tests.testing.tasks import chain, crash, kind_of, lab, note, succeed_at

pytestmark = pytest.mark.django_db


def test_immediate_runs_a_job_before_the_call_returns() -> None:
    with immediate():
        job = note.delay("now")
        assert job.status == "complete"
        assert kind_of.delay([1, (2,)]).result(timeout=1) == ("list", [1, (2,)])
    assert note.delay("later").status == "pending"


def test_immediate_still_serialises() -> None:
    with immediate(), pytest.raises(ValueError, match=r"args\[0\]"):
        kind_of.delay(object())
    with immediate():
        given: list[int] = []
        copied = kind_of.delay(given).result(timeout=1)[1]
    assert copied == given
    assert copied is not given


def test_immediate_retries_without_waiting() -> None:
    with immediate():
        assert succeed_at.delay(4).result(timeout=1) == 4
        assert succeed_at.delay(5).status == "dead"
        assert crash.delay().status == "dead"


def test_immediate_goes_on_with_what_jobs_enqueue() -> None:
    with immediate(), captured_jobs() as jobs:
        chain.delay(3)
    assert [job.status for job in jobs] == ["complete"] * 4
    assert [mark.key for mark in Mark.objects.order_by("pk")] == [
        "depth 3", "depth 2", "depth 1", "depth 0",
    ]  # fmt: skip


def test_immediate_leaves_what_is_due_later_or_waits_for_another() -> None:
    with immediate():
        delayed = note.apply_async(["delayed"], delay=60)
        child = note.apply_async(["child"], depends_on=delayed)
        assert [delayed.status, child.status] == ["pending", "pending"]
        assert run_pending(queue=lab, until=60) == [delayed, child]


@immediate()
def test_immediate_decorates() -> None:
    assert note.delay("a").status == "complete"


def test_captured_jobs_are_those_of_the_block() -> None:
    note.delay("before")
    with captured_jobs() as jobs:
        one, two, three = note.delay("one"), *lab.enqueue_many(note, [["two"], ["three"]])
        with captured_jobs() as inner:
            four = note.delay("four")
    note.delay("after")
    assert jobs == [one, two, three, four]
    assert inner == [four]


def test_enqueued_jobs_are_found_by_what_matters() -> None:
    job = note.apply_async(["a"], {"value": "b"}, queue="mail")
    other = note.delay("c")

    assert assert_enqueued(note) == [job, other]
    assert assert_enqueued(note, args=["a"], kwargs={"value": "b"}, queue="mail", count=1) == [job]
    assert assert_enqueued(note, args=("c",), kwargs={}) == [other]
    assert_enqueued(note, args=["d"], count=0)
    assert_enqueued(crash, count=0)
    run_pending(queue=lab)
    assert assert_enqueued(note, count=2) == [job, other]


def test_a_failed_assertion_says_what_there_is() -> None:
    note.apply_async(["a"], queue="mail")
    with pytest.raises(AssertionError) as raised:
        assert_enqueued(note, args=["b"])
    assert str(raised.value).splitlines() == [
        "0 jobs of tests.testing.tasks.note args=['b']; expected 1 or more",
        "  mail: args=['a'] kwargs={} (pending)",
    ]
    with pytest.raises(AssertionError, match=r"1 jobs of .*; expected 2"):
        assert_enqueued(note, count=2)
    with pytest.raises(AssertionError, match="there is no job of this task"):
        assert_enqueued(crash)


@pytest.mark.skipif(not HAS_FRAMEWORK, reason="Django has no task framework here")
def test_all_of_it_works_for_the_tasks_of_the_framework() -> None:
    from tests.backend import tasks as framework_tasks

    with captured_jobs() as jobs:
        pending = framework_tasks.echo.enqueue({"a": 1})
    assert [job.id for job in jobs] == [pending.id]
    assert assert_enqueued(framework_tasks.echo, args=[{"a": 1}], count=1) == jobs
    assert run_pending() == jobs
    pending.refresh()
    assert pending.return_value == {"a": 1}

    with immediate():
        result = framework_tasks.tell_attempt.enqueue()
    assert result.return_value == 1
    with immediate():
        failed = framework_tasks.refuse.enqueue()
    assert failed.errors[0].exception_class is ValueError


def test_a_wrong_call_leaves_immediate_mode_usable() -> None:
    with immediate():
        with pytest.raises(InvalidOptionError):
            note.apply_async(["a"], delay=-1)
        assert note.delay("a").status == "complete"


PROJECT_TEST = """
from flexiq_django import queue


@queue.task(max_retries=0)
def double(number):
    return number * 2


def test_jobs_are_captured(flexiq_jobs, flexiq_run_pending):
    job = double.delay(2)
    assert flexiq_jobs == [job]
    assert flexiq_run_pending() == [job]
    assert job.result(timeout=1) == 4


def test_jobs_run_at_once(flexiq_immediate):
    assert double.delay(3).result(timeout=1) == 6


def test_nothing_is_left(db):
    assert queue.list_jobs() == []
"""


def test_the_fixtures_work_in_a_project(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(PROJECT_TEST)
    (tmp_path / "project_settings.py").write_text(
        'INSTALLED_APPS = ["flexiq_django"]\n'
        'DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}\n'
        "USE_TZ = True\n"
    )
    done = subprocess.run(
        # By its module, as the package need not be installed here; never twice.
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:flexiq", "-p",
         "flexiq_django.testing.pytest_plugin", "--ds", "project_settings", "test_project.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
