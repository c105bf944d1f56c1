"""claim and promote on several connections: no job twice, and nobody waits for a lock."""

from contextlib import AbstractContextManager
from uuid import UUID

import pytest
from django.db import connections, transaction

from flexiq_django.models import Job
from flexiq_django.store.promote import promote_due
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import at
from tests.store.acting import claim, enqueue, enqueue_one
from tests.testapp.models import Mark

pytestmark = pytest.mark.django_db(transaction=True)


def atomic() -> AbstractContextManager[None]:
    return transaction.atomic()


@pytest.mark.parametrize("queues", [1, 4])
@pytest.mark.row_locks
def test_connections_that_claim_at_once_share_no_job(queues: int) -> None:
    for number in range(queues):
        enqueue(60 // queues, queue=f"q{number}")

    def drain() -> list[UUID]:
        found: list[UUID] = []
        while jobs := claim(limit=3):
            found += [job.id for job in jobs]
        return found

    claimed = [key for part in run_in_threads([drain] * 4) for key in part]

    assert len(claimed) == len(set(claimed)) == 60
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}


@pytest.mark.row_locks
def test_a_head_that_somebody_has_locked_blocks_nobody(other_connection: OtherConnection) -> None:
    first, second = (job.id for job in enqueue(2))

    def lock() -> None:
        transaction.set_autocommit(False)
        Job.objects.select_for_update().get(id=first)

    other_connection.run(lock)

    assert [job.id for job in claim()] == [second]
    other_connection.run(transaction.rollback)
    assert [job.id for job in claim()] == [first]


@pytest.mark.row_locks
def test_a_claim_that_is_not_committed_is_not_seen_and_not_waited_for(
    other_connection: OtherConnection,
) -> None:
    keys = [job.id for job in enqueue(4, queue="a")]
    other_key = enqueue_one(queue="b")

    def claim_and_hold() -> list[UUID]:
        transaction.set_autocommit(False)
        return [job.id for job in claim(limit=2)]

    held = other_connection.run(claim_and_hold)
    mine = [job.id for job in claim()]
    other_connection.run(transaction.rollback)
    again = [job.id for job in claim()]

    assert held == keys[:2]
    # The plan over two lanes counts what others hold; what it misses comes with the next claim.
    assert set(mine) <= {*keys[2:], other_key}
    assert other_key in mine
    assert sorted([*mine, *again]) == sorted([*keys, other_key])


@pytest.mark.row_locks
def test_a_locked_job_is_promoted_later(other_connection: OtherConnection) -> None:
    first, second = (job.id for job in enqueue(2, delay_ms=1_000))

    def lock() -> None:
        transaction.set_autocommit(False)
        Job.objects.select_for_update().get(id=first)

    other_connection.run(lock)

    assert promote_due(at(2))[0] == 1
    assert [job.id for job in claim(at(2))] == [second]
    other_connection.run(transaction.rollback)
    assert promote_due(at(2)) == (1, None)


@pytest.mark.row_locks
def test_two_that_promote_at_once_move_each_job_once() -> None:
    enqueue(40, delay_ms=1_000)

    moved = run_in_threads([lambda: promote_due(at(2))[0]] * 2)

    assert sum(moved) == 40
    assert Job.objects.filter(ready_lane="default", promote_at=None).count() == 40


def test_a_claim_inside_a_callers_transaction_ends_with_it() -> None:
    enqueue_one()
    with atomic():
        Mark.objects.create(key="k")
        assert len(claim()) == 1
        transaction.set_rollback(True)

    assert Job.objects.get().status == "pending"
    assert Job.objects.get().attempt == 0
    assert len(claim()) == 1


def test_a_claim_leaves_no_transaction_open() -> None:
    enqueue_one(queue="a")
    enqueue_one(queue="b")
    claim()

    connection = connections["default"]
    assert not connection.in_atomic_block
    assert connection.get_autocommit()
