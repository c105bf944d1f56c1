"""Sessions: several who add to, end and look at the same lines at once."""

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection, transaction

from flexiq_django.models import Job
from flexiq_django.store import (
    link,
    operate,
    promote,
    sessions,
    settle,
)
from flexiq_django.store.enqueue import insert_jobs
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import JobFactory, NewJobFactory, at
from tests.store.acting import claim, claim_one, enqueue, settlement
from tests.store.lines import holders, in_line, line_up
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db
commits = pytest.mark.django_db(transaction=True)


@commits
def test_the_end_of_a_holder_and_the_next_that_is_enqueued_at_once() -> None:
    for _ in range(15):
        line_up(1)
        job = claim_one()
        ends = settlement(job)

        _, (after,) = run_in_threads(
            [lambda ends=ends: settle.settle(at(), [ends]), lambda: line_up(1)]
        )

        assert holders() == {"s": after}
        Job.objects.all().delete()


@commits
def test_many_who_enqueue_into_an_empty_line() -> None:
    for _ in range(10):
        stored_ids = run_in_threads([lambda: line_up(1)[0]] * 3)

        assert len(holders()) == 1
        assert {*holders().values(), *in_line()} == set(stored_ids)
        assert len(claim()) == 1
        Job.objects.all().delete()


@commits
def test_many_who_enqueue_into_many_lines_while_their_holders_end() -> None:
    names = [f"s{number}" for number in range(6)]
    for _ in range(5):
        stored_ids = {name: set(line_up(1, name)) for name in names}
        ends = [settlement(job) for job in claim()]

        def add() -> list[tuple[str, UUID]]:
            jobs = [NewJobFactory(session_id=name) for name in names]
            insert_jobs(at(), jobs)
            return [(job.session_id, job.id) for job in jobs]

        _, *added = run_in_threads([lambda ends=ends: settle.settle(at(), ends), add, add])

        for name, key in [pair for pairs in added for pair in pairs]:
            stored_ids[name].add(key)
        assert sorted(holders()) == names
        for name in names:
            held, waits = holders()[name], set(in_line()) & stored_ids[name]
            assert held in stored_ids[name] - {end.job_id for end in ends}
            assert len(waits) == 1
        Job.objects.all().delete()


@commits
def test_a_cancel_of_the_holder_and_a_claim_at_once() -> None:
    for _ in range(15):
        first, second = line_up(2)

        cancelled, claimed = run_in_threads(
            [
                lambda first=first: [str(key) for key in operate.cancel(at(), first)],
                lambda: [str(job.id) for job in claim()],
            ]
        )

        assert holders() == {"s": second if cancelled else first}
        assert claimed in ([], [str(first)], [str(second)])
        assert not (cancelled and claimed == [str(first)])
        Job.objects.all().delete()


@pytest.mark.row_locks
@commits
def test_nobody_waits_for_a_callers_open_transaction(other_connection: OtherConnection) -> None:
    with transaction.atomic():
        ours = NewJobFactory(session_id="s")
        insert_jobs(at(), [ours])
        (theirs,) = other_connection.run(line_up, 1)
        assert [job.id for job in other_connection.run(claim)] == [theirs]

    assert (holders(), in_line()) == ({"s": theirs}, [ours.id])


@pytest.mark.row_locks
@commits
def test_a_look_waits_for_the_end_of_a_holder_that_is_being_written(
    other_connection: OtherConnection,
) -> None:
    (first,) = line_up(1)
    act: Callable[[], list[UUID]] = lambda: line_up(1)  # noqa: E731
    with transaction.atomic():
        operate.cancel(at(), first)
        waiting = other_connection.submit(act)
    (second,) = waiting.result(30)

    assert holders() == {"s": second}


