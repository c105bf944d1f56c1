"""The listings of Queue: pages, cursors, filters, refusals."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from flexiq_django import JobStatus, Page, Queue
from flexiq_django.exceptions import InvalidCursorError, InvalidOptionError, UnknownStatusError
from flexiq_django.models import Job
from tests.api.conftest import open_first
from tests.factories import NOW, ArchivedJobFactory, DeadLetterFactory, JobFactory, later

pytestmark = pytest.mark.django_db

NOW_MS = int(NOW.timestamp() * 1000)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
BY_CURSOR = [
    "list_jobs_after", "list_jobs_filtered_after", "list_archived_after", "dead_letters_after",
]  # fmt: skip
BY_OFFSET = ["list_jobs", "list_jobs_filtered", "list_archived", "dead_letters"]
OF_JOBS = ["list_jobs", "list_jobs_filtered", "list_jobs_after", "list_jobs_filtered_after"]
FILTERED = ["list_jobs_filtered", "list_jobs_filtered_after"]


def ids(found: Any) -> list[str]:
    return [each["id"] if isinstance(each, dict) else each.id for each in found]


def store(method: str, count: int) -> list[str]:
    """Rows of a listing in its order; three share each moment."""
    make: Callable[[int], Any] = {
        "list_jobs": lambda _number: JobFactory(),
        "list_archived": lambda number: ArchivedJobFactory(completed_at=later(number // 3)),
        "dead_letters": lambda number: DeadLetterFactory(failed_at=later(number // 3)),
    }[method.removesuffix("_after").removesuffix("_filtered")]
    return [str(make(number).id) for number in range(count)][::-1]


# --- statuses and filters -------------------------------------------------------------------------


@pytest.mark.parametrize("method", OF_JOBS)
@pytest.mark.parametrize("status", JobStatus)
def test_a_listing_of_one_status(queue: Queue, method: str, status: JobStatus) -> None:
    for state in ({}, {"running": True}, {"waiting": True, "status": "paused"}):
        JobFactory(**state)
    for word in ("complete", "failed", "dead", "cancelled"):
        JobFactory(ended=True, status=word)
    ask = getattr(queue, method)

    assert [job.status for job in ask(status)] == [status.value]
    assert [job.status for job in ask(status.value)] == [status.value]


@pytest.mark.parametrize("method", OF_JOBS)
def test_completed_is_another_word_for_complete(queue: Queue, method: str) -> None:
    job = JobFactory(ended=True)
    JobFactory()

    assert ids(getattr(queue, method)(status="completed")) == [str(job.id)]


@pytest.mark.parametrize("method", OF_JOBS)
@pytest.mark.parametrize("status", ["canceled", "PENDING", "", "queued", 5])
def test_an_unknown_status_is_told_the_known_ones(queue: Queue, method: str, status: Any) -> None:
    with pytest.raises(UnknownStatusError, match=r"^status is .*; allowed are pending, running"):
        getattr(queue, method)(status)


@pytest.mark.parametrize("method", OF_JOBS)
def test_filters_combine(queue: Queue, method: str) -> None:
    job = JobFactory(queue="mail", task_name="app.send")
    JobFactory(queue="mail")
    JobFactory(task_name="app.send")
    ask = getattr(queue, method)

    assert ids(ask(queue="mail", task_name="app.send", status="pending")) == [str(job.id)]
    assert ids(ask(queue="Mail")) == ids(ask(task_name="unknown")) == ids(ask(queue="")) == []


@pytest.mark.parametrize("method", OF_JOBS)
def test_namespaces(queue: Queue, method: str) -> None:
    own, other = str(JobFactory().id), str(JobFactory(namespace="other", priority=3).id)
    ask = getattr(queue, method)

    assert ids(ask()) == ids(ask(namespace="default")) == [own]
    assert ids(ask(namespace="other")) == [other]
    assert ids(ask(namespace="unknown")) == []
    assert ids(ask(namespace=None)) == [other, own]
    foreign = next(iter(ask(namespace=None)))
    assert foreign.to_dict()["namespace"] == "other"


@pytest.mark.parametrize("method", OF_JOBS)
@pytest.mark.parametrize("option", ["queue", "task_name", "namespace"])
@pytest.mark.parametrize("value", ["a\x00b", 5, "\ud800"])
def test_a_filter_that_is_no_text_is_refused(
    queue: Queue, method: str, option: str, value: Any
) -> None:
    with pytest.raises(InvalidOptionError, match=f"^{option} (is|holds)"):
        getattr(queue, method)(**{option: value})


@pytest.mark.parametrize("method", FILTERED)
def test_parts_of_metadata_and_error(queue: Queue, method: str) -> None:
    job = JobFactory(metadata='{"order": 10_0}', error="ValueError: 5% off")
    JobFactory(metadata='{"order": 1000}', error="ValueError: 50 off")
    JobFactory()
    ask = getattr(queue, method)

    assert ids(ask(metadata_like="10_0")) == ids(ask(error_like="5% off")) == [str(job.id)]
    assert ids(ask(metadata_like="ORDER")) == ids(ask(error_like="valueerror")) == []
    assert len(ids(ask(metadata_like="order", error_like="ValueError"))) == 2


@pytest.mark.parametrize("method", FILTERED)
@pytest.mark.parametrize("option", ["metadata_like", "error_like"])
@pytest.mark.parametrize("value", [5, "a\x00b", "x" * 1_001])
def test_a_part_that_cannot_be_there_is_refused(
    queue: Queue, method: str, option: str, value: Any
) -> None:
    with pytest.raises(InvalidOptionError, match=f"^{option} (is|holds|has)"):
        getattr(queue, method)(**{option: value})


@pytest.mark.parametrize("method", FILTERED)
def test_moments_are_milliseconds_or_datetimes(queue: Queue, method: str) -> None:
    # Reported as the millisecond it falls into.
    job = JobFactory(created_at=NOW + timedelta(microseconds=1_600))
    reported = NOW_MS + 1
    ask = getattr(queue, method)

    def found(**filters: Any) -> bool:
        return bool(ids(ask(**filters)))

    assert queue.list_jobs()[0].created_at == reported
    assert found(created_after=reported, created_before=reported)
    assert found(created_after=float(reported), created_before=float(reported))
    assert not found(created_after=reported + 1)
    assert not found(created_before=reported - 1)
    assert found(created_after=reported + 0.6)
    assert not found(created_after=reported + 0.7)
    assert not found(created_before=reported + 0.5)
    assert found(created_after=job.created_at, created_before=job.created_at)
    assert not found(created_after=job.created_at + timedelta(microseconds=1))
    assert found(created_after=0, created_before=1e18)
    assert found(created_after=float("-inf"), created_before=float("inf"))
    assert not found(created_after=float("inf"))


@pytest.mark.parametrize("method", FILTERED)
@pytest.mark.parametrize("option", ["created_after", "created_before"])
@pytest.mark.parametrize("value", ["2026-01-01", True, float("nan"), NAIVE, NOW.date()])
def test_what_is_no_moment_is_refused(
    queue: Queue, settings: Any, method: str, option: str, value: Any
) -> None:
    settings.USE_TZ = True
    with pytest.raises(InvalidOptionError, match=f"^{option} is"):
        getattr(queue, method)(**{option: value})


# --- pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", BY_OFFSET)
def test_pages_by_offset(queue: Queue, method: str) -> None:
    rows = store(method, 60)
    ask = getattr(queue, method)

    assert ids(ask()) == rows[: 10 if method == "dead_letters" else 50]
    assert ids(ask(limit=5, offset=50)) == rows[50:55]
    assert ask(limit=0) == ask(offset=99) == []


@pytest.mark.parametrize("method", [*BY_OFFSET, *BY_CURSOR])
@pytest.mark.parametrize("limit", [-1, 1.5, None, True, 2**31])
def test_a_bad_limit_is_refused(queue: Queue, method: str, limit: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^limit is"):
        getattr(queue, method)(limit=limit)


@pytest.mark.parametrize("method", BY_OFFSET)
@pytest.mark.parametrize("offset", [-1, 1.5, None])
def test_a_bad_offset_is_refused(queue: Queue, method: str, offset: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^offset is"):
        getattr(queue, method)(offset=offset)


@pytest.mark.parametrize("method", BY_CURSOR)
@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_a_walk_meets_every_row_once(queue: Queue, method: str, size: int) -> None:
    rows = store(method, 10)
    ask = getattr(queue, method)
    seen: list[str] = []
    after = None
    while True:
        page = ask(limit=size, after=after)
        seen += ids(page)
        after = page.next_cursor
        if after is None:
            break
        assert len(page) == size

    assert seen == rows


@pytest.mark.parametrize("method", BY_CURSOR)
def test_only_a_full_page_has_a_cursor(queue: Queue, method: str) -> None:
    rows = store(method, 4)
    ask = getattr(queue, method)

    assert ask(limit=0) == Page([], None)
    assert ask(limit=5).next_cursor is None
    exact = ask(limit=4)
    assert ids(exact) == rows
    assert ask(limit=4, after=exact.next_cursor) == Page([], None)


@pytest.mark.parametrize("method", BY_CURSOR)
def test_pages_have_the_size_of_their_list(queue: Queue, method: str) -> None:
    store(method, 60)

    assert len(getattr(queue, method)()) == (10 if method == "dead_letters_after" else 50)


@pytest.mark.parametrize("method", BY_CURSOR)
def test_rows_that_come_during_a_walk_do_not_move_it(queue: Queue, method: str) -> None:
    rows = store(method, 4)
    ask = getattr(queue, method)
    first = ask(limit=2)
    newer = {
        "list_archived_after": lambda: ArchivedJobFactory(completed_at=later(99)),
        "dead_letters_after": lambda: DeadLetterFactory(failed_at=later(99)),
    }
    newer.get(method, JobFactory)()

    assert ids(ask(limit=9, after=first.next_cursor)) == rows[2:]


def test_a_walk_survives_the_job_it_stands_on(queue: Queue) -> None:
    rows = store("list_jobs_after", 4)
    first = queue.list_jobs_after(limit=2)
    Job.objects.filter(id=rows[1]).delete()

    assert ids(queue.list_jobs_after(after=first.next_cursor)) == rows[2:]


def test_a_page_is_a_frozen_sequence_of_rows() -> None:
    page: Page[int] = Page([1, 2], "next")

    assert list(page) == [1, 2]
    assert len(page) == 2
    assert page == Page([1, 2], "next")
    with pytest.raises(AttributeError):
        page.items = []  # type: ignore[misc]


# --- cursors --------------------------------------------------------------------------------------

GARBAGE = ["garbage", "", ":", "1:", "-1:x", "abc:def", "1:x", 5, b"x", "\ud800", "a" * 10_000]


@pytest.mark.parametrize("method", BY_CURSOR)
@pytest.mark.parametrize("after", GARBAGE, ids=range(len(GARBAGE)))
def test_a_cursor_nobody_gave_is_refused(queue: Queue, method: str, after: Any) -> None:
    with pytest.raises(
        InvalidCursorError, match=r"^after is .*; allowed is the next_cursor"
    ) as one:
        getattr(queue, method)(after=after)

    assert isinstance(one.value, ValueError)
    assert len(str(one.value)) < 400


@pytest.mark.parametrize("method", BY_CURSOR)
def test_a_changed_cursor_is_refused(queue: Queue, method: str) -> None:
    store(method, 2)
    ask = getattr(queue, method)
    cursor = ask(limit=1).next_cursor
    body, _, signature = cursor.partition(":")

    for changed in (f"{body[:-1]}A:{signature}", f"{body}:{signature[:-2]}xx", body, cursor[1:]):
        with pytest.raises(InvalidCursorError):
            ask(after=changed)


def test_a_cursor_of_another_listing_is_refused(queue: Queue) -> None:
    for method in BY_CURSOR:
        store(method, 2)
    cursors = {method: getattr(queue, method)(limit=1).next_cursor for method in BY_CURSOR}

    for method in BY_CURSOR:
        for source, cursor in cursors.items():
            if source.startswith("list_jobs") and method.startswith("list_jobs"):
                assert getattr(queue, method)(after=cursor)  # one list, with and without filters
            elif source != method:
                with pytest.raises(InvalidCursorError):
                    getattr(queue, method)(after=cursor)


def test_a_cursor_outlives_a_new_key_only_while_the_old_one_is_known(
    queue: Queue, settings: Any
) -> None:
    rows = store("list_jobs_after", 2)
    cursor = queue.list_jobs_after(limit=1).next_cursor
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another"

    with pytest.raises(InvalidCursorError, match="SECRET_KEY"):
        queue.list_jobs_after(after=cursor)
    settings.SECRET_KEY_FALLBACKS = [old]
    assert ids(queue.list_jobs_after(after=cursor)) == rows[1:]


def test_a_cursor_does_not_show_times_in_the_zone_of_the_session(queue: Queue) -> None:
    moment = datetime(2026, 10, 25, 0, 30, 0, 123_457, tzinfo=UTC)
    keys = [ArchivedJobFactory(completed_at=moment).id for _ in range(2)]

    first = queue.list_archived_after(limit=1)

    assert ids(first) == [str(keys[1])]
    assert ids(queue.list_archived_after(after=first.next_cursor)) == [str(keys[0])]


# --- shape ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", BY_CURSOR)
def test_a_page_is_one_statement_without_a_count(
    queue: Queue, method: str, django_assert_num_queries: Any
) -> None:
    store(method, 3)
    open_first(queue)

    with django_assert_num_queries(1) as asked:
        for each in getattr(queue, method)(limit=2):
            assert each["task_name"] if isinstance(each, dict) else each.status

    sql = asked.captured_queries[0]["sql"]
    assert "COUNT(" not in sql.upper()
    assert connection.ops.quote_name("payload") not in sql
    assert connection.ops.quote_name("result") not in sql


def test_dead_letters_are_plain_values(queue: Queue) -> None:
    row = DeadLetterFactory(metadata="m", dlq_retry_count=2)
    expected = [
        {
            "id": str(row.id), "original_job_id": str(row.original_job_id), "queue": "default",
            "task_name": "app.tasks.work", "error": "ValueError: bad", "retry_count": 3,
            "failed_at": NOW_MS, "metadata": "m", "dlq_retry_count": 2,
        }
    ]  # fmt: skip

    assert queue.dead_letters() == expected
    assert list(queue.dead_letters_after()) == expected


@pytest.mark.parametrize("method", [*BY_OFFSET, *BY_CURSOR])
def test_twins_answer_alike(queue: Queue, method: str) -> None:
    store(method, 3)

    assert async_to_sync(getattr(queue, f"a{method}"))(limit=2) == getattr(queue, method)(limit=2)
