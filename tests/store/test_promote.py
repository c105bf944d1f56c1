"""promote_due makes jobs ready when they are due; cancel_expired ends those that are too late."""

import pytest

from flexiq_django.models import Job
from flexiq_django.store import settle
from flexiq_django.store.promote import cancel_expired, promote_due
from flexiq_django.store.vendors import open_database
from tests.factories import JobFactory, at, later
from tests.store.acting import claim, claim_one, enqueue, enqueue_one, running, settlement, stored

pytestmark = pytest.mark.django_db


def test_a_job_is_ready_when_it_is_due_and_never_early() -> None:
    key = enqueue_one(delay_ms=2_000)

    assert promote_due(at(1.999)) == (0, pytest.approx(0.001))
    assert claim(at(1.999)) == []
    assert promote_due(at(2)) == (1, None)

    row = stored(key)
    assert (row.ready_lane, row.promote_at) == ("default", None)
    assert row.scheduled_at == row.updated_at == later(2)
    assert claim_one(at(2)).id == key


def test_the_wait_is_until_the_next_one() -> None:
    for seconds in (30, 10, 20):
        enqueue_one(delay_ms=seconds * 1_000)

    assert promote_due(at(4)) == (0, pytest.approx(6))
    assert promote_due(at(10)) == (1, pytest.approx(10))
    assert promote_due(at(45)) == (2, None)
    assert promote_due(at(45)) == (0, None)


def test_each_goes_to_the_lane_of_its_queue_and_deployment() -> None:
    plain = enqueue_one(queue="mail", delay_ms=1)
    pinned = enqueue_one(queue="mail", deployment_id="blue", delay_ms=1)

    promote_due(at(1))

    assert stored(plain).ready_lane == "mail"
    assert stored(pinned).ready_lane == "mail\x1fblue"


def test_a_retry_is_promoted_too() -> None:
    job = running()
    settle.settle(at(), [settlement(job, "pending", wait_ms=5_000, attempt_error="e")])

    assert promote_due(at(5))[0] == 1
    assert claim_one(at(5)).attempt == 2


def test_promoted_jobs_keep_the_order_of_their_due_times() -> None:
    keys = {seconds: enqueue_one(delay_ms=seconds * 1_000) for seconds in (3, 1, 2)}
    promote_due(at(9))

    assert [job.id for job in claim(at(9))] == [keys[1], keys[2], keys[3]]


def test_only_what_is_pending_and_due_later_moves() -> None:
    for state in ({}, {"waiting": True}, {"running": True}, {"ended": True}):
        JobFactory(**state)
    JobFactory(waiting=True, status="paused")
    before = list(Job.objects.order_by("id").values())

    assert promote_due(at(1_000)) == (0, None)
    assert list(Job.objects.order_by("id").values()) == before


def test_promotion_stays_in_its_namespace() -> None:
    enqueue_one(at(namespace="other"), delay_ms=1)

    assert promote_due(at(1)) == (0, None)
    assert promote_due(at(1, namespace="other")) == (1, None)


def test_a_batch_has_a_size_and_says_that_more_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 3)
    enqueue(5, delay_ms=1_000)

    assert promote_due(at(2)) == (3, 0.0)
    assert promote_due(at(2)) == (2, None)


# --- expiry ---------------------------------------------------------------------------------------


def test_a_job_that_is_too_late_is_cancelled() -> None:
    key = enqueue_one(expires_ms=5_000, unique_key="k", result_ttl_ms=1_000)

    assert cancel_expired(at(4.999)).cancelled == []
    assert cancel_expired(at(5)).cancelled == [key]

    row = stored(key)
    assert (row.status, row.error, row.started_at) == ("cancelled", "expired", None)
    assert row.completed_at == later(5)
    assert row.purge_at == later(6)
    assert (row.ready_lane, row.active_key, row.expires_at) == (None, None, None)
    assert claim(at(6)) == []


@pytest.mark.parametrize("fields", [{"delay_ms": 9_000}, {}])
def test_whatever_it_waits_for(fields: dict[str, int]) -> None:
    parent = running()
    key = enqueue_one(expires_ms=5_000, **fields)
    waiting = enqueue_one(expires_ms=5_000, parents=(parent.id,))

    assert cancel_expired(at(5)).cancelled == sorted([key, waiting])
    assert stored(key).promote_at is None


def test_a_job_that_has_begun_does_not_expire() -> None:
    job = running(expires_ms=5_000)

    assert cancel_expired(at(9)).cancelled == []
    assert stored(job.id).status == "running"


def test_a_retry_may_still_expire() -> None:
    job = running(expires_ms=5_000)
    settle.settle(at(1), [settlement(job, "pending", attempt_error="e")])

    assert cancel_expired(at(5)).cancelled == [job.id]


def test_the_first_to_expire_come_first_and_no_more_than_the_limit() -> None:
    keys = [enqueue_one(expires_ms=ms) for ms in (300, 100, 200)]

    assert cancel_expired(at(1), limit=2).cancelled == sorted(keys[1:])
    assert cancel_expired(at(1), limit=2).cancelled == keys[:1]


def test_expiry_stays_in_its_namespace() -> None:
    enqueue_one(at(namespace="other"), expires_ms=1)

    assert cancel_expired(at(1)).cancelled == []
    assert len(cancel_expired(at(1, namespace="other")).cancelled) == 1
