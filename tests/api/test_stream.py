"""JobResult.stream and astream: what a job publishes, each value once, until it has ended."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync

from flexiq_django import JobResult, Queue
from flexiq_django.api import stream as following
from flexiq_django.exceptions import InvalidOptionError, JobNotFoundError
from flexiq_django.models import Job, TaskLog
from flexiq_django.store import journal, settle
from flexiq_django.store.ids import new_id
from tests.concurrency import OtherConnection
from tests.factories import ArchivedJobFactory, JobFactory, TaskLogFactory, at, later
from tests.store.acting import claim_one, settlement

pytestmark = pytest.mark.django_db

Collect = Callable[..., list[Any]]


@pytest.fixture(params=["stream", "astream"])
def collect(request: pytest.FixtureRequest) -> Collect:
    """All values of a job, in both ways."""

    async def collect_async(handle: JobResult, options: dict[str, Any]) -> list[Any]:
        return [value async for value in handle.astream(**options)]

    def act(handle: JobResult, **options: Any) -> list[Any]:
        options = {"poll_interval": 0.001, **options}
        if request.param == "stream":
            return list(handle.stream(**options))
        return async_to_sync(collect_async)(handle, options)

    return act


def handle_of(queue: Queue, job: Any) -> JobResult:
    found = queue.get_job(str(job.id))
    assert found is not None
    return found


def publish(job_id: UUID, value: Any, **fields: Any) -> None:
    TaskLogFactory(
        **{"job_id": job_id, "level": "result", "message": "", "extra": json.dumps(value), **fields}
    )


def test_values_of_an_ended_job_come_in_order(queue: Queue, collect: Collect) -> None:
    job = JobFactory(ended=True)
    for number, value in enumerate([1, "two", None, {"three": [3]}]):
        publish(job.id, value, logged_at=later(number))
    TaskLogFactory(job_id=job.id, level="info", extra='"a log line"')
    publish(new_id(), "of another job")
    publish(job.id, "of another namespace", namespace="other")

    assert collect(handle_of(queue, job)) == [1, "two", None, {"three": [3]}]


def test_an_archived_job_without_values(queue: Queue, collect: Collect) -> None:
    assert collect(handle_of(queue, ArchivedJobFactory())) == []


@pytest.mark.parametrize("page", [1, 2, 3, 500])
def test_values_of_one_moment_all_come(
    queue: Queue, collect: Collect, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(following, "PAGE", page)
    job = JobFactory(ended=True)
    for number in range(5):
        publish(job.id, number)

    assert collect(handle_of(queue, job)) == [0, 1, 2, 3, 4]


def test_what_is_no_json_keeps_nothing_back(
    queue: Queue, collect: Collect, caplog: pytest.LogCaptureFixture
) -> None:
    job = JobFactory(ended=True)
    publish(job.id, 1)
    publish(job.id, None, extra="no json")
    publish(job.id, None, extra=None)
    publish(job.id, 2)

    assert collect(handle_of(queue, job)) == [1, 2]
    assert caplog.text.count(f"of job {job.id} is no JSON") == 2


@pytest.mark.parametrize("state", [{}, {"running": True}, {"waiting": True, "status": "paused"}])
def test_a_job_that_does_not_end_times_out_after_its_values(
    queue: Queue, collect: Collect, state: dict[str, Any]
) -> None:
    job = JobFactory(**state)
    publish(job.id, 1)
    handle = handle_of(queue, job)

    with pytest.raises(TimeoutError, match=rf"job {job.id} did not end within 0\.02 s"):
        collect(handle, timeout=0.02)
    assert next(handle.stream()) == 1


def test_reading_many_values_takes_no_longer_than_it_may(
    queue: Queue, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAGE", 1)  # each page is full, and followed by the next at once
    job = JobFactory(running=True)
    handle = handle_of(queue, job)
    look = following.Follower.look

    def publish_and_look(self: following.Follower) -> Any:
        publish(job.id, 1, logged_at=later(TaskLog.objects.count()))
        return look(self)

    monkeypatch.setattr(following.Follower, "look", publish_and_look)
    with pytest.raises(TimeoutError, match=f"job {job.id} did not end"):
        collect(handle, timeout=0.05)


@pytest.mark.parametrize("option", ["timeout", "poll_interval"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_no_time_is_refused_at_the_call(queue: Queue, option: str, value: float) -> None:
    handle = handle_of(queue, JobFactory(ended=True))

    for method in (handle.stream, handle.astream):
        with pytest.raises(InvalidOptionError, match=f"^{option} is"):
            method(**{option: value})


def test_a_job_that_is_gone_says_so(queue: Queue, collect: Collect) -> None:
    job = JobFactory()
    handle = handle_of(queue, job)
    Job.objects.all().delete()

    with pytest.raises(JobNotFoundError, match=f"there is no job {job.id}"):
        collect(handle)


def test_following_refreshes_the_handle(queue: Queue, collect: Collect) -> None:
    handle = handle_of(queue, JobFactory())
    Job.objects.update(status="dead", ready_lane=None, completed_at=later(0))

    assert collect(handle) == []
    assert handle.status == "dead"


# --- step by step ---------------------------------------------------------------------------------


@pytest.fixture
def followed(queue: Queue) -> tuple[UUID, following.Follower]:
    """A running job and somebody who follows it."""
    job = JobFactory(running=True)
    handle = handle_of(queue, job)
    return job.id, following.Follower(at(), job.id, handle._read_status, 0.5)


def test_each_look_brings_what_is_new(followed: Any) -> None:
    job_id, follower = followed

    assert follower.look() == ([], 0.5)
    publish(job_id, 1, logged_at=later(0))
    assert follower.look() == ([1], 0.5)
    publish(job_id, 2, logged_at=later(0))
    publish(job_id, 3, logged_at=later(5))
    assert follower.look() == ([2, 3], 0.5)
    assert follower.look() == ([], 0.5)


def test_a_value_that_became_visible_late_still_comes(followed: Any) -> None:
    job_id, follower = followed
    publish(job_id, "second", logged_at=later(1))
    assert follower.look() == (["second"], 0.5)

    publish(job_id, "first", logged_at=later(0.2))

    assert follower.look() == (["first"], 0.5)


def test_the_clock_of_the_machine_that_made_the_ids_does_not_matter(followed: Any) -> None:
    job_id, follower = followed
    early, late = new_id(), new_id()
    publish(job_id, "by the clock that is ahead", id=late, logged_at=later(0))
    assert follower.look()[0] == ["by the clock that is ahead"]

    publish(job_id, "by the next worker", id=early, logged_at=later(9))

    assert follower.look()[0] == ["by the next worker"]


def test_a_full_page_is_followed_by_the_next_at_once(
    followed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAGE", 2)
    job_id, follower = followed
    for number in range(5):
        publish(job_id, number)

    assert [follower.look() for _ in range(4)] == [
        ([0, 1], 0.0), ([2, 3], 0.0), ([4], 0.5), ([], 0.0),
    ]  # fmt: skip


def test_only_the_last_second_is_remembered_while_a_long_past_is_read(
    followed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAGE", 2)
    job_id, follower = followed
    for number in range(20):
        publish(job_id, number, logged_at=later(number))
    seen = []
    remembered = []
    for _ in range(10):
        seen += follower.look()[0]
        remembered.append(len(follower._seen))

    assert seen == list(range(20))
    assert max(remembered) <= 2


def test_only_the_last_second_is_remembered(followed: Any) -> None:
    job_id, follower = followed
    for number in range(10):
        publish(job_id, number, logged_at=later(number))
        assert follower.look()[0] == [number]

    assert len(follower._seen) <= 2


def test_the_end_is_looked_at_twice_if_it_was_waited_for(followed: Any) -> None:
    job_id, follower = followed
    assert follower.look() == ([], 0.5)
    Job.objects.update(
        status="complete", lease_at=None, completed_at=later(0)
    )  # as a transactional task does, before its notes are written
    assert follower.look() == ([], following.LAST_LOOK)
    publish(job_id, "late")

    assert follower.look() == (["late"], None)


# --- with a worker's verbs ------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_job_is_followed_to_its_end(
    queue: Queue, collect: Collect, other_connection: OtherConnection
) -> None:
    handle = queue.enqueue("app.work")

    def work() -> None:
        job = claim_one()
        for number in range(20):
            assert journal.append_log(
                at(number / 1_000), job.id, job.token, task_name=job.task_name, level="result",
                message="", extra=json.dumps(number),
            )  # fmt: skip
        assert settle.settle(at(), [settlement(job)]).settled

    done = other_connection.submit(work)

    assert collect(handle, timeout=30) == list(range(20))
    assert handle.status == "complete"
    done.result(10)
    assert TaskLog.objects.count() == 20


def test_a_stream_can_be_left_early(queue: Queue) -> None:
    job = JobFactory(running=True)
    publish(job.id, 1)
    values: Iterator[Any] = handle_of(queue, job).stream()

    assert next(values) == 1
    values.close()  # type: ignore[attr-defined]
    assert list(values) == []
