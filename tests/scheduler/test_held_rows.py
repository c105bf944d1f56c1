"""Chores that find only rows which others hold: they look again soon, and do not spin."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from flexiq_django.models import DeadLetter, Job
from flexiq_django.scheduler import chores, sweeping
from flexiq_django.scheduler.chores import (
    DeadLetterRetries,
    DependencyNet,
    Expiry,
    Promotion,
    Reaper,
)
from flexiq_django.scheduler.sweeping import Archival
from flexiq_django.store import archive, dependencies, promote, settle
from flexiq_django.store.dependencies import Moved
from flexiq_django.store.ids import new_id
from flexiq_django.store.settle import Settled
from tests.concurrency import OtherConnection
from tests.factories import NOW, DeadLetterFactory, at
from tests.store.acting import enqueue_one

pytestmark = pytest.mark.django_db


def call(verb: Callable[[], Any]) -> Any:
    return verb()


def shortly(run: Callable[[], float]) -> list[float]:
    """How long a chore rests that can do nothing, time after time."""
    return [run() for _ in range(7)]


GROWING = [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_promotion_does_not_spin_over_jobs_that_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [*[(0, 0.0)] * 7, (3, 0.0), (0, 0.0), (0, None), (0, 0.0)]
    monkeypatch.setattr(promote, "promote_due", lambda _scope: answers.pop(0))
    chore = Promotion(at(), call, lambda _count: None)

    assert shortly(chore.run) == GROWING
    assert [chore.run() for _ in range(4)] == [0, 0.05, chores.PROMOTE_SECONDS, 0.05]


def test_archiving_does_not_spin_over_jobs_that_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [*[0] * 7, 3, 0, None]
    monkeypatch.setattr(archive, "archive_batch", lambda *_, **__: answers.pop(0))
    chore = Archival(at(), call, 0)

    assert shortly(chore.run) == GROWING
    assert chore.run() < 0.05
    assert [chore.run(), chore.run()] == [0.05, sweeping.LOOK_SECONDS]


def test_expiry_looks_again_soon_for_jobs_that_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [*[Moved([], 0, 1)] * 7, Moved([new_id()], 0, 2), Moved([], 0, 1), Moved([], 0)]
    monkeypatch.setattr(promote, "cancel_expired", lambda _scope: answers.pop(0))
    passed_over: list[bool] = []
    chore = Expiry(at(), call, pytest.fail, lambda: passed_over.append(True))

    assert shortly(chore.run) == GROWING
    assert not passed_over
    assert [chore.run() for _ in range(3)] == [0, 0.05, chores.EXPIRE_SECONDS]
    assert passed_over == [True]  # the net has to find the dependents


def test_reaping_looks_again_soon_for_jobs_that_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took = Settled(settled=frozenset([new_id()]), passed_over=1)
    answers = [*[Settled(passed_over=1)] * 7, took, Settled(passed_over=1), Settled()]
    monkeypatch.setattr(settle, "reap", lambda *_, **__: ([], answers.pop(0)))
    passed_over: list[bool] = []
    chore = Reaper(
        at(),
        call,
        pytest.fail,
        on_settled=lambda _settlements: None,
        on_passed_over=lambda: passed_over.append(True),
    )

    assert shortly(chore.run) == GROWING
    assert not passed_over
    assert [chore.run() for _ in range(3)] == [0, 0.05, chores.REAP_SECONDS]
    assert passed_over == [True]


def test_the_net_walks_again_soon_for_dependents_that_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [*[(0, Moved([], 0, 1))] * 7, (5, Moved([], 0, 1)), *[(0, Moved([], 0))] * 4]
    seen: list[int] = []

    def sweep(_scope: Any, after: int) -> tuple[int, Moved]:
        seen.append(after)
        return answers.pop(0)

    monkeypatch.setattr(dependencies, "sweep_ended", sweep)
    net = DependencyNet(at(), call, pytest.fail)

    assert shortly(net.run) == GROWING
    assert [net.run() for _ in range(3)] == [1.0, 1.0, chores.NET_SECONDS]
    assert seen[-3:] == [0, 5, 0]
    net.walk_again()
    assert [net.run(), net.run()] == [0.05, chores.NET_SECONDS]


@pytest.mark.row_locks
@pytest.mark.django_db(transaction=True)
def test_letters_that_others_hold_are_looked_at_again_soon(
    other_connection: OtherConnection,
) -> None:
    letter = DeadLetterFactory(auto_retry_at=NOW)

    def lock() -> None:
        transaction.set_autocommit(False)
        list(DeadLetter.objects.select_for_update().filter(pk=letter.pk))

    other_connection.run(lock)
    retries = DeadLetterRetries(at(1), call, 3, dict, lambda _count: None)
    assert shortly(retries.run) == GROWING
    other_connection.run(transaction.rollback)

    assert [retries.run(), retries.run()] == [0, chores.RETRY_SECONDS]


@pytest.mark.row_locks
@pytest.mark.django_db(transaction=True)
def test_a_due_job_that_a_caller_holds_does_not_make_promotion_spin(
    other_connection: OtherConnection,
) -> None:
    key = enqueue_one(delay_ms=1_000)

    def lock() -> None:
        transaction.set_autocommit(False)
        list(Job.objects.select_for_update().filter(pk=key))

    other_connection.run(lock)
    chore = Promotion(at(2), call, lambda _count: None)
    assert shortly(chore.run) == GROWING
    other_connection.run(transaction.rollback)

    assert chore.run() == chores.PROMOTE_SECONDS
