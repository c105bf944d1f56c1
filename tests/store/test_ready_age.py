"""Since when jobs are ready: what starts their age, and what leaves it alone."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from flexiq_django.core.records import ClaimedJob
from flexiq_django.store import inspect, lease, operate, promote
from flexiq_django.store.gates import read_gates, relane
from flexiq_django.store.settle import settle
from tests.factories import NOW, JobFactory, TaskStateFactory, at, later
from tests.store.acting import claim_one, enqueue, enqueue_one, settlement

pytestmark = pytest.mark.django_db


def ready(due: float, changed: float | None = None, **fields: Any) -> Any:
    """A job that was due and last changed at these moments; at once if only one is given."""
    moment = due if changed is None else changed
    return JobFactory(scheduled_at=later(due), updated_at=later(moment), **fields)


def test_the_oldest_ready_job() -> None:
    assert inspect.oldest_ready(at()) is None
    ready(-5)
    ready(-9)
    ready(-99, waiting=True)
    ready(-99, namespace="other")

    assert inspect.oldest_ready(at()) == later(-9)


def test_each_lane_has_its_oldest() -> None:
    ready(-7, queue="b")
    ready(-9_000, -4, queue="b")
    ready(-9_000, -3, queue="a")
    ready(-0.5, queue="c")

    found = inspect.ready_lanes(at())

    assert found == [("a", 1, later(-3)), ("b", 2, later(-7)), ("c", 1, later(-0.5))]
    assert inspect.oldest_ready(at()) == later(-7)


def test_many_that_came_late_hide_none_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "LOOKS", (2, 6))
    for number in range(4):
        ready(-9_000 + number, -2)
    waiting = ready(-60)
    ready(-10)

    assert inspect.oldest_ready(at()) == later(-60)
    waiting.delete()
    assert inspect.oldest_ready(at()) == later(-10)


def test_beyond_what_is_looked_at_an_age_is_rather_too_high(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspect, "LOOKS", (1, 3))
    for number in range(4):
        ready(-9_000 + number, -2)

    assert inspect.oldest_ready(at()) == later(-8_998)


def test_jobs_that_are_claimed_during_the_look_do_not_count() -> None:
    ready(-9_000, -60)
    ready(-9_000, -20, priority=-1)

    claimed: list[ClaimedJob] = []

    def claim_meanwhile(execute: Any, sql: str, *rest: Any) -> Any:
        if "updated_at" in sql and not sql.lstrip().startswith("UPDATE"):
            claimed.append(claim_one())
        return execute(sql, *rest)

    with connection.execute_wrapper(claim_meanwhile):
        assert inspect.oldest_ready(at()) == later(-20)
    assert len(claimed) == 1


def released() -> None:
    """A dependent that waited for its parent."""
    parent = enqueue_one()
    enqueue_one(parents=(parent,))
    settle(at(5_000), [settlement(claim_one(at(4_999)))])


def handed_on() -> None:
    """A job that waited in the line of its session."""
    enqueue(2, session_id="s")
    settle(at(5_000), [settlement(claim_one(at(4_999)))])


def stored_late() -> None:
    """A job whose time was over when it was stored."""
    enqueue_one(at(5_000), run_at=NOW)


def promoted_late() -> None:
    """A job whose time was over before anybody looked."""
    enqueue_one(delay_ms=1_000)
    promote.promote_due(at(5_000))


def retried() -> None:
    """A job that failed."""
    enqueue_one()
    settle(at(5_000), [settlement(claim_one(at(4_999)), status="pending")])


def given_back() -> None:
    """A job that was claimed, and not begun."""
    enqueue_one()
    lease.release(at(5_000), [claim_one(at(4_999))])


@pytest.mark.parametrize(
    "act", [released, handed_on, stored_late, promoted_late, retried, given_back]
)
def test_an_age_counts_from_when_a_job_became_ready(act: Callable[[], None]) -> None:
    act()

    assert inspect.oldest_ready(at(5_002)) == later(5_000)


def give_priority(job_id: UUID) -> None:
    """Move it forward."""
    assert operate.set_priority(at(60), job_id, 5, only_pending=True)


def note_progress(job_id: UUID) -> None:
    """Say how far it is."""
    assert operate.set_progress(at(60), job_id, 5)


def label(job_id: UUID) -> None:
    """Say what it belongs to."""
    assert operate.set_lineage(at(60), job_id, attempt_id="a", trial_id=None)


def put_behind_a_limit(_job_id: UUID) -> None:
    """Let it wait in the lane of its task."""
    TaskStateFactory(name="app.tasks.work", max_concurrent=1)
    relane(at(60), ["default"], read_gates(at(60)))
    assert inspect.lane_names(at(60)) != ["default"]


@pytest.mark.parametrize("act", [give_priority, note_progress, label, put_behind_a_limit])
def test_what_leaves_a_job_waiting_leaves_its_age(act: Callable[[UUID], None]) -> None:
    act(enqueue_one())

    assert inspect.oldest_ready(at(90)) == NOW
