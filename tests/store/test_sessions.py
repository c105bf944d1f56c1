"""Sessions: one job at a time, in order, whatever ends the one before."""

from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from flexiq_django.models import Job
from flexiq_django.store import (
    figures,
    lease,
    operate,
    promote,
    purge,
    retention,
    revive,
    sessions,
    settle,
    steer,
)
from flexiq_django.store.enqueue import insert_jobs
from tests.factories import JobFactory, NewJobFactory, at, later
from tests.store.acting import claim, claim_one, enqueue, settlement, stored
from tests.store.lines import holders, in_line, line_up

pytestmark = pytest.mark.django_db
commits = pytest.mark.django_db(transaction=True)


def test_one_at_a_time_in_order_and_others_pass() -> None:
    first, second, third = line_up(3)
    (other,) = line_up(1, "S")
    (free,) = (job.id for job in enqueue(1))

    taken = claim()
    assert {job.id for job in taken} == {first, other, free}
    assert claim() == []
    assert in_line() == [second, third]
    assert figures.stats(at())["pending"] == 2
    assert holders() == {"S": other, "s": first}


def test_the_end_of_a_job_lets_the_next_go_and_says_so() -> None:
    first, second, third = line_up(3, queue="mail", deployment_id=None)
    (job,) = claim()

    outcome = settle.settle(at(), [settlement(job)])

    assert (job.id, outcome.released) == (first, 1)
    assert (stored(first).session_slot, stored(second).ready_lane) == (None, "mail")
    assert (holders(), in_line()) == ({"s": second}, [third])


def end_by(way: str, job_id: UUID) -> None:
    """End the job that holds the line."""
    if way == "cancelled":
        operate.cancel(at(), job_id)
    elif way == "purged":
        Job.objects.filter(id=job_id).update(queue="doomed")
        steer.cancel_pending(at(), error="purged", queue="doomed")
    elif way == "expired":
        Job.objects.filter(id=job_id).update(expires_at=later(-1))
        promote.cancel_expired(at())
    elif way == "reaped":
        claim()
        settle.reap(at(99), lambda lost: settlement(lost, "dead", error="e"))
    elif way == "rolled back":
        with transaction.atomic():
            operate.cancel(at(), job_id)
            transaction.set_rollback(True)
    else:
        job = claim_one()
        settle.settle(at(), [settlement(job, way, error="e")])


@pytest.mark.parametrize(
    "way", ["complete", "dead", "cancelled", "purged", "expired", "reaped", "rolled back"]
)
def test_whatever_ends_it(way: str) -> None:
    first, second = line_up(2)

    end_by(way, first)

    assert holders() == {"s": first if way == "rolled back" else second}
    assert [job.id for job in claim(limit=5)] == list(holders().values())


@pytest.mark.parametrize("way", ["retry", "later", "given back", "requeued", "paused"])
def test_a_job_that_has_not_ended_holds_the_line(way: str) -> None:
    first, _ = line_up(2)
    job = claim_one()
    if way == "given back":
        lease.release(at(), [job])
    elif way == "requeued":
        revive.requeue(at(), first, limited={})
    elif way == "paused":
        settle.settle(at(), [settlement(job, "paused", pause_reason="why")])
        assert claim() == []
        assert revive.continue_paused(at(), first, limited={})
    else:
        wait = 5_000 if way == "later" else 0
        settle.settle(at(), [settlement(job, "pending", attempt_error="e", wait_ms=wait)])
        if wait:
            assert claim() == []
            promote.promote_due(at(5))

    assert [job.id for job in claim(at(5))] == [first]
    assert holders() == {"s": first}


def test_a_paused_job_that_is_cancelled_lets_the_next_go() -> None:
    first, second = line_up(2)
    settle.settle(at(), [settlement(claim_one(), "paused", pause_reason="why")])

    operate.cancel(at(), first)

    assert holders() == {"s": second}


@commits
def test_jobs_enter_the_line_when_they_are_due_and_leave_it_when_cancelled() -> None:
    (late,) = line_up(1, delay_ms=10_000)
    (soon,) = line_up(1, delay_ms=5_000)
    (parent,) = enqueue(1)
    (child,) = line_up(1, parents=(parent.id,))
    assert (holders(), in_line()) == ({}, [])

    assert promote.promote_due(at(20))[0] == 2
    assert (holders(), in_line()) == ({"s": soon}, [late])
    (job,) = (job for job in claim(at(20)) if job.id == parent.id)
    settle.settle(at(20), [settlement(job)])
    assert in_line() == [child, late]  # the child has been due since it was stored
    assert operate.cancel(at(20), child) == [child]
    assert (holders(), in_line()) == ({"s": soon}, [late])


