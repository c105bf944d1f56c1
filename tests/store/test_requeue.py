"""requeue: a running job goes back in line, out of the reach of the attempt that had it."""

from typing import Any

import pytest
from django.db import transaction

from flexiq_django.models import Job
from flexiq_django.store import lease, revive, settle
from flexiq_django.store.ids import new_id
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import JobFactory, TaskStateFactory, at, later
from tests.store.acting import claim, claim_one, running, settlement, stored

pytestmark = pytest.mark.django_db


def requeue(job_id: Any, seconds: float = 0, **limited: bool) -> bool:
    return revive.requeue(at(seconds), job_id, limited=limited)


def test_the_job_is_ready_at_once_and_keeps_what_it_has() -> None:
    job = JobFactory(
        running=True, queue="mail", deployment_id="blue", retry_count=2, progress=40, attempt=3,
        error="old", cancel_requested_at=later(1), unique_key="k", active_key="k",
        expires_at=later(99),
    )  # fmt: skip

    assert requeue(job.id, 5)

    row = stored(job.id)
    assert (row.status, row.ready_lane, row.promote_at) == ("pending", "mail\x1fblue", None)
    assert (row.scheduled_at, row.updated_at) == (later(5), later(5))
    assert (row.started_at, row.lease_at, row.token) == (None, None, None)
    assert (row.error, row.cancel_requested_at) == (None, None)
    assert (row.retry_count, row.max_retries, row.progress, row.attempt) == (2, 3, 40, 3)
    assert (row.active_key, row.expires_at, row.worker_id) == ("k", later(99), "worker-1")
    assert claim_one(at(5), deployment_id="blue").attempt == 4


@pytest.mark.parametrize(
    "state",
    [{}, {"scheduled": True}, {"waiting": True}, {"status": "paused", "ready_lane": None},
     {"ended": True}, {"ended": True, "status": "dead"}, {"ended": True, "status": "cancelled"},
     {"running": True, "namespace": "other"}],
    ids=str,
)  # fmt: skip
def test_no_other_job_is_requeued(state: dict[str, Any]) -> None:
    job = JobFactory(**state)
    before = Job.objects.values().get()

    assert not requeue(job.id)
    assert not requeue(new_id())
    assert Job.objects.values().get() == before


@pytest.mark.parametrize("end", [("complete", {}), ("pending", {"attempt_error": "e"}),
                                 ("dead", {"error": "e"}), ("cancelled", {})], ids=str)  # fmt: skip
def test_the_old_attempt_can_write_nothing_any_more(end: tuple[str, dict[str, Any]]) -> None:
    old = running()
    requeue(old.id)

    assert settle.settle(at(), [settlement(old, end[0], **end[1])]).lost == {old.id}
    assert lease.renew(at(), [(old.id, old.token)], lease_ms=1).owned == set()
    assert lease.release(at(), [old]) == set()
    new = claim_one()
    assert settle.settle(at(), [settlement(old, end[0], **end[1])]).lost == {old.id}
    assert settle.settle(at(), [settlement(new)]).settled == {old.id}


def test_a_limited_task_waits_in_its_own_lane() -> None:
    TaskStateFactory(name="app.stored", max_concurrent=1)
    lanes = {}
    for task in ("app.stored", "app.declared", "app.free", "app.lifted"):
        job = JobFactory(running=True, task_name=task)
        limited = {"app.declared": True, "app.lifted": False}
        assert revive.requeue(at(), job.id, limited=limited)
        lanes[task] = stored(job.id).ready_lane

    assert lanes == {
        "app.stored": "default\x1f\x1fapp.stored",
        "app.declared": "default\x1f\x1fapp.declared",
        "app.free": "default",
        "app.lifted": "default",
    }


def test_a_requeued_job_frees_its_slot() -> None:
    TaskStateFactory(name="app.tasks.work", max_concurrent=1)
    job = running(is_limited=True)
    JobFactory(ready_lane="default\x1f\x1fapp.tasks.work")
    assert claim() == []

    requeue(job.id)

    assert len(claim()) == 1


# --- at the same time -----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_requeue_and_settle_at_once_leave_one_verdict() -> None:
    for _ in range(20):
        job = running()
        requeued, outcome = run_in_threads(
            [
                lambda job=job: requeue(job.id),
                lambda job=job: settle.settle(at(), [settlement(job)]),
            ]
        )
        assert requeued is not bool(outcome.settled)
        assert stored(job.id).status == ("pending" if requeued else "complete")
        Job.objects.all().delete()


@pytest.mark.row_locks
@pytest.mark.django_db(transaction=True)
def test_a_requeue_waits_for_a_settlement_that_is_being_written(
    other_connection: OtherConnection,
) -> None:
    job = running()
    with transaction.atomic():
        settle.settle(at(), [settlement(job)])
        waiting = other_connection.submit(requeue, job.id)
        assert not waiting.done()

    assert waiting.result(30) is False
    assert stored(job.id).status == "complete"


@pytest.mark.django_db(transaction=True)
def test_two_who_requeue_at_once() -> None:
    job = running()

    assert sorted(run_in_threads([lambda: requeue(job.id)] * 2)) == [False, True]
