"""Claims: the order, the gates, the lease, and what a claim ends on its way."""

from typing import Any
from uuid import UUID

import pytest

from flexiq_django import Queue
from flexiq_django import db as jobs
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.models import JobError
from flexiq_django.store import steer
from tests.concurrency import run_in_threads
from tests.db.conftest import LONG_AGO, change, claimed, outlive_lease, row_of


def test_the_larger_priority_then_the_older(place: jobs.JobDatabase) -> None:
    usual, second = jobs.insert_job(place, "a"), jobs.insert_job(place, "b", queue="mail")
    urgent = jobs.insert_job(place, "c", priority=9)

    assert jobs.get_next_pending(place) == (urgent, "c")
    assert jobs.get_next_pending(place, queues=["mail"]) == (second, "b")
    found = [jobs.claim_next_job(place) for _ in range(3)]
    assert [each and each[:2] for each in found] == [(urgent, "c"), (usual, "a"), (second, "b")]
    assert jobs.claim_next_job(place) is jobs.get_next_pending(place) is None


def test_what_a_claim_says_and_writes(place: jobs.JobDatabase) -> None:
    job_id = jobs.insert_job_full(place, [1], timeout=2.5, max_retries=4, metadata="m")

    claim = jobs.claim_with_lease(place, "me", 3600)

    assert claim is not None
    assert (claim.id, claim.data, claim.queue, claim.attempt) == (job_id, [1], "default", 1)
    assert (claim.retry_count, claim.max_retries, claim.timeout) == (0, 4, 2.5)
    assert (claim.worker_id, claim.lease, claim.metadata) == ("me", 3600, "m")
    row = row_of(claim)
    assert (row.status, row.token, row.worker_id) == ("running", claim.token, "me")
    assert row.lease_at is not None
    assert row.started_at is not None
    assert round((row.lease_at - row.started_at).total_seconds(), 2) == 3600
    assert jobs.get_attempt_count(place, job_id) == 1


def test_due_jobs_need_no_other_worker_to_become_ready(place: jobs.JobDatabase) -> None:
    job_id = jobs.insert_job_full(place, 1, delay=3600)
    assert jobs.claim(place, "me") is None

    change(job_id, promote_at=LONG_AGO, scheduled_at=LONG_AGO)

    assert jobs.get_next_pending(place) == (job_id, 1)
    assert jobs.claim(place, "me") is not None


def test_pauses_and_limits_bind(place: jobs.JobDatabase) -> None:
    queue = Queue(place.namespace)
    first, second = jobs.insert_job(place, 1), jobs.insert_job(place, 2)
    queue.pause("default")
    assert jobs.claim(place, "me") is jobs.get_next_pending(place) is None
    assert jobs.mark_processing(place, first) is None
    queue.resume("default")
    queue.set_queue_concurrency("default", 1)

    claim = jobs.claim(place, "me")
    assert claim is not None
    assert jobs.claim(place, "me") is jobs.mark_processing(place, second) is None
    assert jobs.mark_completed_owned(place, claim)
    assert jobs.mark_processing(place, second) is not None


def test_the_limit_of_a_task_binds_jobs_in_every_lane(place: jobs.JobDatabase) -> None:
    for number in range(3):
        jobs.insert_job(place, number, task_name="low.limited")
    other = jobs.insert_job(place, 9)
    steer.declare_limits(place.scope, {"low.limited": {"max_concurrent": 1}})

    found = [jobs.claim(place, "me") for _ in range(3)]

    assert [each and each.data for each in found] == [0, 9, None]
    assert found[1] is not None
    assert found[1].id == other


def test_deployments(place: jobs.JobDatabase) -> None:
    job_id = jobs.insert_job_full(place, 1, deployment_id="blue")
    assert jobs.claim(place, "me") is jobs.mark_processing(place, job_id) is None

    blue = jobs.open_database(deployment_id="blue")
    assert jobs.get_next_pending(blue) == (job_id, 1)
    claim = jobs.claim(blue, "me")
    assert claim is not None
    assert claim.deployment_id == "blue"


