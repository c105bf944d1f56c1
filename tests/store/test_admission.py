"""Admission: an enqueue that would make too many pending jobs is refused, exactly."""

from collections import Counter
from typing import Any

import pytest
from django.db import transaction

from flexiq_django import Queue
from flexiq_django.exceptions import ConfigurationError, InvalidOptionError, QueueFull
from flexiq_django.models import Job
from flexiq_django.store.enqueue import insert_jobs
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import JobFactory, NewJobFactory, at

pytestmark = pytest.mark.django_db
commits = pytest.mark.django_db(transaction=True)


def add(depths: dict[str, int], count: int = 1, **fields: Any) -> bool:
    """Whether so many jobs were let in."""
    before = Job.objects.count()
    try:
        insert_jobs(at(), [NewJobFactory(**fields) for _ in range(count)], depths=depths)
    except QueueFull:
        assert Job.objects.count() == before
        return False
    return True


def test_every_pending_job_counts_and_no_other() -> None:
    for state in ({}, {"waiting": True}, {"scheduled": True}, {"ready_lane": "default\x1fblue"},
                  {"ready_lane": None, "session_id": "s", "session_line": "s"}):  # fmt: skip
        JobFactory(**state)
    for state in ({"running": True}, {"ended": True}, {"waiting": True, "status": "paused"},
                  {"namespace": "other"}):  # fmt: skip
        JobFactory(**state)
    JobFactory(queue="mail")

    assert not add({"default": 5})
    assert add({"default": 6})
    assert add({"default": 6}, queue="mail")
    assert not add({"*": 8})
    assert not add({"*": 9}, 2)
    assert add({"*": 9, "mail": 3}, queue="mail")


def test_the_error_says_the_numbers() -> None:
    JobFactory()
    JobFactory()

    with pytest.raises(QueueFull, match=r"queue 'default' has 2 pending jobs; .* over 2\.") as info:
        insert_jobs(at(), [NewJobFactory()], depths={"default": 2})

    assert (info.value.queue, info.value.depth, info.value.limit) == ("default", 2, 2)


def test_a_key_that_is_held_is_not_refused() -> None:
    insert_jobs(at(), [NewJobFactory(unique_key="k")])

    assert add({"*": 1}, unique_key="k")
    assert add({"*": 2}, 3, unique_key="new")
    assert not add({"*": 2}, unique_key="another")
    assert Job.objects.count() == 2


def test_settings_and_queues_say_it(settings: Any) -> None:
    settings.FLEXIQ = {**settings.FLEXIQ, "MAX_QUEUE_DEPTH": {"mail": 1}}
    queue = Queue("default")
    queue.enqueue("app.work", queue="mail")
    queue.enqueue("app.work")
    with pytest.raises(QueueFull):
        queue.enqueue("app.work", queue="mail")
    Queue("default", max_queue_depth=3).enqueue("app.work", queue="mail")
    with pytest.raises(QueueFull):
        Queue("default", max_queue_depth=3).enqueue_many("app.work", [(), ()])


@pytest.mark.parametrize("value", [0, -1, True, "5", {"mail": 0}, {"": 5}, {5: 5}, [5]], ids=str)
def test_other_limits_are_refused(settings: Any, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="max_queue_depth"):
        Queue("default", max_queue_depth=value)
    settings.FLEXIQ = {**settings.FLEXIQ, "MAX_QUEUE_DEPTH": value}
    with pytest.raises(ConfigurationError, match="MAX_QUEUE_DEPTH"):
        Queue("default").enqueue("app.work")


@commits
def test_many_who_enqueue_at_once_never_pass_the_limit() -> None:
    def fill() -> Counter[bool]:
        seen: Counter[bool] = Counter()
        for _ in range(8):
            try:
                insert_jobs(at(), [NewJobFactory()], depths={"default": 10, "*": 15})
            except QueueFull:
                seen[False] += 1
            else:
                seen[True] += 1
        return seen

    seen = sum(run_in_threads([fill] * 4), Counter[bool]())

    assert seen == {True: 10, False: 22}
    assert Job.objects.count() == 10


@commits
@pytest.mark.row_locks
def test_nobody_waits_for_the_transaction_of_a_caller(other_connection: OtherConnection) -> None:
    with transaction.atomic():
        assert add({"*": 1})
        assert not add({"*": 1})
        assert other_connection.run(add, {"*": 1})  # ours are not committed: they do not count
    assert Job.objects.count() == 2
