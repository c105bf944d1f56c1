"""JobResult: the job as last read, and how it ended."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from flexiq_django import JobResult, Queue
from flexiq_django.api.result import FIELDS
from flexiq_django.core.errors import describe_exception
from flexiq_django.core.payload import encode_result
from flexiq_django.core.records import JobRecord
from flexiq_django.exceptions import (
    InvalidOptionError,
    JobNotFoundError,
    MaxRetriesExceededError,
    SerializationError,
    TaskCancelledError,
    TaskFailedError,
)
from flexiq_django.models import Job
from flexiq_django.store import inspect
from flexiq_django.store.archive import archive_batch
from flexiq_django.store.ids import new_id
from tests.api.conftest import Ender
from tests.concurrency import OtherConnection
from tests.factories import NOW, ArchivedJobFactory, JobFactory, at, later

pytestmark = pytest.mark.django_db

NOW_MS = int(NOW.timestamp() * 1000)


def handle_of(queue: Queue, job: Any) -> JobResult:
    found = queue.get_job(str(job.id))
    assert found is not None
    return found


# --- what it says ---------------------------------------------------------------------------------


def test_every_key_of_the_dict_is_an_attribute(queue: Queue) -> None:
    job = JobFactory(
        running=True, priority=3, progress=40, retry_count=1, timeout_ms=5_000, unique_key="k",
        metadata="m", notes='{"a":1}', user_id="u", scheduled_at=later(1.5), error=None,
    )  # fmt: skip
    handle = handle_of(queue, job)

    document = handle.to_dict()

    assert tuple(document) == FIELDS
    assert document == {
        "id": str(job.id), "queue": "default", "task_name": "app.tasks.work", "status": "running",
        "priority": 3, "progress": 40, "retry_count": 1, "max_retries": 3, "created_at": NOW_MS,
        "scheduled_at": NOW_MS + 1_500, "started_at": NOW_MS, "completed_at": None, "error": None,
        "timeout_ms": 5_000, "unique_key": "k", "metadata": "m", "notes": '{"a":1}',
        "namespace": "default", "enqueued_by": "u",
    }  # fmt: skip
    for name in set(FIELDS) - {"notes"}:
        assert getattr(handle, name) == document[name], name
    assert handle.notes == {"a": 1}


def test_every_stored_field_is_an_attribute(queue: Queue) -> None:
    handle = handle_of(queue, JobFactory())

    for name in JobRecord._fields:
        getattr(handle, name)
    with pytest.raises(AttributeError, match="JobResult has no attribute 'payload'"):
        handle.payload  # noqa: B018
    with pytest.raises(AttributeError):
        handle._nothing  # noqa: B018


def test_the_dict_has_the_error_in_one_line(queue: Queue) -> None:
    raw = describe_exception(ValueError("bad\nnews"), limit_bytes=9_999)
    handle = handle_of(queue, JobFactory(ended=True, status="dead", error=raw))

    assert handle.error == raw
    assert handle.to_dict()["error"] == "ValueError: bad news"


def test_a_handle_is_a_snapshot_until_it_is_refreshed(queue: Queue) -> None:
    job = JobFactory()
    handle = handle_of(queue, job)
    Job.objects.filter(id=job.id).update(progress=50)

    assert handle.progress is None
    handle.refresh()
    assert handle.progress == 50
    Job.objects.filter(id=job.id).update(progress=60)
    assert handle.to_dict()["progress"] == 60
    assert handle.progress == 60


def test_the_first_look_reads_the_job_once(queue: Queue, django_assert_num_queries: Any) -> None:
    handle = queue.enqueue("app.work")

    assert repr(handle) == f"<JobResult id={handle.id} status=not read yet>"
    with django_assert_num_queries(1):
        assert (handle.status, handle.task_name, handle.priority) == ("pending", "app.work", 0)
    assert repr(handle) == f"<JobResult id={handle.id} status=pending>"


def test_a_job_that_is_gone_keeps_what_was_read(queue: Queue) -> None:
    job = JobFactory(priority=4)
    handle = handle_of(queue, job)
    Job.objects.all().delete()

    handle.refresh()

    assert handle.priority == 4
    assert handle.to_dict()["priority"] == 4


def test_a_job_that_was_never_there_says_so(queue: Queue) -> None:
    handle = JobResult(queue, new_id())

    handle.refresh()
    for look in (lambda: handle.status, handle.to_dict, lambda: handle.result(timeout=1)):
        with pytest.raises(JobNotFoundError, match=f"there is no job {handle.id} in <Queue"):
            look()


def test_an_archived_job_is_followed(queue: Queue, end: Ender) -> None:
    handle = queue.enqueue("app.work")
    end(handle, result="5")
    archive_batch(at(1), older_than_ms=0)

    assert not Job.objects.exists()
    assert handle.to_dict()["status"] == "complete"
    assert handle.result(timeout=1) == 5


def test_handles_of_one_job_are_equal(queue: Queue) -> None:
    handle = queue.enqueue("app.work")
    other = queue.enqueue("app.work")

    again = queue.get_job(handle.id)
    assert again == handle
    assert handle != other
    assert handle != handle.id
    assert len({handle, again, other}) == 2


def test_bad_stored_notes_are_no_notes(queue: Queue) -> None:
    assert handle_of(queue, JobFactory(notes="no json")).notes is None


# --- how it ended ---------------------------------------------------------------------------------


@pytest.fixture(params=["result", "aresult"])
def wait(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Wait for a result, in both ways."""

    def act(handle: JobResult, **options: Any) -> Any:
        if request.param == "result":
            return handle.result(**options)
        return async_to_sync(handle.aresult)(**options)

    return act


