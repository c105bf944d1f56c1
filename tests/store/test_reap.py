"""reap: jobs whose lease ran out come back, or die when their budget is spent."""

import pytest
from django.db import transaction

from flexiq_django.core.outcome import WORKER_LOST, Ending, Outcome, decide
from flexiq_django.core.records import ClaimedJob, Settlement
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.models import DeadLetter, Job, JobError, TaskMetric
from flexiq_django.store import lease, operate, settle
from flexiq_django.store.scope import Scope
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import NOW, JobFactory, at, later
from tests.store.acting import claim, claim_one, enqueue, enqueue_one, running, settlement, stored

pytestmark = pytest.mark.django_db


def lost(job: ClaimedJob) -> Settlement:
    outcome = Outcome(job=job, ending=Ending.FAILED, error=WORKER_LOST, retry_after=0.0)
    return decide(outcome, RetryPolicy(max_retries=0))


def reap(scope: Scope, limit: int = 100) -> list[tuple[object, str]]:
    settlements, _ = settle.reap(scope, lost, limit=limit)
    return [(each.job_id, each.status) for each in settlements]


def test_a_lease_that_runs_is_left_alone() -> None:
    running()

    assert reap(at(59.999)) == []
    assert Job.objects.get().status == "running"


def test_with_attempts_left_the_job_is_ready_again_and_the_attempt_counts() -> None:
    job = running(unique_key="k", deployment_id=None)

    assert reap(at(60)) == [(job.id, "pending")]

    row = stored(job.id)
    assert (row.status, row.ready_lane, row.retry_count, row.attempt) == (
        "pending", "default", 1, 1
    )  # fmt: skip
    assert (row.lease_at, row.started_at, row.error, row.token) == (None,) * 4
    assert row.active_key is not None
    error = JobError.objects.get()
    assert (error.job_id, error.attempt, error.error, error.worker_id) == (
        job.id, 0, WORKER_LOST, "worker-1"
    )  # fmt: skip
    assert error.failed_at == later(60)
    assert TaskMetric.objects.count() == DeadLetter.objects.count() == 0


def test_without_attempts_left_the_job_is_dead_and_its_children_fall() -> None:
    job = running(max_retries=0)
    child = enqueue_one(parents=(job.id,))

    settlements, outcome = settle.reap(at(60), lost)

    assert [each.status for each in settlements] == ["dead"]
    assert outcome.cancelled == [child]
    row = stored(job.id)
    assert (row.status, row.error, row.retry_count) == ("dead", WORKER_LOST, 0)
    assert row.completed_at == later(60)
    assert DeadLetter.objects.get().error == WORKER_LOST
    assert stored(child).status == "cancelled"


def test_the_owner_that_comes_back_changes_nothing() -> None:
    job = running()
    reap(at(60))

    assert lease.renew(at(61), [(job.id, job.token)], lease_ms=1).owned == set()
    assert settle.settle(at(61), [settlement(job)]).lost == {job.id}
    assert settle.settle(at(61), [settlement(job, "pending", attempt_error="e")]).lost == {job.id}
    assert stored(job.id).status == "pending"
    assert stored(job.id).retry_count == 1


def test_the_dead_owner_that_comes_back_changes_nothing() -> None:
    job = running(max_retries=0)
    reap(at(60))

    late = settlement(job, "dead", error="mine", attempt_error="mine")
    assert settle.settle(at(61), [late]).lost == {job.id}
    assert stored(job.id).error == WORKER_LOST
    assert DeadLetter.objects.count() == 1


def test_the_lane_is_that_of_the_job() -> None:
    enqueue_one(queue="mail", deployment_id="blue")
    job = claim_one(deployment_id="blue")

    reap(at(60))

    assert stored(job.id).ready_lane == "mail\x1fblue"


def test_the_longest_overdue_come_first_and_no_more_than_the_limit() -> None:
    jobs = [JobFactory(running=True, lease_at=later(-number)) for number in range(5)]

    assert [key for key, _ in reap(at(), limit=3)] == [job.id for job in jobs[:1:-1]]
    assert len(reap(at(), limit=3)) == 2
    assert reap(at(), limit=3) == []


def test_those_that_were_heard_of_lately_do_not_stand_before_the_others() -> None:
    heard = [JobFactory(running=True, lease_at=later(-100), updated_at=later(-9)) for _ in "abc"]
    silent = JobFactory(running=True, lease_at=later(-50), updated_at=later(-50))

    settlements, _ = settle.reap(at(), lost, limit=2, unseen_ms=30_000)

    assert [each.job_id for each in settlements] == [silent.id]
    assert {stored(job.id).status for job in heard} == {"running"}


def test_reaping_stays_in_its_namespace() -> None:
    JobFactory(running=True, namespace="other", lease_at=NOW)

    assert reap(at(1)) == []
    assert len(reap(at(1, namespace="other"))) == 1


def test_paused_and_ended_jobs_are_left_alone() -> None:
    JobFactory(waiting=True, status="paused")
    JobFactory(ended=True)

    assert reap(at(1_000_000)) == []


def test_a_heartbeat_that_comes_first_wins() -> None:
    slow, gone = running(), running()

    def decide_while_the_owner_wakes_up(job: ClaimedJob) -> Settlement:
        if job.id == slow.id:
            lease.renew(at(61), [(slow.id, slow.token)], lease_ms=60_000)
        return lost(job)

    settlements, outcome = settle.reap(at(60), decide_while_the_owner_wakes_up)

    assert [each.job_id for each in settlements] == [gone.id]
    assert outcome.settled == {gone.id}
    assert outcome.lost == {slow.id}
    assert stored(slow.id).status == "running"
    assert stored(slow.id).lease_at == later(121)
    assert JobError.objects.get().job_id == gone.id


def test_a_settlement_that_comes_first_wins() -> None:
    job = running()
    settle.settle(at(60), [settlement(job)])

    assert reap(at(61)) == []
    assert stored(job.id).status == "complete"


def test_a_cancel_request_outlives_the_worker() -> None:
    job = running()
    operate.request_cancel(at(), job.id)
    reap(at(60))

    assert stored(job.id).cancel_requested_at == NOW


@pytest.mark.django_db(transaction=True)
def test_two_reapers_take_each_job_once() -> None:
    enqueue(30)
    claim()

    taken = [key for part in run_in_threads([lambda: reap(at(60))] * 2) for key, _ in part]

    assert len(taken) == len(set(taken)) == 30
    assert set(Job.objects.values_list("retry_count", flat=True)) == {1}
    assert JobError.objects.count() == 30


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_row_that_somebody_has_locked_is_left_for_later(
    other_connection: OtherConnection,
) -> None:
    locked, free = running(), running()

    def lock() -> None:
        transaction.set_autocommit(False)
        Job.objects.select_for_update().get(id=locked.id)

    other_connection.run(lock)

    assert reap(at(60)) == [(free.id, "pending")]
    other_connection.run(transaction.rollback)
    assert reap(at(60)) == [(locked.id, "pending")]
