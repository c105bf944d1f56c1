"""Unique keys that stand for a task and its arguments."""

from typing import Any

import pytest

from flexiq_django import Queue, Task
from flexiq_django.exceptions import OptionTypeError
from flexiq_django.models import Job
from tests.api.conftest import row_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def once(queue: Queue) -> Task[..., None]:
    @queue.task(idempotent=True)
    def once(*_args: Any, **_kwargs: Any) -> None: ...

    return once


def test_the_same_call_is_the_same_job(once: Task[..., None]) -> None:
    job = once.delay({"b", "a"}, x=1, y=2)

    assert once.delay({"a", "b"}, y=2, x=1) == job
    assert once.queue.enqueue(once.name, ({"a", "b"},), {"x": 1, "y": 2}) == job
    assert once.delay({"a", "b"}, x=1, y=3) != job
    assert once.delay("1", x=1, y=2) != once.delay(1, x=1, y=2)


def test_many_at_once(once: Task[..., None]) -> None:
    first, second, third, fourth = once.queue.enqueue_many(
        once, [(1,), (2,), (1,), (1,)], unique_keys=[None, None, None, "own"]
    )

    assert first == third
    assert len({first, second, fourth}) == 3
    assert row_of(fourth).unique_key == "own"
    assert once.map([(1,), (2,)]) == [first, second]
    assert Job.objects.count() == 3


def test_the_key_is_free_when_the_job_has_ended(once: Task[..., None]) -> None:
    job = once.delay()
    once.queue.cancel_job(job.id)

    assert once.delay() != job


@pytest.mark.parametrize("value", [1, "yes", 0])
def test_it_is_yes_or_no(queue: Queue, value: Any) -> None:
    with pytest.raises(OptionTypeError, match=r"^idempotent "):
        queue.enqueue("app.work", idempotent=value)
    with pytest.raises(OptionTypeError, match=r"^idempotent "):
        queue.task(idempotent=value)(lambda: None)
    assert not Job.objects.exists()
