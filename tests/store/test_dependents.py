"""When a job ends, however it ends, what depends on it moves in the same transaction."""

from uuid import UUID

import pytest
from django.db import transaction

from flexiq_django.models import Job, JobDependency
from flexiq_django.store import operate, settle
from flexiq_django.store.promote import cancel_expired
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import at, later
from tests.store.acting import (
    claim_one,
    enqueue_one,
    running,
    settlement,
    statuses,
    stored,
)

pytestmark = pytest.mark.django_db


def child_of(*parents: UUID, **fields: object) -> UUID:
    return enqueue_one(parents=parents, **fields)


def test_the_last_parent_releases_the_child_to_its_lane() -> None:
    first, second = running(), running()
    child = child_of(first.id, second.id, queue="mail", deployment_id="blue")

    settle.settle(at(1), [settlement(first)])
    assert stored(child).ready_lane is None

    settle.settle(at(2), [settlement(second)])
    row = stored(child)
    assert (row.status, row.ready_lane, row.promote_at) == ("pending", "mail\x1fblue", None)
    assert row.updated_at == later(2)
    assert not JobDependency.objects.filter(is_open=True).exists()


def test_parents_that_end_in_one_batch() -> None:
    first, second = running(), running()
    child = child_of(first.id, second.id)

    settle.settle(at(), [settlement(first), settlement(second)])

    assert stored(child).ready_lane == "default"


def test_a_child_that_is_not_due_is_scheduled() -> None:
    parent = running()
    child = child_of(parent.id, run_at=later(60))

    settle.settle(at(59), [settlement(parent)])

    row = stored(child)
    assert row.ready_lane is None
    assert row.promote_at == row.scheduled_at == later(60)


def test_a_child_whose_time_came_while_it_waited_is_ready() -> None:
    parent = running()
    child = child_of(parent.id, run_at=later(30))

    settle.settle(at(30), [settlement(parent)])

    assert stored(child).ready_lane == "default"


@pytest.mark.parametrize(
    ("status", "word"), [("dead", "failed"), ("failed", "failed"), ("cancelled", "cancelled")]
)
def test_a_bad_end_cancels_all_that_depends_on_it(status: str, word: str) -> None:
    parent = running()
    child = child_of(parent.id, result_ttl_ms=5_000, unique_key="k", expires_ms=99_000)
    grandchild = child_of(child)
    bystander = child_of(running().id)

    outcome = settle.settle(at(1), [settlement(parent, status, error="e")])

    assert sorted(outcome.cancelled) == sorted([child, grandchild])
    for key in (child, grandchild):
        row = stored(key)
        assert (row.status, row.error) == ("cancelled", f"dependency {word}: {parent.id}")
        assert row.completed_at == later(1)
        assert (row.ready_lane, row.promote_at, row.active_key, row.expires_at) == (None,) * 4
        assert row.started_at is None
    assert stored(child).purge_at == later(6)
    assert stored(bystander).status == "pending"


def test_a_retry_moves_nobody() -> None:
    parent = running()
    child = child_of(parent.id)

    outcome = settle.settle(at(), [settlement(parent, "pending", attempt_error="e")])

    assert outcome.cancelled == []
    assert (stored(child).status, stored(child).ready_lane) == ("pending", None)
    assert JobDependency.objects.get().is_open


def test_a_child_that_tolerates_failure_runs_when_all_have_ended() -> None:
    dead, fine = running(), running()
    child = child_of(dead.id, fine.id, allow_parent_failure=True)

    assert settle.settle(at(), [settlement(dead, "dead", error="e")]).cancelled == []
    assert stored(child).ready_lane is None
    settle.settle(at(), [settlement(fine)])

    assert stored(child).ready_lane == "default"


def test_a_tolerant_grandchild_of_a_cancelled_child_runs() -> None:
    parent = running()
    child = child_of(parent.id)
    tolerant = child_of(child, allow_parent_failure=True)

    settle.settle(at(), [settlement(parent, "dead", error="e")])

    assert statuses(child, tolerant) == ["cancelled", "pending"]
    assert stored(tolerant).ready_lane == "default"


