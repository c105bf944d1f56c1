"""settle: only the owner's end of an attempt counts, and it counts once."""

from typing import Any

import pytest
from django.db import connections, transaction

from flexiq_django.core.records import Settlement
from flexiq_django.exceptions import LeaseLost
from flexiq_django.models import DeadLetter, Job, JobError, TaskMetric
from flexiq_django.store import lease, operate
from flexiq_django.store.ids import new_id
from flexiq_django.store.settle import Settled, settle, together
from tests.concurrency import run_in_threads
from tests.factories import SettlementFactory, at
from tests.store.acting import (
    claim,
    claim_one,
    enqueue,
    enqueue_one,
    running,
    settlement,
    stored,
)
from tests.testapp.models import Mark

pytestmark = pytest.mark.django_db

ENDS: list[dict[str, Any]] = [
    {"status": "complete", "result": "1", "duration_ms": 1.0, "succeeded": True},
    {"status": "pending", "attempt_error": "e", "duration_ms": 1.0},
    {"status": "pending", "attempt_error": "e", "wait_ms": 5_000},
    {"status": "dead", "error": "e", "attempt_error": "e", "duration_ms": 1.0},
    {"status": "cancelled", "error": "e"},
]
every_end = pytest.mark.parametrize("end", ENDS, ids=lambda end: "-".join(map(str, end.values())))


def nothing_was_written() -> bool:
    tables = (JobError, DeadLetter, TaskMetric)
    return not any(table.objects.exists() for table in tables)


@every_end
def test_a_wrong_token_changes_nothing(end: dict[str, Any]) -> None:
    job = running()
    before = Job.objects.values().get()

    outcome = settle(at(9), [settlement(job._replace(token=job.token ^ 1), **end)])

    assert outcome == Settled(lost=frozenset({job.id}))
    assert Job.objects.values().get() == before
    assert nothing_was_written()


@every_end
def test_a_late_owner_changes_nothing(end: dict[str, Any]) -> None:
    job = running()
    lease.release(at(1), [job])
    new_owner = claim_one(at(2))
    before = Job.objects.values().get()

    assert settle(at(9), [settlement(job, **end)]).lost == {job.id}
    assert Job.objects.values().get() == before
    assert nothing_was_written()
    assert settle(at(9), [settlement(new_owner, **end)]).settled == {job.id}


@every_end
def test_a_job_that_is_not_running_is_not_settled(end: dict[str, Any]) -> None:
    job = running()
    settle(at(1), [settlement(job, "cancelled", error="first")])
    if end["status"] == "cancelled":
        return  # that would be a repeat
    before = Job.objects.values().get()

    assert settle(at(9), [settlement(job, **end)]).lost == {job.id}
    assert Job.objects.values().get() == before
    assert nothing_was_written()


def test_an_unknown_job_is_lost() -> None:
    unknown = SettlementFactory(job_id=new_id())

    assert settle(at(), [unknown]).lost == {unknown.job_id}


def test_the_fence_judges_each_job_of_a_batch_alone() -> None:
    enqueue(3)
    mine, stale, also_mine = claim()

    outcome = settle(
        at(),
        [
            settlement(mine, duration_ms=1.0),
            settlement(stale._replace(token=1), duration_ms=1.0),
            settlement(also_mine, "dead", error="e", attempt_error="e", duration_ms=1.0),
        ],
    )

    assert outcome.settled == {mine.id, also_mine.id}
    assert outcome.lost == {stale.id}
    assert stored(stale.id).status == "running"
    assert set(TaskMetric.objects.values_list("job_id", flat=True)) == {mine.id, also_mine.id}


@every_end
def test_a_repeat_is_settled_and_writes_nothing_twice(end: dict[str, Any]) -> None:
    job = running()
    child = enqueue_one(parents=(job.id,))
    first = settle(at(1), [settlement(job, **end)])
    tables = (Job, JobError, DeadLetter, TaskMetric)
    before = [list(table.objects.order_by("id").values()) for table in tables]

    again = settle(at(9), [settlement(job, **end)])

    assert first.settled == again.settled == {job.id}
    assert again.lost == frozenset()
    assert again.cancelled == []
    assert [list(table.objects.order_by("id").values()) for table in tables] == before
    assert stored(child).attempt == 0


def test_a_repeat_among_others_is_told_apart() -> None:
    enqueue(3)
    done, fresh, lost = claim()
    settle(at(), [settlement(done)])

    outcome = settle(
        at(), [settlement(done), settlement(fresh), settlement(lost._replace(token=5))]
    )

    assert outcome.settled == {done.id, fresh.id}
    assert outcome.lost == {lost.id}


def test_a_repeat_of_a_retry_that_runs_again_is_lost() -> None:
    job = running()
    retry = settlement(job, "pending", attempt_error="e")
    settle(at(), [retry])
    claim_one()

    assert settle(at(), [retry]).lost == {job.id}
    assert stored(job.id).retry_count == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_batch_on_two_connections_counts_once() -> None:
    enqueue(20)
    batch = [settlement(job, duration_ms=1.0, succeeded=True) for job in claim()]

    outcomes = run_in_threads([lambda: settle(at(), batch), lambda: settle(at(), batch[::-1])])

    assert [len(outcome.settled) for outcome in outcomes] == [20, 20]
    assert TaskMetric.objects.count() == 20


# --- a body that commits together with its completion ---------------------------------------------


def run_together(ends: Settlement | None = None, failure: Exception | None = None) -> None:
    """A body that writes something, and then completes its job, or fails, or both."""
    with together(at(), lambda: None) as complete:
        Mark.objects.create(key="body")
        if ends is not None:
            complete(ends)
        if failure is not None:
            raise failure


@pytest.mark.django_db(transaction=True)
def test_body_and_completion_commit_together() -> None:
    job = running()

    run_together(settlement(job, result="1"))

    assert Mark.objects.count() == 1
    assert stored(job.id).status == "complete"
    assert not connections["default"].in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_a_lost_lease_takes_back_what_the_body_wrote() -> None:
    job = running()

    with pytest.raises(LeaseLost):
        run_together(settlement(job._replace(token=job.token ^ 1)))

    assert Mark.objects.count() == 0
    assert stored(job.id).status == "running"


@pytest.mark.django_db(transaction=True)
def test_a_failing_body_leaves_the_job_to_be_settled_otherwise() -> None:
    job = running()

    with pytest.raises(ValueError, match="bad"):
        run_together(failure=ValueError("bad"))

    assert Mark.objects.count() == 0
    assert settle(at(), [settlement(job, "dead", error="bad")]).settled == {job.id}


@pytest.mark.django_db(transaction=True)
def test_children_of_a_completion_that_is_rolled_back_still_wait() -> None:
    job = running()
    child = enqueue_one(parents=(job.id,))

    with pytest.raises(RuntimeError, match="after"):
        run_together(settlement(job), RuntimeError("after"))

    assert stored(child).ready_lane is None
    assert stored(job.id).status == "running"


def test_settling_inside_a_callers_transaction_ends_with_it() -> None:
    job = running()
    with transaction.atomic():
        settle(at(), [settlement(job)])
        transaction.set_rollback(True)

    assert stored(job.id).status == "running"
    assert operate.request_cancel(at(), job.id)