@pytest.mark.parametrize("value", [None, 5, "ü", [1, {"a": None}], (1, 2), {3}, b"\xff", {1: 2}])
@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_result_comes_back(queue: Queue, wait: Any, factory: Any, value: Any) -> None:
    text = None if value is None else encode_result(value, limit_bytes=999)
    ended = {"ended": True} if factory is JobFactory else {}
    handle = handle_of(queue, factory(result=text, **ended))

    found = wait(handle)

    assert found == value
    assert type(found) is type(value)


def test_waiting_refreshes_the_handle(queue: Queue, wait: Any, end: Ender) -> None:
    handle = queue.enqueue("app.work")
    assert handle.status == "pending"
    end(handle)

    assert wait(handle) is None
    assert handle.status == "complete"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("dead", MaxRetriesExceededError),
        ("failed", TaskFailedError),
        ("cancelled", TaskCancelledError),
    ],
)
def test_a_bad_end_is_raised_with_its_cause(
    queue: Queue, wait: Any, status: str, error: type[Any]
) -> None:
    raw = describe_exception(KeyError("missing"), limit_bytes=9_999)
    handle = handle_of(queue, JobFactory(ended=True, status=status, error=raw))

    with pytest.raises(error, match=f"job {handle.id} is {status}: KeyError: 'missing'") as caught:
        wait(handle)

    failure = caught.value
    assert (failure.job_id, failure.errtype, failure.raw_error) == (handle.id, "KeyError", raw)
    assert failure.traceback[-1] == "KeyError: 'missing'"


def test_a_bad_end_without_an_error(queue: Queue, wait: Any) -> None:
    handle = handle_of(queue, JobFactory(ended=True, status="cancelled", error=None))

    with pytest.raises(TaskCancelledError, match="is cancelled: no error") as caught:
        wait(handle)

    assert (caught.value.raw_error, caught.value.traceback) == (None, [])


def test_a_system_error_is_a_plain_sentence(queue: Queue, wait: Any) -> None:
    job = JobFactory(ended=True, status="dead", error="job timed out after 5ms")

    with pytest.raises(MaxRetriesExceededError, match="job timed out after 5ms") as caught:
        wait(handle_of(queue, job))

    assert caught.value.raw_error == "job timed out after 5ms"


def test_a_result_that_cannot_be_read_says_so(queue: Queue, wait: Any) -> None:
    handle = handle_of(queue, JobFactory(ended=True, result="no json"))

    with pytest.raises(SerializationError):
        wait(handle)


@pytest.mark.parametrize("state", [{}, {"running": True}, {"waiting": True, "status": "paused"}])
def test_a_job_that_does_not_end_times_out(queue: Queue, wait: Any, state: Any) -> None:
    handle = handle_of(queue, JobFactory(**state))

    with pytest.raises(TimeoutError, match=rf"job {handle.id} did not end within 0\.02 s"):
        wait(handle, timeout=0.02, poll_interval=0.001)


@pytest.mark.parametrize("option", ["timeout", "poll_interval", "max_poll_interval"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), None, "1"])
def test_no_time_is_refused(queue: Queue, wait: Any, option: str, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=rf"^{option} is"):
        wait(handle_of(queue, JobFactory(ended=True)), **{option: value})


def test_waiting_may_take_for_ever(queue: Queue, wait: Any) -> None:
    assert wait(handle_of(queue, JobFactory(ended=True)), timeout=float("inf")) is None


@pytest.mark.parametrize("state", [{}, {"ended": True}], ids=["pending", "complete"])
def test_no_result_is_waited_for_of_a_job_that_is_gone(
    queue: Queue, wait: Any, state: dict[str, Any]
) -> None:
    handle = handle_of(queue, JobFactory(**state))
    Job.objects.all().delete()

    with pytest.raises(JobNotFoundError, match=handle.id):
        wait(handle, timeout=20)


def test_a_job_that_goes_while_its_result_is_read_returned_nothing(
    queue: Queue, wait: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = handle_of(queue, JobFactory(ended=True, result="5"))
    read = inspect.get_result

    def purge_and_read(*args: Any) -> Any:
        Job.objects.all().delete()
        return read(*args)

    monkeypatch.setattr(inspect, "get_result", purge_and_read)
    with pytest.raises(JobNotFoundError, match=handle.id):
        wait(handle)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_ends_meanwhile_is_noticed(
    queue: Queue, end: Ender, other_connection: OtherConnection
) -> None:
    handle = queue.enqueue("app.work")
    ended = other_connection.submit(end, handle, result='"late"')

    assert handle.result(timeout=20, poll_interval=0.001, max_poll_interval=0.01) == "late"
    ended.result(10)


@pytest.mark.django_db(transaction=True)
def test_a_coroutine_that_waits_lets_others_run(
    queue: Queue, end: Ender, other_connection: OtherConnection
) -> None:
    handle = queue.enqueue("app.work")

    async def wait_and_end() -> Any:
        waiting = asyncio.create_task(handle.aresult(timeout=20, poll_interval=0.001))
        await asyncio.sleep(0)
        await asyncio.wrap_future(other_connection.submit(end, handle, result='"late"'))
        return await waiting

    assert async_to_sync(wait_and_end)() == "late"
