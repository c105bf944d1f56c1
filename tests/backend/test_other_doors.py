"""Jobs of Django's tasks that did not come from the backend, and errors of earlier attempts."""

import sys
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from flexiq_django import db, queue
from flexiq_django.api.context import set_current
from flexiq_django.backend import telling
from flexiq_django.backend.framework import (
    TaskResultStatus,
    task_backends,
    task_finished,
    task_started,
)
from flexiq_django.testing import run_pending
from tests.backend import tasks
from tests.store.acting import claim_one
from tests.worker.running import make_attempt

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

ECHO = "tests.backend.tasks.echo"


@pytest.fixture
def told() -> Iterator[list[tuple[str, str, Any]]]:
    """What receivers hear: the step, the id of the result, the exception being handled."""
    heard: list[tuple[str, str, Any]] = []

    def on_started(task_result: Any, **_: Any) -> None:
        heard.append(("started", task_result.id, sys.exc_info()[0]))

    def on_finished(task_result: Any, **_: Any) -> None:
        heard.append(("finished", task_result.id, sys.exc_info()[0]))

    task_started.connect(on_started)
    task_finished.connect(on_finished)
    yield heard
    task_started.disconnect(on_started)
    task_finished.disconnect(on_finished)


def test_a_job_under_the_name_of_a_task_runs_it(
    work: Callable[[], None], told: list[tuple[str, str, Any]]
) -> None:
    notes = {"backend": ["none"], "run_after": "never"}  # no words of the backend's
    enqueued = queue.enqueue(ECHO, [1], max_retries=0, priority=1000, notes=notes)
    inserted = queue.get_job(db.insert_job(db.open_database(), {"a": 1}, task_name=ECHO))
    attempt = queue.enqueue("tests.backend.tasks.tell_attempt", kwargs={"factor": 3}, max_retries=0)
    refused = queue.enqueue("tests.backend.tasks.refuse_async", max_retries=0)
    assert inserted is not None
    work()

    jobs = [enqueued, inserted, attempt, refused]
    for job in jobs:
        job.refresh()
    assert [job.status for job in jobs] == ["complete", "complete", "complete", "dead"]
    assert [job.result() for job in jobs[:3]] == [1, {"a": 1}, 3]
    assert {(step, key) for step, key, _ in told} == {
        (step, job.id) for job in jobs for step in ("started", "finished")
    }
    assert [error for step, _, error in told if step == "finished" and error] == [LookupError]
    result = task_backends["default"].get_result(enqueued.id)
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 1)
    assert (result.task.name, result.backend) == ("echo", "default")


def test_an_error_of_an_earlier_attempt_is_not_that_of_the_next(
    told: list[tuple[str, str, Any]],
) -> None:
    result = tasks.answer.enqueue()
    telling._errors[result.id] = ValueError("of a body that ended after its time was up")
    run_pending()

    assert told == [("started", result.id, None), ("finished", result.id, None)]
    assert not telling._errors


def test_what_a_body_raises_when_its_time_is_up_is_not_kept() -> None:
    result = tasks.answer.enqueue()
    attempt = make_attempt(claim_one())
    assert attempt.job.id == UUID(result.id)
    set_current(attempt)
    try:
        attempt.note_over()
        with pytest.raises(ValueError, match="late"), telling.remembering(result.id):
            raise ValueError("late")
    finally:
        set_current(None)
    assert not telling._errors
