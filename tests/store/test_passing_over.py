"""What chores call passes over rows that a caller's open transaction holds; the rest goes on.

A verb that waited would fail here by the deadline: the holder lets go only after it has answered.
"""

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, models, transaction

from flexiq_django.models import DeadLetter, Job, JobDependency, TaskState
from flexiq_django.store import dependencies, operate, promote, revive, settle
from tests.concurrency import OtherConnection
from tests.factories import (
    DeadLetterFactory,
    JobDependencyFactory,
    JobFactory,
    TaskStateFactory,
    at,
    later,
)
from tests.store.acting import claim, enqueue, enqueue_one, running, settlement, stored
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.row_locks]

DEADLINE = 20.0


class Caller:
    """A view under atomic() on a connection of its own."""

    def __init__(self, other: OtherConnection) -> None:
        self._connection = other

    def holds(self, model: type[models.Model], *keys: Any) -> None:
        """Lock rows, until the end."""

        def lock() -> None:
            if transaction.get_autocommit():
                transaction.set_autocommit(False)
            list(model.objects.select_for_update().filter(pk__in=keys))

        self._connection.run(lock)

    def does(self, act: Callable[[], Any]) -> None:
        """Do something, and not commit it before the end."""

        def begin() -> None:
            transaction.set_autocommit(False)
            act()

        self._connection.run(begin)

    def ends(self, *, commits: bool = False) -> None:
        """Let go."""
        self._connection.run(transaction.commit if commits else transaction.rollback)


@pytest.fixture
def caller(other_connection: OtherConnection) -> Caller:
    """Somebody with an open transaction."""
    return Caller(other_connection)


@pytest.fixture
def chore() -> Any:
    """Calls a verb on a third connection, with a deadline."""
    third = OtherConnection()
    yield lambda verb: third.submit(verb).result(DEADLINE)
    third.close()


# --- expiry ---------------------------------------------------------------------------------------


def test_jobs_that_a_caller_holds_expire_later_and_hide_no_other(
    caller: Caller, chore: Any
) -> None:
    held = [enqueue_one(expires_ms=1) for _ in range(3)]
    free = enqueue_one(expires_ms=2)
    caller.holds(Job, *held)

    assert chore(lambda: promote.cancel_expired(at(1), limit=2)) == ([free], 0, 0)
    assert chore(lambda: promote.cancel_expired(at(1), limit=2)) == ([], 0, 1)
    caller.ends()

    assert chore(lambda: promote.cancel_expired(at(1))) == (sorted(held), 0, 0)


@pytest.mark.parametrize("commits", [True, False])
def test_a_dependent_that_a_caller_holds_falls_later(
    commits: bool, caller: Caller, chore: Any
) -> None:
    parent = enqueue_one(expires_ms=1)
    held, free = enqueue_one(parents=(parent,)), enqueue_one(parents=(parent,))
    below = enqueue_one(parents=(held,))
    caller.does(lambda: operate.cancel(at(), held))

    assert chore(lambda: promote.cancel_expired(at(1))) == ([parent, free], 0, 1)
    assert chore(lambda: dependencies.sweep_ended(at(1), 0)) == (0, ([], 0, 1))
    caller.ends(commits=commits)

    _, moved = chore(lambda: dependencies.sweep_ended(at(1), 0))
    assert moved == ([] if commits else [held, below], 0, 0)
    assert {stored(key).status for key in (held, below)} == {"cancelled"}
    assert not JobDependency.objects.filter(is_open=True).exists()


# --- dependents -----------------------------------------------------------------------------------


def test_the_net_passes_over_a_dependent_that_a_caller_holds(caller: Caller, chore: Any) -> None:
    ended = JobFactory(ended=True)
    children = [JobFactory(waiting=True).id for _ in range(2)]
    for child in children:
        JobDependencyFactory(job_id=child, parent_id=ended.id)
    caller.holds(Job, children[0])

    assert chore(lambda: dependencies.sweep_ended(at(), 0)) == (0, ([], 1, 1))
    assert stored(children[1]).ready_lane == "default"
    caller.ends()

    assert chore(lambda: dependencies.sweep_ended(at(), 0)) == (0, ([], 1, 0))
    assert stored(children[0]).ready_lane == "default"


def test_the_edge_of_a_dependent_that_is_gone_is_closed(chore: Any) -> None:
    JobDependencyFactory(job_id=JobFactory.build().id, parent_id=JobFactory(ended=True).id)

    assert chore(lambda: dependencies.sweep_ended(at(), 0)) == (0, ([], 0, 0))
    assert not JobDependency.objects.filter(is_open=True).exists()


# --- the reaper -----------------------------------------------------------------------------------


def reap(**changes: Any) -> tuple[list[UUID], int]:
    settlements, outcome = settle.reap(
        at(60), lambda job: settlement(job, "dead", error="lost", **changes)
    )
    return [each.job_id for each in settlements], outcome.passed_over


