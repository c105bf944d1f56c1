"""Lists: order, filters, places to go on from."""

from datetime import timedelta
from typing import Any

import pytest

from flexiq_django.core.status import JobStatus
from flexiq_django.models import Job
from flexiq_django.store import listing
from flexiq_django.store.archive import archive_batch
from flexiq_django.store.listing import JobFilter, Place
from tests.factories import NOW, ArchivedJobFactory, DeadLetterFactory, JobFactory, at, later

pytestmark = pytest.mark.django_db


def listed(
    *, limit: int = 50, offset: int = 0, after: Any = None, everywhere: bool = False, **wanted: Any
) -> list[object]:
    found = listing.list_jobs(
        at(), JobFilter(**wanted), limit=limit, offset=offset, after=after, everywhere=everywhere
    )
    return [record.id for record in found]


def test_a_listing_is_newest_first_without_the_archive() -> None:
    jobs = [JobFactory(created_at=NOW).id for _ in range(3)]
    ArchivedJobFactory()

    assert listed() == jobs[::-1]
    assert listed(limit=2) == jobs[:0:-1]
    assert listed(limit=2, offset=2) == jobs[:1]
    assert listed(limit=0) == listed(offset=9) == []


def test_a_listing_goes_on_after_a_job_that_need_not_be_there() -> None:
    jobs = [JobFactory().id for _ in range(4)]
    Job.objects.filter(id=jobs[2]).delete()

    assert listed(after=jobs[2]) == [jobs[1], jobs[0]]
    assert listed(after=jobs[2], limit=1) == [jobs[1]]
    assert listed(after=jobs[0]) == []


def test_filters_combine() -> None:
    wanted = JobFactory(running=True, queue="a", task_name="t").id
    JobFactory(queue="a", task_name="t")
    JobFactory(running=True, queue="b", task_name="t")
    JobFactory(running=True, queue="a", task_name="u")
    foreign = JobFactory(running=True, queue="a", task_name="t", namespace="other").id
    filters = {"status": JobStatus.RUNNING, "queue": "a", "task_name": "t"}

    assert listed(**filters) == [wanted]
    assert listed(**filters, everywhere=True) == [foreign, wanted]
    assert listed(queue="unknown") == []
    assert listed(queue="") == []


@pytest.mark.parametrize("column", ["metadata", "error"])
@pytest.mark.parametrize(
    ("part", "matches"),
    [
        ("needle", ["a needle in hay", "needle"]),
        ("Needle", ["a Needle in hay"]),
        ("%", ["100%"]),
        ("_", ["a_b"]),
        ("\\", ["back\\slash"]),
        ("ä", ["Träger"]),
        ("Ä", []),
        ("ss", []),
        ("a%b", []),
        ("", None),
    ],
)
def test_a_part_of_a_text_is_meant_literally(
    column: str, part: str, matches: list[str] | None
) -> None:
    texts = [
        "a needle in hay", "needle", "a Needle in hay", "100%", "a_b", "axb", "back\\slash",
        "Träger", "Strauß",
    ]  # fmt: skip
    by_text = {text: JobFactory(**{column: text}).id for text in texts}
    JobFactory()

    found = set(listed(**{f"{column}_like": part}))

    assert found == {by_text[text] for text in (texts if matches is None else matches)}


def test_moments_of_a_filter_are_included() -> None:
    first, middle, last = (JobFactory(created_at=later(number)).id for number in range(3))

    assert listed(created_after=later(1)) == [last, middle]
    assert listed(created_before=later(1)) == [middle, first]
    assert listed(created_after=later(1), created_before=later(1)) == [middle]
    assert listed(created_after=later(1) + timedelta(microseconds=1)) == [last]


@pytest.mark.parametrize("status", JobStatus)
def test_each_status_is_found_where_its_index_says(status: JobStatus) -> None:
    by_status = {
        JobStatus.PENDING: [
            JobFactory(**state).id for state in ({}, {"scheduled": True}, {"waiting": True})
        ],
        JobStatus.RUNNING: [JobFactory(running=True).id],
        JobStatus.PAUSED: [JobFactory(waiting=True, status="paused").id],
        **{
            word: [JobFactory(ended=True, status=word.value).id]
            for word in (
                JobStatus.COMPLETE, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED
            )
        },
    }  # fmt: skip

    assert listed(status=status) == by_status[status][::-1]
    assert listed(status=status, everywhere=True) == by_status[status][::-1]


def test_the_archive_is_listed_by_its_end() -> None:
    first, last = ArchivedJobFactory(completed_at=later(1)), ArchivedJobFactory(completed_at=NOW)
    twin = ArchivedJobFactory(completed_at=NOW)
    ArchivedJobFactory(namespace="other")

    found = [record.id for record in listing.list_archived(at(), limit=9)]

    assert found == [first.id, twin.id, last.id]
    assert len(listing.list_archived(at(), limit=1, offset=2)) == 1
    for number, key in enumerate(found):
        place = Place(later(1) if number == 0 else NOW, key)
        rest = listing.list_archived(at(), limit=9, after=place)
        assert [record.id for record in rest] == found[number + 1 :]


def test_jobs_archived_during_a_walk_neither_hide_nor_repeat_others() -> None:
    old = [ArchivedJobFactory(completed_at=later(number)) for number in range(4)][::-1]
    late = JobFactory(ended=True, completed_at=later(9)).id
    early = JobFactory(ended=True, completed_at=later(0.5)).id
    page = listing.list_archived(at(), limit=2)
    archive_batch(at(100), older_than_ms=0)

    completed_at = page[-1].completed_at
    assert completed_at is not None
    rest = listing.list_archived(at(), limit=9, after=Place(completed_at, page[-1].id))

    assert [job.id for job in page] == [old[0].id, old[1].id]
    assert [job.id for job in rest] == [old[2].id, early, old[3].id]
    assert late not in [job.id for job in rest]


def test_dead_letters_are_the_latest_first() -> None:
    rows = [DeadLetterFactory(failed_at=later(number), metadata="m") for number in range(3)]
    DeadLetterFactory(namespace="other")

    found = listing.dead_letters(at(), limit=2)

    assert [row["id"] for row in found] == [rows[2].id, rows[1].id]
    assert [row["id"] for row in listing.dead_letters(at(), limit=2, offset=2)] == [rows[0].id]
    after = Place(found[1]["failed_at"], found[1]["id"])
    assert [row["id"] for row in listing.dead_letters(at(), limit=2, after=after)] == [rows[0].id]
    assert set(found[0]) == {
        "id", "original_job_id", "queue", "task_name", "error", "retry_count", "failed_at",
        "metadata", "dlq_retry_count",
    }  # fmt: skip


def test_lists_read_no_arguments_and_results(django_assert_num_queries: Any) -> None:
    JobFactory(payload="[[1],{}]")
    ArchivedJobFactory()
    DeadLetterFactory()

    with django_assert_num_queries(3) as asked:
        listed(metadata_like="x")
        listing.list_archived(at(), limit=9)
        listing.dead_letters(at(), limit=9)

    for query in asked.captured_queries:
        assert "payload" not in query["sql"]
        assert "result" not in query["sql"].replace("result_ttl_ms", "")
        assert "COUNT(" not in query["sql"].upper()
