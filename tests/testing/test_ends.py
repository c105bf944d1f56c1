"""What follows a failure: automatic retries of dead letters, and errors that end the test too."""

from typing import Any

import pytest

from flexiq_django.testing import immediate, run_pending, travel
from tests.testing.tasks import crash, lab, note, stop_it, stop_it_in_a_coroutine

pytestmark = pytest.mark.django_db


def test_dead_letters_are_retried_by_themselves(settings: Any) -> None:
    settings.FLEXIQ = {"DLQ_AUTO_RETRY_DELAY": 600, "DLQ_AUTO_RETRY_MAX": 2}
    first = crash.delay()
    between = note.apply_async(["between"], delay=900)

    assert run_pending(queue=lab) == [first]
    assert run_pending(queue=lab, until=590) == []
    ran = run_pending(queue=lab, until=86_400)

    assert [job.task_name for job in ran] == [crash.name, note.name, crash.name]
    assert ran[1] == between
    assert [letter["dlq_retry_count"] for letter in lab.dead_letters()] == [2]


def test_a_due_dead_letter_is_retried_where_the_clock_stands(settings: Any) -> None:
    settings.FLEXIQ = {"DLQ_AUTO_RETRY_DELAY": 600, "DLQ_AUTO_RETRY_MAX": 1}
    crash.delay()
    run_pending(queue=lab)
    with travel(599):
        assert run_pending(queue=lab) == []
        assert run_pending(queue=lab) == []
    with travel(700):
        assert [job.task_name for job in run_pending(queue=lab)] == [crash.name]
        assert run_pending(queue=lab) == []


@pytest.mark.parametrize("task", [stop_it, stop_it_in_a_coroutine], ids=["def", "async def"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, pytest.fail.Exception])
def test_what_is_no_exception_ends_the_test_too(task: Any, kind: type[BaseException]) -> None:
    job, behind = task.delay(kind.__name__), note.delay("behind")

    with pytest.raises(kind, match="enough"):
        run_pending(queue=lab)

    job.refresh()
    assert (job.status, behind.status) == ("dead", "pending")
    assert "enough" in job.error
    assert run_pending(queue=lab) == [behind]


def test_it_ends_the_call_in_immediate_mode() -> None:
    with immediate():
        with pytest.raises(KeyboardInterrupt):
            stop_it.delay("KeyboardInterrupt")
        assert note.delay("behind").status == "complete"
    assert [job.status for job in lab.list_jobs(task_name=stop_it.name)] == ["dead"]
