"""grant of a job whose parents have not all ended: it goes on without them."""

from uuid import UUID

import pytest
from django.db import transaction

from flexiq_django.models import Job, JobDependency
from flexiq_django.store import operate, settle
from flexiq_django.store.grant import grant
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import JobDependencyFactory, JobFactory, at
from tests.store.acting import claim, claim_one, enqueue_one, settlement, stored

pytestmark = pytest.mark.django_db


def give(job_id: UUID) -> None:
    grant(at(), job_id, limited={"app.tasks.work": False}, clear_cancellation=True)


def fallen_child() -> tuple[UUID, UUID]:
    """A job that was cancelled with one of its two parents, and the parent that is left."""
    lost, left = enqueue_one(), enqueue_one()
    child = enqueue_one(parents=(lost, left))
    assert operate.cancel(at(), lost) == [lost, child]
    return child, left


def test_a_parent_that_fails_later_cancels_it_no_more() -> None:
    child, left = fallen_child()
    give(child)
    assert not JobDependency.objects.filter(job_id=child, is_open=True).exists()

    assert operate.cancel(at(), left) == [left]

    assert [job.id for job in claim()] == [child]


@pytest.mark.django_db(transaction=True)
def test_a_parent_that_fails_at_the_same_moment_cancels_it_no_more() -> None:
    for _ in range(10):
        child, left = fallen_child()

        def fail(left: UUID = left) -> None:
            operate.cancel(at(), left)

        run_in_threads([lambda child=child: give(child), fail])

        assert stored(child).status == "pending"
        Job.objects.all().delete()


@pytest.mark.row_locks
@pytest.mark.django_db(transaction=True)
def test_a_parent_that_waited_for_the_grant_sees_what_it_said(
    other_connection: OtherConnection,
) -> None:
    child, left = fallen_child()
    with transaction.atomic():
        give(child)
        failing = other_connection.submit(operate.cancel, at(), left)
        # It has read the edge while that was open, or will; either way it waits for the child.

    assert failing.result(30) == [left]
    assert stored(child).status == "pending"


def test_a_dependent_that_holds_a_line_hands_it_on_when_it_falls() -> None:
    parent = enqueue_one()
    job = claim_one()
    holder = JobFactory(session_id="s", session_slot="s")
    behind = JobFactory(ready_lane=None, session_id="s", session_line="s")
    JobDependencyFactory(job_id=holder.id, parent_id=parent)

    outcome = settle.settle(at(), [settlement(job, "dead", error="E")])

    assert (outcome.cancelled, outcome.released) == ([holder.id], 1)
    assert stored(behind.id).session_slot == "s"
