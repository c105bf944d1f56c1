"""insert_jobs: what a stored job looks like."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flexiq_django.models import Job
from flexiq_django.store.enqueue import insert_jobs
from flexiq_django.store.ids import new_ids
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import batches
from tests.factories import NOW, NewJobFactory, at, later
from tests.store.acting import enqueue_one, stored

pytestmark = pytest.mark.django_db


def test_a_plain_job_is_ready_at_once() -> None:
    job = NewJobFactory(queue="mail", task_name="app.send", payload='[[1],{"a":2}]', max_retries=5)

    assert insert_jobs(at(), [job]) == [job.id]

    row = stored(job.id)
    assert (row.namespace, row.queue, row.task_name) == ("default", "mail", "app.send")
    assert (row.status, row.ready_lane, row.promote_at) == ("pending", "mail", None)
    assert (row.payload, row.max_retries) == ('[[1],{"a":2}]', 5)
    assert (row.attempt, row.retry_count, row.priority, row.rank) == (0, 0, 0, 0)
    assert row.created_at == row.updated_at == row.scheduled_at == NOW
    assert row.origin == "task"
    unset = (
        "result", "error", "progress", "started_at", "completed_at", "timeout_ms", "result_ttl_ms",
        "purge_at", "unique_key", "active_key", "metadata", "notes", "worker_id", "lease_at",
        "cancel_requested_at", "schedule", "session_id", "user_id", "deployment_id", "trace_id",
        "token", "expires_at", "attempt_id", "trial_id", "pause_reason",
    )  # fmt: skip
    assert {name: getattr(row, name) for name in unset} == dict.fromkeys(unset)


def test_every_field_is_kept() -> None:
    fields: dict[str, Any] = {
        "priority": -7,
        "timeout_ms": 1_500,
        "result_ttl_ms": 0,
        "unique_key": "Käse",
        "metadata": '"quotes" \\ and \n lines',
        "notes": '{"a":1}',
        "origin": "periodic",
        "schedule": "nightly",
        "session_id": "s",
        "user_id": "u",
        "deployment_id": "blue",
        "trace_id": "t",
    }

    row = stored(enqueue_one(**fields))

    assert {name: getattr(row, name) for name in fields} == fields
    assert row.rank == 7
    assert (row.ready_lane, row.session_slot) == ("default\x1fblue", "s")
    assert row.active_key is not None
    assert len(row.active_key) == 64


def test_the_namespace_is_that_of_the_scope() -> None:
    assert stored(enqueue_one(at(namespace="other"))).namespace == "other"


@pytest.mark.parametrize(
    "text", ["", "a\\u0000b", "ünïcödé \U0001f4e7", "%(now)s {now} %s %", "'; DROP TABLE x; --"]
)
def test_texts_are_stored_as_they_are(text: str) -> None:
    row = stored(enqueue_one(payload=text, metadata=text, unique_key=text or "k"))

    assert row.payload == row.metadata == text


def test_a_delay_counts_from_the_insert_on_the_clock_of_the_scope() -> None:
    row = stored(enqueue_one(delay_ms=1_500))

    assert row.scheduled_at == row.promote_at == later(1.5)
    assert row.created_at == NOW
    assert row.ready_lane is None


def test_a_delay_of_zero_is_none() -> None:
    assert stored(enqueue_one(delay_ms=0)).ready_lane == "default"


def test_a_time_in_the_future_is_waited_for_to_the_microsecond() -> None:
    due = NOW + timedelta(hours=1, microseconds=1)

    row = stored(enqueue_one(run_at=due.astimezone(ZoneInfo("Asia/Tokyo"))))

    assert row.scheduled_at == row.promote_at == due
    assert row.ready_lane is None


@pytest.mark.parametrize("seconds", [0, -0.000001, -86_400])
def test_a_time_that_has_come_is_ready_and_keeps_its_place(seconds: float) -> None:
    row = stored(enqueue_one(run_at=later(seconds)))

    assert row.scheduled_at == later(seconds)
    assert row.ready_lane == "default"
    assert row.promote_at is None


def test_expiry_counts_from_the_insert_too() -> None:
    assert stored(enqueue_one(expires_ms=2_500, delay_ms=9_000)).expires_at == later(2.5)
    assert stored(enqueue_one(expires_ms=0)).expires_at == NOW


def test_the_longest_times_fit() -> None:
    century = 100 * 365 * 86_400_000

    row = stored(enqueue_one(delay_ms=century, expires_ms=century, result_ttl_ms=century))

    assert row.promote_at == row.expires_at == NOW + timedelta(milliseconds=century)


def test_without_now_the_database_says_what_time_it_is() -> None:
    row = stored(enqueue_one(Scope(), delay_ms=60_000))

    assert row.promote_at is not None
    assert abs(row.promote_at - row.created_at - timedelta(seconds=60)) < timedelta(milliseconds=1)


def test_a_bulk_answers_in_order() -> None:
    jobs = [NewJobFactory(priority=number) for number in range(250)]

    assert insert_jobs(at(), jobs) == [job.id for job in jobs]

    rows = Job.objects.order_by("id").values_list("id", "priority")
    assert list(rows) == [(job.id, job.priority) for job in jobs]


def test_no_jobs_are_no_trouble() -> None:
    assert insert_jobs(at(), []) == []
    assert Job.objects.count() == 0


def test_mixed_rows_do_not_lend_each_other_values() -> None:
    full, bare = new_ids(2)
    jobs = [
        NewJobFactory(id=full, metadata="m", delay_ms=5, timeout_ms=9, user_id="u", notes="{}"),
        NewJobFactory(id=bare),
    ]

    insert_jobs(at(), jobs)

    row = stored(bare)
    assert (row.metadata, row.promote_at, row.timeout_ms, row.user_id) == (None, None, None, None)
    assert row.ready_lane == "default"


def test_a_bulk_larger_than_one_statement_is_stored_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_CHARS", 1_000)
    jobs = [NewJobFactory(metadata="x" * 300) for _ in range(20)]

    insert_jobs(at(), jobs)

    assert Job.objects.count() == 20


@pytest.mark.django_db(transaction=True)
def test_a_bulk_larger_than_one_statement_is_stored_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "MAX_CHARS", 1_000)
    first = NewJobFactory(metadata="x" * 300)
    jobs = [first, *(NewJobFactory(metadata="x" * 300) for _ in range(20)), first]

    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        insert_jobs(at(), jobs)

    assert Job.objects.count() == 0
