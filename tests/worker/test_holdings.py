"""Holdings: what the worker owns, attempt by attempt."""

import time

from flexiq_django.store.ids import new_id
from flexiq_django.worker.heartbeat import Holdings
from tests.factories import ClaimedJobFactory
from tests.worker.running import make_attempt


def test_jobs_are_held_until_they_are_dropped() -> None:
    first, second = ClaimedJobFactory(token=1), ClaimedJobFactory(token=2)
    holdings = Holdings()

    holdings.add([first, second])
    assert len(holdings) == 2
    assert set(holdings.fences()) == {(first.id, 1), (second.id, 2)}

    holdings.drop([first])
    holdings.drop([first])
    assert holdings.fences() == [(second.id, 2)]


def test_a_job_that_came_back_is_not_dropped_by_its_older_attempt() -> None:
    older = ClaimedJobFactory(token=1)
    newer = older._replace(token=2)
    holdings = Holdings()
    holdings.add([older])
    holdings.add([newer])

    holdings.drop([older])

    assert holdings.fences() == [(newer.id, 2)]


def test_attempts_run_between_begin_and_end() -> None:
    attempt = make_attempt(ClaimedJobFactory())
    holdings = Holdings()

    holdings.begin(attempt)
    assert holdings.attempts() == [attempt]
    holdings.end(attempt)
    holdings.end(attempt)
    assert holdings.attempts() == []


def test_a_newer_attempt_at_the_same_job_ends_the_older_one() -> None:
    job = ClaimedJobFactory(token=1)
    older, newer = make_attempt(job), make_attempt(job._replace(token=2))
    bystander = make_attempt(ClaimedJobFactory())
    holdings = Holdings()
    for attempt in (older, bystander, newer):
        holdings.begin(attempt)

    assert [each.is_over for each in (older, bystander, newer)] == [True, False, False]
    holdings.end(older)
    assert set(holdings.attempts()) == {bystander, newer}


def test_a_lease_that_could_not_be_extended_is_surely_ours_no_longer_than_before() -> None:
    first, second = ClaimedJobFactory(token=1), ClaimedJobFactory(token=2)
    holdings = Holdings()
    holdings.add([first, second], until=time.monotonic() - 1)

    holdings.extend([first.id, new_id()], until=time.monotonic() + 60)

    assert [holdings.is_surely_ours(job) for job in (first, second)] == [True, False]
    assert len(holdings) == 2
