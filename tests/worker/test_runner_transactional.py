"""Runner: a transactional body and its completion commit together, or neither does."""

import time
from typing import Any

import pytest
from django.db import transaction

from flexiq_django import Queue
from flexiq_django.core.outcome import Ending
from flexiq_django.core.records import ClaimedJob
from tests.factories import at
from tests.store.acting import claim_one, enqueue_one, stored
from tests.testapp.models import Mark
from tests.worker.running import make_attempt, make_runner

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def queue() -> Queue:
    return Queue("default")


def claimed(**fields: Any) -> ClaimedJob:
    enqueue_one(task_name="app.work", **fields)
    return claim_one()


def test_a_transactional_body_settles_its_job_itself(queue: Queue) -> None:
    @queue.task(name="app.work", transactional=True)
    def body() -> int:
        Mark.objects.create(key="body")
        return 5

    attempt = make_attempt(job := claimed())
    outcome = make_runner(queue).run(attempt)

    assert outcome is not None
    assert outcome.ending is Ending.COMPLETED
    assert attempt.is_settled
    row = stored(job.id)
    assert (row.status, row.result) == ("complete", "5")
    assert Mark.objects.count() == 1


@pytest.mark.parametrize("failure", ["error", "result", "late", "lost"])
def test_a_transactional_body_that_does_not_complete_leaves_nothing(
    queue: Queue, failure: str
) -> None:
    @queue.task(name="app.work", transactional=True)
    def body() -> Any:
        Mark.objects.create(key="body")
        if failure == "error":
            raise ValueError("bad")
        if failure == "late":
            deadline = time.monotonic() + 0.005
            while time.monotonic() < deadline:
                pass
        return object() if failure == "result" else 5

    job = claimed(timeout_ms=1 if failure == "late" else None)
    attempt = make_attempt(job._replace(token=1) if failure == "lost" else job)
    outcome = make_runner(queue, at()).run(attempt)

    assert Mark.objects.count() == 0
    assert stored(job.id).status == "running"
    assert not attempt.is_settled
    if failure == "lost":
        assert outcome is None
    else:
        assert outcome is not None
        assert (outcome.ending, outcome.retryable) == (Ending.FAILED, failure != "result")


def test_a_function_that_fails_after_the_commit_takes_nothing_back(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task(name="app.work", transactional=True)
    def body() -> int:
        Mark.objects.create(key="body")
        transaction.on_commit(lambda: [][0])
        return 5

    attempt = make_attempt(job := claimed())
    outcome = make_runner(queue, at()).run(attempt)

    assert outcome is not None
    assert outcome.ending is Ending.COMPLETED
    assert attempt.is_settled
    assert (stored(job.id).status, Mark.objects.count()) == ("complete", 1)
    assert "a function it left for after its commit failed" in caplog.text
    assert "IndexError" in caplog.text