@pytest.mark.row_locks
@commits
@pytest.mark.parametrize("commits_at_last", [True, False])
def test_who_enqueues_does_not_wait_for_a_caller_that_takes_its_time(
    commits_at_last: bool, other_connection: OtherConnection
) -> None:
    (first,) = line_up(1)
    with transaction.atomic():
        operate.cancel(at(), first)
        # They come back while we still hold the row of the first.
        (second,) = other_connection.submit(line_up, 1).result(30)
        (far,) = other_connection.submit(line_up, 1, delay_ms=1_000).result(30)
        other_connection.submit(promote.promote_due, at(2)).result(30)
        transaction.set_rollback(not commits_at_last)

    assert holders() == {"s": second if commits_at_last else first}
    for job in claim():
        settle.settle(at(), [settlement(job)])
    assert holders() == {"s": far if commits_at_last else second}


@pytest.mark.row_locks
@commits
@pytest.mark.parametrize("commits", [True, False])
def test_a_settlement_does_not_wait_for_who_cancels_the_next_in_line(
    other_connection: OtherConnection, commits: bool
) -> None:
    first, second, third = line_up(3)
    job = claim_one()
    theirs = transaction.atomic()

    def cancel() -> None:
        theirs.__enter__()
        operate.cancel(at(), second)

    def end() -> None:
        transaction.set_rollback(not commits)
        theirs.__exit__(None, None, None)

    other_connection.run(cancel)
    outcome = settle.settle(at(), [settlement(job)])
    assert outcome.settled == {first}
    assert (holders(), outcome.released) == ({}, 1)  # the worker looks at the line again, soon

    other_connection.run(end)
    if not commits:
        assert sessions.sweep(at(), "") == ("", 1)
    assert holders() == {"s": third if commits else second}


@pytest.mark.row_locks
@commits
def test_a_look_passes_over_a_head_that_somebody_has_locked(
    other_connection: OtherConnection,
) -> None:
    lost = {
        name: JobFactory(ready_lane=None, session_id=name, session_line=name).id for name in "ab"
    }

    def lock() -> None:
        transaction.set_autocommit(False)
        list(Job.objects.select_for_update().filter(id=lost["a"]))

    other_connection.run(lock)
    assert sessions.look(at(), "ab") == 1
    assert holders() == {"b": lost["b"]}

    other_connection.run(transaction.rollback)
    assert sessions.sweep(at(), "") == ("", 1)
    assert holders() == lost


@pytest.mark.row_locks
@commits
def test_a_look_at_many_lines_holds_up_nobody_while_it_waits_for_one(
    other_connection: OtherConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    (busy,), (free,) = line_up(1, "busy"), line_up(1, "free")
    waits, look_once, looks = threading.Event(), sessions._look, []

    def note(*given: Any) -> Any:
        looks.append(given)
        if len(looks) > 1:
            waits.set()
        return look_once(*given)

    monkeypatch.setattr(sessions, "_look", note)
    monkeypatch.setattr(sessions, "_HOLDER_PATIENCE", 60.0)
    added = [NewJobFactory(session_id=name) for name in ("busy", "free")]
    with transaction.atomic():
        operate.cancel(at(), busy)
        looking = other_connection.submit(insert_jobs, at(), added)
        assert waits.wait(30)
        # A look that still had this row would now be in a deadlock with us.
        assert Job.objects.select_for_update().get(id=free).session_slot == "free"
        assert not looking.done()
    looking.result(30)

    assert holders() == {"busy": added[0].id, "free": free}


@commits
def test_a_look_outlasts_another_writer(vendor: str, other_connection: OtherConnection) -> None:
    if vendor != "sqlite":
        pytest.skip("elsewhere writers do not refuse each other")
    lost = JobFactory(ready_lane=None, session_id="s", session_line="s")
    refused: list[BaseException] = []

    def look_as_a_worker_does() -> int:
        link.set_up(at(), 20)
        with connection.execute_wrapper(note_refusals):
            return sessions.look(at(), ["s"])

    def note_refusals(execute: Any, *statement: Any) -> Any:
        try:
            return execute(*statement)
        except OperationalError as error:
            refused.append(error)
            raise

    with transaction.atomic():
        enqueue(1)
        looking = other_connection.submit(look_as_a_worker_does)
        wait_until(lambda: len(refused) > 25 or looking.done())

    assert looking.result(30) == 1
    assert holders() == {"s": lost.id}
