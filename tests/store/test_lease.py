"""Leases: renewed by their owner, given back unused, lost to nobody."""

from typing import Any

import pytest
from django.db import connection, transaction

from flexiq_django.models import Job
from flexiq_django.store import lease, settle, steer
from flexiq_django.store.ids import new_id
from tests.concurrency import OtherConnection
from tests.factories import NOW, ClaimedJobFactory, at, later
from tests.store.acting import claim, claim_one, enqueue, enqueue_one, running, settlement, stored

pytestmark = pytest.mark.django_db


def test_a_renewal_counts_from_now() -> None:
    jobs = [running(), running()]

    owned = lease.renew(at(30), [(job.id, job.token) for job in jobs], lease_ms=60_000).owned

    assert owned == {job.id for job in jobs}
    assert {stored(job.id).lease_at for job in jobs} == {later(90)}
    assert stored(jobs[0].id).updated_at == later(30)


def test_what_is_not_ours_is_missing_from_the_answer_and_left_alone() -> None:
    mine, theirs, ended, pending = running(), running(), running(), running()
    settle.settle(at(), [settlement(ended)])
    lease.release(at(), [pending])
    held = [
        (mine.id, mine.token),
        (theirs.id, theirs.token + 1),
        (ended.id, ended.token),
        (pending.id, pending.token),
        (new_id(), 1),
    ]

    assert lease.renew(at(30), held, lease_ms=60_000).owned == {mine.id}

    assert stored(theirs.id).lease_at == later(60)
    assert stored(ended.id).lease_at is None
    assert stored(pending.id).lease_at is None


def test_nothing_held_is_nothing_renewed() -> None:
    running()

    assert lease.renew(at(), [], lease_ms=1).owned == set()
    assert Job.objects.get().lease_at == later(60)


def test_many_leases_in_one_call() -> None:
    enqueue(300)
    jobs = claim(limit=300)

    owned = lease.renew(at(1), [(job.id, job.token) for job in jobs], lease_ms=60_000).owned

    assert len(owned) == 300
    assert Job.objects.filter(lease_at=later(61)).count() == 300


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_row_that_somebody_has_locked_delays_no_other_lease(
    other_connection: OtherConnection,
) -> None:
    locked, free = running(), running()
    stale = running()

    def lock() -> None:
        transaction.set_autocommit(False)
        list(Job.objects.select_for_update().filter(id__in=[locked.id, stale.id]))

    other_connection.run(lock)
    held = [(locked.id, locked.token), (free.id, free.token), (stale.id, stale.token + 1)]

    renewed = lease.renew(at(30), held, lease_ms=60_000)
    assert renewed == ({locked.id, free.id}, {free.id})

    other_connection.run(transaction.rollback)
    assert stored(free.id).lease_at == later(90)
    assert stored(locked.id).lease_at == later(60)


@pytest.mark.parametrize("limited", ["queue", "task"])
def test_a_lease_that_ran_out_under_a_limit_is_not_renewed(limited: str) -> None:
    free = running(queue="free", task_name="app.free")
    if limited == "queue":
        steer.set_queue(at(), "one", max_concurrent=1)
    else:
        steer.declare_limits(at(), {"app.one": {"max_concurrent": 1}})
    enqueue(2, queue="one", task_name="app.one")
    (frozen,) = claim(at(), lease_ms=10_000)
    (taken,) = claim(at(11), lease_ms=10_000)  # the place was free again

    held = [(job.id, job.token) for job in (free, frozen, taken)]
    assert lease.renew(at(70), held, lease_ms=10_000).owned == {free.id}

    assert stored(frozen.id).lease_at == later(10)
    # Its result still counts, as long as nobody else has the job.
    assert settle.settle(at(71), [settlement(frozen)]).settled == {frozen.id}


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_lease_that_is_said_to_be_longer_is(other_connection: OtherConnection) -> None:
    job = running(queue="one")
    limits = iter([lambda: steer.set_queue(at(), "one", max_concurrent=1)])

    def limit_first(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE"):
            for set_limit in limits:
                other_connection.run(set_limit)
        return execute(sql, *rest)

    with connection.execute_wrapper(limit_first):
        renewed = lease.renew(at(70), [(job.id, job.token)], lease_ms=60_000)

    # The limit came before or after, but not in between.
    assert (job.id in renewed.extended) == (stored(job.id).lease_at == later(130))
    assert next(limits, None) is None


def test_a_job_given_back_is_as_if_never_claimed() -> None:
    first = enqueue_one(priority=1)
    second = enqueue_one()
    job = claim_one(at(5))

    assert lease.release(at(6), [job]) == {first}

    row = stored(first)
    assert (row.status, row.ready_lane, row.attempt) == ("pending", "default", 0)
    assert (row.token, row.lease_at, row.started_at, row.worker_id) == (None, None, None, None)
    assert row.scheduled_at == NOW
    assert [job.id for job in claim(at(7))] == [first, second]


def test_a_job_given_back_goes_to_its_own_lane() -> None:
    key = enqueue_one(queue="mail", deployment_id="blue")
    lease.release(at(), [claim_one(deployment_id="blue")])

    assert stored(key).ready_lane == "mail\x1fblue"


def test_a_retry_given_back_keeps_its_count() -> None:
    key = enqueue_one()
    settle.settle(at(), [settlement(claim_one(), "pending", attempt_error="e")])
    lease.release(at(1), [claim_one(at(1))])

    row = stored(key)
    assert (row.retry_count, row.attempt) == (1, 1)


def test_only_the_owner_gives_back() -> None:
    job = running()
    stale = job._replace(token=job.token + 1)

    assert lease.release(at(), [stale, ClaimedJobFactory()]) == set()
    assert stored(job.id).status == "running"

    settle.settle(at(), [settlement(job)])
    assert lease.release(at(), [job]) == set()
    assert stored(job.id).status == "complete"


def test_giving_back_nothing() -> None:
    assert lease.release(at(), []) == set()


# --- claims whose answer was lost -----------------------------------------------------------------


def test_jobs_of_a_claim_whose_answer_was_lost_are_found_and_given_back() -> None:
    enqueue(4)
    known = claim(limit=1)
    lost = claim(at(1), limit=2)
    claim(limit=1, worker_id="another")

    everything = {job.id for job in lease.unknown(at(2), "worker-1", ())}
    assert everything == {job.id for job in (*known, *lost)}
    lately = lease.unknown(at(2), "worker-1", (), within_ms=1_500)
    assert {job.id for job in lately} == {job.id for job in lost}
    found = lease.unknown(at(2), "worker-1", {(job.id, job.token) for job in known})
    assert {(job.id, job.token) for job in found} == {(job.id, job.token) for job in lost}
    lease.release(at(2), found)

    again = claim(at(3), limit=9)
    assert sorted(job.id for job in again) == sorted(job.id for job in lost)
    assert {job.attempt for job in again} == {1}
    assert lease.unknown(at(4), "nobody", set()) == []
