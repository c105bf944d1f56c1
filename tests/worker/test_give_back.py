"""Jobs that a worker gives back: other workers are told, once, and only if there is news."""

from types import SimpleNamespace
from typing import Any

import pytest

from flexiq_django.store import link
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.heartbeat import Holdings
from flexiq_django.worker.loop import ClaimLoop
from tests.factories import at
from tests.store.acting import claim, stored
from tests.worker.desk import claimed
from tests.worker.running import never

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    namespaces: list[str] = []
    monkeypatch.setattr(link, "notify", lambda scope: namespaces.append(scope.namespace))
    return namespaces


def make_loop(*, listen: bool = True) -> ClaimLoop:
    """A claim loop that is not run."""
    rest: dict[str, Any] = dict.fromkeys(("executor", "buffer", "unsettled", "on_empty"))
    options: Any = SimpleNamespace(scope=at(), listen=listen)
    waker: Any = SimpleNamespace(wake=lambda: None)
    return ClaimLoop(
        options,
        worker_id="worker-1",
        keeper=Keeper(at(), never, is_own=False),
        waker=waker,
        holdings=Holdings(),
        **rest,
    )


def test_others_are_told_once_of_jobs_that_are_given_back(told: list[str]) -> None:
    jobs = claimed(3)

    make_loop().give_back(jobs)

    assert told == ["default"]
    assert {stored(job.id).status for job in jobs} == {"pending"}


def test_nothing_is_told_where_nobody_listens_or_nothing_came_back(told: list[str]) -> None:
    jobs = claimed(1)
    make_loop(listen=False).give_back(jobs)
    make_loop().give_back(jobs)  # has lost them by now
    make_loop().give_back([])

    assert told == []


def test_a_refused_job_wakes_nobody_else(told: list[str]) -> None:
    loop = make_loop()
    (job,) = claimed(1)
    assert not loop.may_begin(job)

    loop.give_back([])

    assert told == []
    assert [each.id for each in claim()] == [job.id]


def test_others_are_told_of_jobs_whose_claim_was_lost_on_the_way(told: list[str]) -> None:
    jobs = claimed(2)

    make_loop()._give_back_unknown()

    assert told == ["default"]
    assert {stored(job.id).status for job in jobs} == {"pending"}