@commits
def test_what_deletes_a_parent_puts_its_child_into_line() -> None:
    (parent,) = enqueue(1)
    (child,) = line_up(1, parents=(parent.id,))
    Job.objects.filter(id=parent.id).update(
        status="complete", completed_at=later(-99), ready_lane=None
    )

    sweeps = retention.sweeps({"archived_jobs": 0})
    assert sum(retention.sweep_batch(at(), sweep).removed for sweep in sweeps) == 1

    assert holders() == {"s": child}


@commits
def test_namespaces_have_lines_of_their_own() -> None:
    (ours,) = line_up(1)
    other = NewJobFactory(session_id="s")
    insert_jobs(at(namespace="other"), [other])

    assert {ours, other.id} == set(
        Job.objects.filter(ready_lane__isnull=False).values_list("id", flat=True)
    )
    operate.cancel(at(), ours)
    assert stored(other.id).session_slot == "s"


@commits
def test_a_copy_enters_the_line_of_its_original() -> None:
    first, second = line_up(2)

    copy = revive.replay(at(), first, limited={})

    assert copy is not None
    assert in_line() == [second, copy.id]


def test_the_net_finds_a_line_that_nobody_holds() -> None:
    lost = [
        JobFactory(ready_lane=None, session_id=name, session_line=name) for name in ("a", "b", "c")
    ]

    after, moved = sessions.sweep(at(), "", limit=2)
    assert (after, moved) == ("b", 2)
    assert sessions.sweep(at(), after, limit=2) == ("", 1)
    assert sessions.sweep(at(), "", limit=2) == ("", 0)
    assert {job.id for job in claim()} == {job.id for job in lost}


def test_many_lines_move_with_as_few_statements_as_few() -> None:
    counts = []
    for count in (2, 60):
        names = [f"{count}-{number}" for number in range(count)]
        first = {name: line_up(2, name)[0] for name in names}
        # Half the lines are held; the next job of each is let go by who ends its holder.
        ended = [settlement(job) for job in claim(limit=count)]
        with CaptureQueriesContext(connection) as captured:
            assert settle.settle(at(), ended).released == count
        counts.append(len(captured))
        assert not set(first.values()) & set(holders().values())
        for job in claim(limit=count):
            settle.settle(at(), [settlement(job)])

        waiting = [
            JobFactory(ready_lane=None, session_id=name, session_line=name)
            for name in names[: count // 2]
        ]
        with CaptureQueriesContext(connection) as captured:
            assert sessions.look(at(), names) == len(waiting)
            assert sessions.look(at(), names) == 0
        counts.append(len(captured))
        assert holders() == {job.session_id: job.id for job in waiting}
        Job.objects.all().delete()

    assert counts[:2] == counts[2:]


def test_a_line_that_another_job_has_been_given_meanwhile_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line_up(1, "a")
    lost = {
        name: JobFactory(ready_lane=None, session_id=name, session_line=name).id for name in "abc"
    }
    unseen = sessions._holders
    calls = iter([{}])  # the first look does not see the holder yet
    monkeypatch.setattr(sessions, "_holders", lambda *given: next(calls, None) or unseen(*given))

    assert sessions.look(at(), "abc") == 2

    assert {name: holders()[name] for name in "bc"} == {name: lost[name] for name in "bc"}
    assert in_line() == [lost["a"]]


@pytest.mark.parametrize(
    "fields",
    [
        {"session_id": "s"},
        {"session_id": "s", "running": True},
        {"session_id": "s", "ready_lane": None, "status": "paused"},
        {"session_id": "s", "session_slot": "s", "ended": True},
        {"session_id": "s", "session_slot": "s", "session_line": "s", "ready_lane": None},
        {"session_id": "s", "session_line": "s"},
        {"session_slot": "s"},
    ],
    ids=str,
)
def test_the_database_refuses_what_no_session_can_be(fields: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError):
        JobFactory(**fields)


def test_purge_of_a_completed_holder_changes_nothing_for_the_next() -> None:
    line_up(2)
    job = claim_one()
    settle.settle(at(), [settlement(job)])
    held = holders()

    assert sum(purge.purge_completed(at(9), older_than_ms=1)) == 1
    assert holders() == held
