"""Read-only questions."""

from typing import Any

import pytest

from flexiq_django.core.records import JobRecord
from flexiq_django.core.status import JobStatus
from flexiq_django.store import inspect
from flexiq_django.store.ids import new_id
from tests.factories import (
    NOW,
    ArchivedJobFactory,
    DeadLetterFactory,
    JobDependencyFactory,
    JobErrorFactory,
    JobFactory,
    at,
    later,
)

pytestmark = pytest.mark.django_db

NONE = {"pending": 0, "running": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 0}


def listed(**options: Any) -> list[object]:
    asked = {"status": None, "queue": None, "task_name": None, "limit": 50, "offset": 0}
    asked |= {"everywhere": False}
    return [record.id for record in inspect.list_jobs(at(), **{**asked, **options})]


@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_job_is_found_in_either_table(factory: Any) -> None:
    job = factory(priority=3, metadata="m", user_id="u", schedule="s", notes="{}", timeout_ms=5)

    record = inspect.get(at(), job.id)

    assert record is not None
    assert record._asdict() == {name: getattr(job, name) for name in JobRecord._fields}


def test_a_job_of_another_namespace_is_not_found() -> None:
    job = JobFactory(namespace="other", result="1")

    assert inspect.get(at(), job.id) is None
    assert inspect.get(at(), new_id()) is None
    assert inspect.get_result(at(), job.id) is None


def test_the_result_is_read_apart() -> None:
    live, archived = JobFactory(ended=True, result="[1]"), ArchivedJobFactory(result='"x"')
    none = JobFactory()

    found = [inspect.get_result(at(), job.id) for job in (live, archived, none)]

    assert found == ["[1]", '"x"', None]


def test_a_listing_is_newest_first_without_the_archive() -> None:
    jobs = [JobFactory(created_at=NOW).id for _ in range(3)]
    ArchivedJobFactory()

    assert listed() == jobs[::-1]
    assert listed(limit=2) == jobs[:0:-1]
    assert listed(limit=2, offset=2) == jobs[:1]
    assert listed(limit=0) == listed(offset=9) == []


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


def test_the_archive_is_listed_by_its_end() -> None:
    first, last = ArchivedJobFactory(completed_at=later(1)), ArchivedJobFactory(completed_at=NOW)
    twin = ArchivedJobFactory(completed_at=NOW)
    ArchivedJobFactory(namespace="other")

    found = [record.id for record in inspect.list_archived(at(), limit=9, offset=0)]

    assert found == [first.id, twin.id, last.id]
    assert len(inspect.list_archived(at(), limit=1, offset=2)) == 1


def test_counts_by_queue_and_in_all() -> None:
    for state in ("scheduled", "waiting", "running", "ended"):
        JobFactory(**{state: True})
    for status in ("dead", "cancelled", "failed"):
        JobFactory(ended=True, status=status)
    JobFactory(waiting=True, status="paused")
    JobFactory()
    JobFactory(queue="mail")
    JobFactory(namespace="other")
    ArchivedJobFactory()
    default = {
        "pending": 4, "running": 1, "completed": 1, "failed": 1, "dead": 1, "cancelled": 1
    }  # fmt: skip

    assert inspect.stats_by_queue(at()) == {"default": default, "mail": {**NONE, "pending": 1}}
    assert inspect.stats_by_queue(at(), "mail") == {"mail": {**NONE, "pending": 1}}
    assert inspect.stats_by_queue(at(), "unknown") == {}
    assert inspect.stats(at()) == {**default, "pending": 5}
    assert inspect.stats(at(namespace="empty")) == NONE


def test_the_oldest_ready_job() -> None:
    assert inspect.oldest_ready(at()) is None
    JobFactory(scheduled_at=later(-5))
    JobFactory(scheduled_at=later(-9))
    JobFactory(scheduled_at=later(-99), waiting=True)
    JobFactory(scheduled_at=later(-99), namespace="other")

    assert inspect.oldest_ready(at()) == later(-9)


def test_errors_are_the_oldest_first() -> None:
    job_id = new_id()
    rows = [JobErrorFactory(job_id=job_id, attempt=n, failed_at=later(n)) for n in range(3)]
    JobErrorFactory()
    JobErrorFactory(job_id=job_id, namespace="other")

    found = inspect.job_errors(at(), job_id)

    assert [row["id"] for row in found] == [row.id for row in rows]
    assert found[1] == {
        "id": rows[1].id, "job_id": job_id, "attempt": 1, "error": "ValueError: bad",
        "failed_at": later(1),
    }  # fmt: skip
    assert inspect.job_errors(at(), new_id()) == []


def test_dead_letters_are_the_latest_first() -> None:
    rows = [DeadLetterFactory(failed_at=later(number), metadata="m") for number in range(3)]
    DeadLetterFactory(namespace="other")

    found = inspect.dead_letters(at(), limit=2, offset=0)

    assert [row["id"] for row in found] == [rows[2].id, rows[1].id]
    assert [row["id"] for row in inspect.dead_letters(at(), limit=2, offset=2)] == [rows[0].id]
    assert set(found[0]) == {
        "id", "original_job_id", "queue", "task_name", "error", "retry_count", "failed_at",
        "metadata", "dlq_retry_count",
    }  # fmt: skip


def test_relatives_up_and_down() -> None:
    middle = new_id()
    parents = [JobDependencyFactory(job_id=middle).parent_id for _ in range(2)]
    children = [JobDependencyFactory(parent_id=middle, is_open=False).job_id for _ in range(2)]
    JobDependencyFactory(parent_id=middle, namespace="other")

    assert inspect.related(at(), middle, upwards=True) == parents
    assert inspect.related(at(), middle, upwards=False) == children


def test_the_clock_is_that_of_the_scope() -> None:
    assert inspect.read_clock(at(5)) == later(5)