def test_mark_processing_claims_that_job_only(place: jobs.JobDatabase) -> None:
    jobs.insert_job(place, 1, priority=9)
    wanted = jobs.insert_job(place, 2)

    claim = jobs.mark_processing(place, wanted, worker_id="me", lease=10)

    assert claim is not None
    assert (claim.id, claim.data, claim.lease) == (wanted, 2, 10)
    assert jobs.mark_processing(place, wanted) is None
    assert jobs.mark_processing(place, "no id") is None
    assert jobs.count_by_status(place, "processing") == 1


def test_expired_and_unreadable_jobs_are_ended_and_the_next_is_claimed(
    place: jobs.JobDatabase,
) -> None:
    late, bad, good = (jobs.insert_job(place, number) for number in range(3))
    change(late, expires_at=LONG_AGO)
    change(bad, payload="{")

    assert jobs.get_next_pending(place) == (late, 0)
    claim = jobs.claim(place, "me")

    assert claim is not None
    assert claim.id == good
    assert jobs.count_by_status(place) == {
        "pending": 0, "processing": 1, "completed": 0, "failed": 1, "cancelled": 1,
    }  # fmt: skip
    assert row_of(late).error == "expired before execution"
    assert "not valid JSON" in JobError.objects.get(job_id=UUID(bad)).error
    found = jobs.get_job(place, bad)
    assert found is not None
    assert (found.status, found.data) == ("failed", "{")


def test_calls_of_other_shapes_are_shown_whole(place: jobs.JobDatabase) -> None:
    Queue(place.namespace).enqueue("low.call", (1, 2), {"a": 3})

    claim = jobs.claim(place, "me")

    assert claim is not None
    assert (claim.data, claim.task_name) == ({"args": [1, 2], "kwargs": {"a": 3}}, "low.call")


def test_heartbeats_renew_what_is_still_owned(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    outlive_lease(claim)

    assert jobs.heartbeat(place, claim)
    assert jobs.reclaim_stale(place) == 0
    assert jobs.heartbeat(place, claim, lease=0.001)
    outlive_lease(claim)
    assert jobs.reclaim_stale(place) == 1
    assert not jobs.heartbeat(place, claim)


@pytest.mark.parametrize(
    "options",
    [
        {"worker_id": ""},
        {"worker_id": "x" * 151},
        {"lease": 0},
        {"lease": None},
        {"lease": float("nan")},
        {"queues": "default"},
    ],
)
def test_bad_claims_are_refused(place: jobs.JobDatabase, options: dict[str, Any]) -> None:
    jobs.insert_job(place, 1)
    with pytest.raises(InvalidOptionError):
        jobs.claim_with_lease(place, **{"worker_id": "me", "lease": 1, **options})
    assert jobs.count_by_status(place, "pending") == 1


@pytest.mark.django_db(transaction=True)
def test_no_job_is_handed_out_twice() -> None:
    place = jobs.open_database()
    ids = {jobs.insert_job(place, number) for number in range(12)}

    def claim_four() -> list[str]:
        found = [jobs.claim(place, "me") for _ in range(4)]
        return [claim.id for claim in found if claim is not None]

    taken = [key for found in run_in_threads([claim_four] * 3) for key in found]
    taken += [claim.id for _ in ids if (claim := jobs.claim(place, "me"))]
    assert sorted(taken) == sorted(ids)


@pytest.mark.django_db(transaction=True)
def test_one_job_marked_by_two() -> None:
    place = jobs.open_database()
    job_id = jobs.insert_job(place, 1)

    found = run_in_threads([lambda: jobs.mark_processing(place, job_id)] * 2)

    assert sorted(claim is None for claim in found) == [False, True]
    assert jobs.get_attempt_count(place, job_id) == 1
