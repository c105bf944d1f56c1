"""insert_job and its two longer forms."""

import json
from datetime import date
from typing import Any

import pytest
from django.db import transaction

from flexiq_django import Queue
from flexiq_django import db as jobs
from flexiq_django.exceptions import (
    InvalidArgumentsError,
    InvalidOptionError,
    PayloadTooLargeError,
    QueueFull,
    SerializationError,
    TaskRevokedError,
)
from flexiq_django.models import Job
from flexiq_django.testing import captured_jobs
from tests.db.conftest import row_of


def test_the_data_are_the_only_argument(place: jobs.JobDatabase) -> None:
    row = row_of(jobs.insert_job(place, {"a": [1, date(2026, 1, 2)]}, priority=3, max_retries=7))

    assert json.loads(row.payload)[0][0]["a"][0] == 1
    assert (row.task_name, row.queue, row.status) == ("flexiq_django.db", "default", "pending")
    assert (row.priority, row.max_retries, row.trace_id) == (3, 7, None)
    assert jobs.get_job(place, str(row.id)) == (
        str(row.id), 3, "pending", {"a": [1, date(2026, 1, 2)]}, None
    )  # fmt: skip


def test_a_full_queue_refuses_and_a_test_sees_what_is_inserted(
    place: jobs.JobDatabase, settings: Any
) -> None:
    settings.FLEXIQ = {**settings.FLEXIQ, "MAX_QUEUE_DEPTH": {"mail": 2}}
    with captured_jobs() as seen:
        first = jobs.insert_job(place, 1, queue="mail")
        second = jobs.insert_job_with_trace(place, 1, "t", queue="mail")
        jobs.insert_job(place, 1)

    assert [job.id for job in seen][:2] == [first, second]
    assert len(seen) == 3
    for insert in (jobs.insert_job, jobs.insert_job_full):
        with pytest.raises(QueueFull, match="'mail'"):
            insert(place, 1, queue="mail")


def test_trace_and_lineage(place: jobs.JobDatabase) -> None:
    traced = row_of(jobs.insert_job_with_trace(place, 1, "t-1", queue="mail"))
    full = jobs.insert_job_full(
        place, 1, attempt_id="a", trial_id="b", trace_id="c", unique_key="k", delay=60
    )

    assert (traced.trace_id, traced.queue) == ("t-1", "mail")
    row = row_of(full)
    assert (row.attempt_id, row.trial_id, row.trace_id) == ("a", "b", "c")
    assert row.promote_at is not None
    assert jobs.insert_job_full(place, 2, unique_key="k", trial_id="z") == full
    assert row_of(full).trial_id == "b"


def test_a_declared_task_brings_its_options_and_may_refuse(
    place: jobs.JobDatabase, settings: Any
) -> None:
    queue = Queue()

    @queue.task(name="low.resize", queue="images", max_retries=9)
    def resize(picture: str) -> None: ...

    @queue.task(name="low.two", max_retries=9)
    def two(one: int, other: int) -> None: ...

    row = row_of(jobs.insert_job(place, "a.png", task_name="low.resize"))
    assert (row.queue, row.max_retries) == ("images", 9)
    with pytest.raises(InvalidArgumentsError):
        jobs.insert_job(place, 1, task_name="low.two")
    queue.revoke_task("low.resize")
    with pytest.raises(TaskRevokedError):
        jobs.insert_job(place, "a.png", task_name="low.resize")


def test_it_belongs_to_the_transaction_of_the_caller(place: jobs.JobDatabase) -> None:
    with transaction.atomic():
        jobs.insert_job(place, 1)
        transaction.set_rollback(True)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"task_name": ""}, InvalidOptionError),
        ({"queue": " "}, InvalidOptionError),
        ({"priority": 2**31}, InvalidOptionError),
        ({"max_retries": -1}, InvalidOptionError),
        ({"attempt_id": ""}, InvalidOptionError),
        ({"trial_id": "x" * 201}, InvalidOptionError),
        ({"trace_id": "\x00"}, InvalidOptionError),
        ({"data": object()}, SerializationError),
        ({"data": "x" * 2_000_000}, PayloadTooLargeError),
    ],
)
def test_what_is_not_allowed_is_refused(
    place: jobs.JobDatabase, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        jobs.insert_job_full(place, options.pop("data", 1), **options)
    assert not Job.objects.exists()
