"""Pause and continue: a job that waits for a person, and what can happen to it."""

from typing import Any
from uuid import UUID

import pytest

from flexiq_django.core.records import ClaimedJob, Settlement
from flexiq_django.exceptions import TaskCancelledError
from flexiq_django.models import DeadLetter, Job, JobError, TaskMetric
from flexiq_django.store import figures, lease, operate, promote, purge, revive, settle, steer
from tests.concurrency import run_in_threads
from tests.factories import JobFactory, at, later
from tests.store.acting import claim, claim_one, enqueue_one, running, settlement, stored
from tests.testapp.models import Mark

pytestmark = pytest.mark.django_db


def pause(job: ClaimedJob, **fields: Any) -> Settlement:
    return settlement(job, "paused", pause_reason="ask Ada", duration_ms=1.0, **fields)


def paused(**fields: Any) -> UUID:
    """Store a job that has paused."""
    job = running(**fields)
    assert settle.settle(at(), [pause(job)]).settled == {job.id}
    return job.id


def run_together(end: Settlement) -> None:
    """A body that writes something and then pauses."""
    with settle.together(at(), lambda: None) as complete:
        Mark.objects.create(key=str(end.job_id))
        complete(end)


def go_on(job_id: UUID, seconds: float = 0) -> bool:
    return revive.continue_paused(at(seconds), job_id, limited={})


def test_a_paused_job_keeps_what_it_has_and_no_attempt_is_used() -> None:
    job = running(unique_key="k", expires_ms=60_000, result_ttl_ms=1_000)

    assert settle.settle(at(3), [pause(job)]).settled == {job.id}

    row = stored(job.id)
    assert (row.status, row.pause_reason, row.error) == ("paused", "ask Ada", None)
    assert (row.retry_count, row.attempt, row.started_at) == (0, 1, at().now)
    assert (row.ready_lane, row.promote_at, row.lease_at, row.completed_at) == (None,) * 4
    assert (row.active_key is None, row.expires_at, row.purge_at) == (False, None, None)
    assert not any(model.objects.exists() for model in (JobError, DeadLetter, TaskMetric))
    assert figures.stats(at())["pending"] == 1
    assert claim() == []


def test_a_repeat_is_told_from_a_late_owner() -> None:
    job = running()
    first = pause(job)
    settle.settle(at(), [first])

    assert settle.settle(at(), [first]).settled == {job.id}
    assert settle.settle(at(), [first._replace(token=1)]).lost == {job.id}
    assert settle.settle(at(), [settlement(job)]).lost == {job.id}
    assert stored(job.id).status == "paused"


def test_continue_makes_it_ready_now() -> None:
    job_id = paused(queue="mail")
    child = enqueue_one(parents=(job_id,))

    assert go_on(job_id, 5)
    assert not go_on(job_id, 5)

    row = stored(job_id)
    assert (row.status, row.ready_lane, row.pause_reason) == ("pending", "mail", None)
    assert (row.scheduled_at, row.started_at, row.token) == (later(5), None, None)
    job = claim_one(at(5))
    assert (job.id, job.attempt, job.retry_count) == (job_id, 2, 0)
    assert settle.settle(at(5), [settlement(job)]).released == 1
    assert stored(child).ready_lane == "default"


@pytest.mark.parametrize("state", [{}, {"running": True}, {"ended": True}], ids=str)
def test_no_other_job_is_continued(state: dict[str, Any]) -> None:
    job = JobFactory(**state)
    foreign = JobFactory(waiting=True, status="paused", namespace="other")

    assert not go_on(job.id)
    assert not go_on(foreign.id)
    assert stored(foreign.id).status == "paused"


def test_cancel_ends_it_with_all_that_waits_for_it() -> None:
    job_id = paused()
    child = enqueue_one(parents=(job_id,))

    assert operate.cancel(at(), job_id) == [job_id, child]
    assert stored(job_id).pause_reason == "ask Ada"


def test_nothing_that_clears_up_touches_it() -> None:
    job_id = paused(expires_ms=1)
    before = Job.objects.values().get()

    assert promote.cancel_expired(at(9_999)).cancelled == []
    assert steer.cancel_pending(at(9_999), error="purged", queue="default") == 0
    assert steer.cancel_pending(at(9_999), error="revoked", task_name="app.tasks.work") == 0
    assert sum(purge.purge_completed(at(9_999), older_than_ms=0)) == 0
    assert not revive.requeue(at(9_999), job_id, limited={})
    assert Job.objects.values().get() == before


def test_a_cancel_that_was_asked_for_wins() -> None:
    job, other = running(), running()
    operate.request_cancel(at(), job.id)
    child = enqueue_one(parents=(job.id,))

    outcome = settle.settle(at(), [pause(job), pause(other)])

    assert (outcome.stopped, outcome.cancelled) == ({job.id}, [child])
    assert (stored(job.id).status, stored(job.id).error) == ("cancelled", "cancelled by request")
    assert stored(other.id).status == "paused"
    assert settle.settle(at(), [pause(job)]).settled == {job.id}


@pytest.mark.django_db(transaction=True)
def test_a_body_commits_with_its_pause_unless_it_was_to_be_cancelled() -> None:
    job, stopped = running(), running()
    operate.request_cancel(at(), stopped.id)

    run_together(pause(job))
    with pytest.raises(TaskCancelledError):
        run_together(pause(stopped))

    assert list(Mark.objects.values_list("key", flat=True)) == [str(job.id)]
    assert (stored(job.id).status, stored(stopped.id).status) == ("paused", "running")


# --- at the same time -----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_pause_and_the_reaper_at_once_leave_one_verdict() -> None:
    for _ in range(10):
        job = running()
        outcome, (reaped, _) = run_in_threads(
            [
                lambda job=job: settle.settle(at(99), [pause(job)]),
                lambda: settle.reap(
                    at(99), lambda lost: settlement(lost, "pending", attempt_error="lost")
                ),
            ]
        )

        assert bool(outcome.settled) is not bool(reaped)
        assert stored(job.id).status == ("paused" if outcome.settled else "pending")
        assert lease.renew(at(99), [(job.id, job.token)], lease_ms=1).owned == set()
        Job.objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_a_pause_and_a_request_to_cancel_at_once() -> None:
    for _ in range(10):
        job = running()
        outcome, is_asked = run_in_threads(
            [
                lambda job=job: settle.settle(at(), [pause(job)]),
                lambda job=job: operate.request_cancel(at(), job.id),
            ]
        )

        assert outcome.settled == {job.id}
        assert stored(job.id).status == ("cancelled" if is_asked else "paused")
        Job.objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_continue_and_cancel_at_once_and_two_who_continue() -> None:
    for _ in range(10):
        job_id = paused()
        first, second, cancelled = run_in_threads(
            [
                lambda job_id=job_id: go_on(job_id),
                lambda job_id=job_id: go_on(job_id),
                lambda job_id=job_id: bool(operate.cancel(at(), job_id)),
            ]
        )

        assert not (first and second)
        # Cancelled before it was continued, or as the pending job it then was.
        assert cancelled
        assert stored(job_id).status == "cancelled"
        Job.objects.all().delete()


def test_a_job_that_goes_on_stays_with_its_deployment() -> None:
    enqueue_one(deployment_id="gpu-pool")
    (job,) = claim(deployment_id="gpu-pool")
    settle.settle(at(), [pause(job)])

    assert go_on(job.id)

    assert claim(at(1)) == []
    assert [each.id for each in claim(at(1), deployment_id="gpu-pool")] == [job.id]
