"""Holdings: what the worker owns, attempt by attempt."""

import time

from flexiq_django.store.ids import new_id
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.heartbeat import Heartbeat, Holdings
from tests.factories import ClaimedJobFactory, at
from tests.worker.running import make_attempt, never


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


def test_an_older_attempt_cannot_rely_on_the_lease_of_a_newer_one() -> None:
    older = ClaimedJobFactory(token=1)
    holdings = Holdings()
    holdings.add([older])
    holdings.add([newer := older._replace(token=2)])

    assert [holdings.is_surely_ours(job) for job in (older, newer)] == [False, True]


def test_the_body_of_an_older_attempt_is_stopped_by_a_newer_one() -> None:
    job = ClaimedJobFactory(token=1)
    older, newer = make_attempt(job), make_attempt(job._replace(token=2))
    stopped: list[str] = []
    holdings = Holdings()
    holdings.begin(older)

    with older.stoppable(lambda: stopped.append("older"), gently=True):
        holdings.begin(newer)

    assert stopped == ["older"]


def test_a_lease_lost_by_an_older_attempt_says_nothing_of_a_newer_one() -> None:
    job = ClaimedJobFactory(token=1)
    holdings = Holdings()
    older, newer = make_attempt(job), make_attempt(job._replace(token=2))
    heartbeat = Heartbeat(
        at(),
        Keeper(at(), never),
        holdings,
        worker_id="worker-1",
        lease_ms=60_000,
        seconds=15,
        state=lambda: "running",
        turn_age=lambda: 0.0,
    )
    holdings.begin(newer)

    heartbeat._note_lost({(job.id, older.job.token)})
    assert not newer.is_over
    heartbeat._note_lost({(job.id, newer.job.token)})
    assert newer.is_over