def test_a_diamond_falls_once() -> None:
    root = running()
    left, right = child_of(root.id), child_of(root.id)
    bottom = child_of(left, right)

    outcome = settle.settle(at(), [settlement(root, "dead", error="e")])

    assert sorted(outcome.cancelled) == sorted([left, right, bottom])
    assert stored(bottom).error == f"dependency failed: {root.id}"


def test_one_bad_parent_of_several_is_enough() -> None:
    bad, slow = running(), running()
    child = child_of(bad.id, slow.id)

    settle.settle(at(), [settlement(bad, "dead", error="e")])
    assert stored(child).status == "cancelled"

    settle.settle(at(), [settlement(slow)])
    assert stored(child).status == "cancelled"
    assert stored(child).ready_lane is None


def test_a_good_and_a_bad_parent_in_one_batch() -> None:
    good, bad = running(), running()
    child = child_of(good.id, bad.id)

    outcome = settle.settle(at(), [settlement(good), settlement(bad, "dead", error="e")])

    assert outcome.cancelled == [child]
    assert stored(child).status == "cancelled"


def test_a_cancelled_child_is_not_brought_back() -> None:
    parent = running()
    child = child_of(parent.id)
    operate.cancel(at(), child)

    settle.settle(at(), [settlement(parent)])

    assert stored(child).status == "cancelled"


def test_a_cancel_falls_through() -> None:
    root = enqueue_one()
    child = child_of(root)
    grandchild = child_of(child)

    assert operate.cancel(at(), root) == [root, child, grandchild]

    assert stored(root).error is None
    assert stored(child).error == f"dependency cancelled: {root}"
    assert stored(grandchild).error == f"dependency cancelled: {root}"


def test_an_expiry_falls_through() -> None:
    root = enqueue_one(expires_ms=1_000)
    child = child_of(root)

    assert cancel_expired(at(1)).cancelled == [root, child]
    assert stored(child).error == f"dependency cancelled: {root}"


def test_a_long_chain_falls_to_its_end() -> None:
    root = running()
    last = root.id
    for _ in range(30):
        last = child_of(last)

    outcome = settle.settle(at(), [settlement(root, "dead", error="e")])

    assert len(outcome.cancelled) == 30
    assert stored(last).error == f"dependency failed: {root.id}"


def test_many_children_are_released_at_once() -> None:
    parent = running()
    children = [child_of(parent.id) for _ in range(50)]

    settle.settle(at(), [settlement(parent)])

    assert Job.objects.filter(id__in=children, ready_lane="default").count() == 50


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statuses_of_parents", [("complete", "complete"), ("complete", "dead")])
def test_two_parents_that_end_at_once_on_two_connections(
    statuses_of_parents: tuple[str, str],
) -> None:
    for _ in range(5):
        parents = [running(), running()]
        child = child_of(*(job.id for job in parents))
        ends = [
            settlement(job, status)
            for job, status in zip(parents, statuses_of_parents, strict=True)
        ]

        run_in_threads([lambda end=end: settle.settle(at(), [end]) for end in ends])

        released = statuses_of_parents == ("complete", "complete")
        assert stored(child).ready_lane == ("default" if released else None)
        assert stored(child).status == ("pending" if released else "cancelled")
        if released:
            assert claim_one().id == child


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_parent_that_is_ending_is_waited_for(other_connection: OtherConnection) -> None:
    first, second = running(), running()
    child = child_of(first.id, second.id)

    def end_and_hold() -> None:
        transaction.set_autocommit(False)
        settle.settle(at(), [settlement(first)])

    other_connection.run(end_and_hold)
    committed = other_connection.submit(transaction.commit)
    settle.settle(at(), [settlement(second)])
    committed.result(10)

    assert stored(child).ready_lane == "default"