def test_a_lost_job_does_not_wait_for_its_dependent(caller: Caller, chore: Any) -> None:
    lost = running()
    child = enqueue_one(parents=(lost.id,))
    caller.holds(Job, child)

    assert chore(reap) == ([lost.id], 1)
    caller.ends()

    assert chore(lambda: dependencies.sweep_ended(at(60), 0)) == (0, ([child], 0, 0))


def test_a_retry_budget_that_a_caller_holds_stops_only_those_it_pays_for(
    caller: Caller, chore: Any
) -> None:
    state = TaskStateFactory(name="app.budgeted", retry_budget="5/m")
    enqueue(1, task_name="app.budgeted")
    enqueue(1, task_name="app.other")
    by_task = {job.task_name: job.id for job in claim()}
    caller.holds(TaskState, state.pk)

    def lose() -> tuple[list[UUID], int]:
        settlements, outcome = settle.reap(
            at(60),
            lambda job: settlement(
                job, "pending", attempt_error="lost", is_budgeted=job.task_name == "app.budgeted"
            ),
        )
        return [each.job_id for each in settlements], outcome.passed_over

    assert chore(lose) == ([by_task["app.other"]], 0)
    assert chore(lose) == ([], 1)
    caller.ends()

    assert chore(lose) == ([by_task["app.budgeted"]], 0)


def test_jobs_under_a_held_budget_hide_no_other_however_many(caller: Caller, chore: Any) -> None:
    states = [TaskStateFactory(name=f"app.budgeted{n}", retry_budget="5/m") for n in range(2)]
    for state in states:
        enqueue(3, task_name=state.name)
    assert len(claim()) == 6
    enqueue(1, task_name="app.other")
    (other,) = claim(at(1))
    caller.holds(TaskState, *(state.pk for state in states))

    def lose() -> list[UUID]:
        settlements, _ = settle.reap(
            at(61),
            lambda job: settlement(
                job, "pending", attempt_error="lost", is_budgeted=job.id != other.id
            ),
            limit=3,
        )
        return [each.job_id for each in settlements]

    assert chore(lose) == [other.id]


def test_lost_jobs_that_a_caller_holds_are_told_of(caller: Caller, chore: Any) -> None:
    lost = running()
    caller.holds(Job, lost.id)

    assert chore(reap) == ([], 1)


# --- dead letters ---------------------------------------------------------------------------------


def test_letters_that_a_caller_holds_are_retried_later_and_hide_no_other(
    caller: Caller, chore: Any
) -> None:
    held = [DeadLetterFactory(auto_retry_at=later(-1)).pk for _ in range(3)]
    free = DeadLetterFactory(auto_retry_at=later(0)).pk
    caller.holds(DeadLetter, *held)

    assert chore(lambda: revive.due_letters(at(1), limit=2)) == [free]
    retried = chore(lambda: revive.retry_due(at(1), [*held, free], most=9, limited={}))
    assert list(retried.jobs) == [free]
    assert chore(lambda: revive.due_letters(at(1))) == []
    assert chore(lambda: revive.seconds_until_due(at(1))) == 0
    caller.ends()

    assert sorted(chore(lambda: revive.due_letters(at(1)))) == sorted(held)


# --- people wait ----------------------------------------------------------------------------------


def test_who_retries_a_letter_by_hand_waits_for_it(caller: Caller) -> None:
    letter = DeadLetterFactory().pk
    caller.holds(DeadLetter, letter)
    third, asks = OtherConnection(), threading.Event()

    def tell(execute: Any, sql: str, *rest: Any) -> Any:
        if "FOR UPDATE" in sql:
            asks.set()
        return execute(sql, *rest)

    def retry() -> list[UUID]:
        with connection.execute_wrapper(tell):
            return list(revive.retry_dead(at(), [letter], limited={}).jobs)

    try:
        retrying = third.submit(retry)
        assert asks.wait(DEADLINE)
        caller.ends()
        assert retrying.result(DEADLINE) == [letter]
    finally:
        third.close()


def test_who_cancels_waits_for_a_dependent(caller: Caller) -> None:
    parent = enqueue_one()
    child = enqueue_one(parents=(parent,))
    caller.holds(Job, child)
    third = OtherConnection()
    try:
        cancelling = third.submit(operate.cancel, at(), parent)
        wait_until(lambda: is_held(parent), DEADLINE, "the cancel holds the parent")
        assert not cancelling.done()
        caller.ends()
        assert cancelling.result(DEADLINE) == [parent, child]
    finally:
        third.close()


def is_held(key: UUID) -> bool:
    with transaction.atomic():
        free = Job.objects.select_for_update(skip_locked=True).filter(pk=key)
        return not list(free)
