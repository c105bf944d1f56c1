"""The chores themselves: what each does, and how long it may rest afterwards."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from django.db import DataError

from flexiq_django.core.outcome import WORKER_LOST, Ending, Outcome, decide
from flexiq_django.core.records import ClaimedJob, NewJob, Settlement
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.models import DeadLetter, Job, Worker
from flexiq_django.scheduler import chores
from flexiq_django.scheduler.chores import (
    DeadLetterRetries,
    DependencyNet,
    Expiry,
    Promotion,
    Reaper,
    SessionNet,
)
from flexiq_django.store import revive
from flexiq_django.store.ids import new_id
from tests.factories import (
    NOW,
    DeadLetterFactory,
    JobDependencyFactory,
    JobFactory,
    TaskStateFactory,
    WorkerFactory,
    at,
    later,
)
from tests.store.acting import enqueue, enqueue_one, stored

pytestmark = pytest.mark.django_db


def call(verb: Callable[[], Any]) -> Any:
    return verb()


def lost(job: ClaimedJob) -> Settlement:
    outcome = Outcome(job=job, ending=Ending.FAILED, error=WORKER_LOST, retry_after=0.0)
    return decide(outcome, RetryPolicy(max_retries=0))


def test_promotion_rests_until_the_next_job_is_due() -> None:
    ready: list[int] = []
    enqueue(2, delay_ms=1_000)
    enqueue_one(delay_ms=1_750)

    assert Promotion(at(1), call, ready.append).run() == pytest.approx(0.75)
    assert ready == [2]
    assert Promotion(at(1.25), call, ready.append).run() == pytest.approx(0.5)
    assert ready == [2]
    assert Promotion(at(9), call, ready.append).run() == chores.PROMOTE_SECONDS
    assert ready == [2, 1]


def test_promotion_never_rests_long() -> None:
    enqueue_one(delay_ms=10**6)

    assert Promotion(at(), call, pytest.fail).run() == chores.PROMOTE_SECONDS


def test_expiry_goes_on_while_there_is_something() -> None:
    enqueue_one(expires_ms=1)

    expiry = Expiry(at(1), call, pytest.fail, pytest.fail)

    assert [expiry.run(), expiry.run()] == [0, chores.EXPIRE_SECONDS]


def test_expiry_tells_of_what_may_go_now() -> None:
    parent = enqueue_one(expires_ms=1)
    enqueue_one(parents=(parent,), allow_parent_failure=True)
    enqueue_one(session_id="s", expires_ms=1)
    enqueue_one(session_id="s")
    ready: list[int] = []

    Expiry(at(1), call, ready.append, pytest.fail).run()

    assert ready == [2]


def test_reaping_tells_what_it_settled_and_goes_on() -> None:
    job = JobFactory(running=True, lease_at=NOW)
    told: list[list[UUID]] = []

    def tell(settlements: Sequence[Settlement]) -> None:
        told.append([each.job_id for each in settlements])

    reaper = Reaper(at(), call, lost, on_settled=tell, on_passed_over=pytest.fail)

    assert [reaper.run(), reaper.run()] == [0, chores.REAP_SECONDS]
    assert told == [[job.id], []]
    assert stored(job.id).status == "pending"


# --- dead letters ---------------------------------------------------------------------------------


def retry_dead(seconds: float, ready: list[int] | None = None) -> float:
    told: list[int] = [] if ready is None else ready
    return DeadLetterRetries(at(seconds), call, 3, dict, told.append).run()


def test_dead_letters_are_retried_when_they_are_due() -> None:
    ready: list[int] = []
    for number in range(3):
        DeadLetterFactory(auto_retry_at=later(number))
    DeadLetterFactory()

    assert retry_dead(1, ready) == 0  # look again at once
    assert retry_dead(1, ready) == chores.RETRY_SECONDS

    assert ready == [2]
    assert Job.objects.filter(ready_lane="default").count() == 2
    assert DeadLetter.objects.count() == 2


def test_letters_of_revoked_tasks_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    TaskStateFactory(revoked_at=NOW)
    DeadLetterFactory(auto_retry_at=NOW)

    assert retry_dead(1) == 0
    assert retry_dead(1) == chores.RETRY_SECONDS

    assert caplog.text.count("1 dead letters of revoked tasks stay") == 1
    assert not Job.objects.exists()


def test_a_letter_that_cannot_be_retried_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("app.a", "app.bad", "app.c"):
        DeadLetterFactory(task_name=name, auto_retry_at=NOW)
    plain = revive.insert_copies

    def refuse(database: Any, jobs: Sequence[NewJob]) -> None:
        if any(job.task_name == "app.bad" for job in jobs):
            raise DataError("value out of range")
        plain(database, jobs)

    monkeypatch.setattr(revive, "insert_copies", refuse)
    ready: list[int] = []

    assert retry_dead(1, ready) == 0
    assert retry_dead(1, ready) == chores.RETRY_SECONDS

    assert ready == [1, 1]
    letter = DeadLetter.objects.get()
    assert (letter.task_name, letter.auto_retry_at) == ("app.bad", None)
    assert f"dead letter {letter.id} cannot be retried" in caplog.text


def test_workers_that_are_long_gone_are_forgotten() -> None:
    WorkerFactory(lease_at=later(-9_999))

    assert chores.forget_workers(at(), call) >= 60
    assert Worker.objects.count() == 0


def test_the_net_catches_lost_dependents() -> None:
    child = JobFactory(waiting=True)
    JobDependencyFactory(job_id=child.id, parent_id=new_id())

    ready: list[int] = []
    net = DependencyNet(at(), call, ready.append)

    assert net.run() == net.run() == chores.NET_SECONDS
    assert ready == [1]
    assert stored(child.id).ready_lane == "default"


def test_the_net_catches_lines_that_nobody_holds() -> None:
    job = JobFactory(ready_lane=None, session_id="s", session_line="s")
    ready: list[int] = []
    net = SessionNet(at(), call, ready.append)

    assert net.run() == net.run() == chores.NET_SECONDS
    assert ready == [1]
    assert stored(job.id).ready_lane == "default"


def test_the_net_goes_on_at_once_until_it_has_seen_every_line() -> None:
    long = JobFactory.build_batch(500, ready_lane=None, session_id="a", session_line="a")
    Job.objects.bulk_create(long)
    JobFactory(session_id="a", session_slot="a")
    lost = JobFactory(ready_lane=None, session_id="b", session_line="b")
    net = SessionNet(at(), call, lambda _count: None)

    assert [net.run(), net.run()] == [0.0, chores.NET_SECONDS]
    assert stored(lost.id).session_slot == "b"
