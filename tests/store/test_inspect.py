"""Read-only questions."""

from typing import Any

import pytest

from flexiq_django.core.records import JobRecord
from flexiq_django.store import inspect
from flexiq_django.store.ids import new_id
from tests.factories import (
    ArchivedJobFactory,
    JobErrorFactory,
    JobFactory,
    ReplayHistoryFactory,
    at,
    later,
)

pytestmark = pytest.mark.django_db


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

    assert [each and each.text for each in found] == ["[1]", '"x"', None]
    assert found[2] is not None
    assert inspect.get_result(at(), new_id()) is None
    assert inspect.get_result(at(namespace="other"), live.id) is None


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


def test_the_clock_is_that_of_the_scope() -> None:
    assert inspect.read_clock(at(5)) == later(5)


def test_replays_are_the_newest_first() -> None:
    job_id = new_id()
    rows = [
        ReplayHistoryFactory(original_job_id=job_id, replayed_at=later(number)) for number in (2, 1)
    ]
    ReplayHistoryFactory(original_job_id=job_id, namespace="other")
    ReplayHistoryFactory(replay_job_id=job_id)

    found = inspect.replays(at(), job_id)

    assert [row["id"] for row in found] == [row.id for row in rows]
    assert found[0] == {
        "id": rows[0].id, "original_job_id": job_id, "replay_job_id": rows[0].replay_job_id,
        "replayed_at": later(2), "original_error": None, "replay_error": None,
    }  # fmt: skip
