"""The chores themselves: what each does, and how long it may rest afterwards."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import DataError

from flexiq_django.core.outcome import WORKER_LOST, Ending, Outcome, decide
from flexiq_django.core.records import ClaimedJob, NewJob, Settlement
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.models import DeadLetter, Job, PeriodicTask, Worker
from flexiq_django.scheduler import chores
from flexiq_django.scheduler.chores import DependencyNet, Periodic, SessionNet
from flexiq_django.store import revive
from flexiq_django.store.ids import new_id
from flexiq_django.store.schedules import ScheduleRow
from tests.factories import (
    NOW,
    DeadLetterFactory,
    JobDependencyFactory,
    JobFactory,
    NewJobFactory,
    PeriodicTaskFactory,
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

    assert chores.promote_due(at(1), call, ready.append) == pytest.approx(0.75)
    assert ready == [2]
    assert chores.promote_due(at(1.25), call, ready.append) == pytest.approx(0.5)
    assert ready == [2]
    assert chores.promote_due(at(9), call, ready.append) == chores.PROMOTE_SECONDS
    assert ready == [2, 1]


def test_promotion_never_rests_long() -> None:
    enqueue_one(delay_ms=10**6)

    assert chores.promote_due(at(), call, pytest.fail) == chores.PROMOTE_SECONDS


def test_expiry_goes_on_while_there_is_something() -> None:
    enqueue_one(expires_ms=1)

    assert chores.expire(at(1), call, pytest.fail) == 0
    assert chores.expire(at(1), call, pytest.fail) == chores.EXPIRE_SECONDS


def test_expiry_tells_of_what_may_go_now() -> None:
    parent = enqueue_one(expires_ms=1)
    enqueue_one(parents=(parent,), allow_parent_failure=True)
    enqueue_one(session_id="s", expires_ms=1)
    enqueue_one(session_id="s")
    ready: list[int] = []

    chores.expire(at(1), call, ready.append)

    assert ready == [2]


def test_reaping_tells_what_it_settled_and_goes_on() -> None:
    job = JobFactory(running=True, lease_at=NOW)
    told: list[list[UUID]] = []

    def tell(settlements: Sequence[Settlement]) -> None:
        told.append([each.job_id for each in settlements])

    assert chores.reap(at(), call, lost, tell) == 0
    assert chores.reap(at(), call, lost, tell) == chores.REAP_SECONDS
    assert told == [[job.id], []]
    assert stored(job.id).status == "pending"


# --- dead letters ---------------------------------------------------------------------------------


def retry_dead(seconds: float, ready: list[int] | None = None) -> float:
    told: list[int] = [] if ready is None else ready
    return chores.retry_dead(at(seconds), call, 3, dict, told.append)


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

    assert ready == [2]
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


# --- schedules ------------------------------------------------------------------------------------


def build(row: ScheduleRow, occurrences: Sequence[datetime]) -> list[NewJob]:
    if row.task_name == "app.bad":
        raise InvalidOptionError("bad payload")
    return [NewJobFactory(task_name=row.task_name, metadata=str(each)) for each in occurrences]


def fire(seconds: float, ready: list[int] | None = None) -> float:
    fired: list[int] = [] if ready is None else ready
    return Periodic(at(seconds), call, build, fired.append).run()


def test_what_is_due_fires_and_moves_on() -> None:
    ready: list[int] = []
    PeriodicTaskFactory(name="hourly")

    assert fire(1, ready) == 0  # look again at once

    assert ready == [1]
    assert Job.objects.get().metadata == str(NOW)
    row = PeriodicTask.objects.get()
    assert (row.next_run_at, row.last_run_at) == (later(3_600), NOW)
    assert (row.missed_count, row.last_job_id) == (0, Job.objects.get().id)


def test_the_chore_rests_until_the_next_run() -> None:
    assert fire(0) == chores.SCHEDULE_SECONDS
    PeriodicTaskFactory(next_run_at=later(4))
    assert fire(0) == pytest.approx(4)
    PeriodicTask.objects.update(next_run_at=later(9_999))
    assert fire(0) == chores.SCHEDULE_SECONDS


@pytest.mark.parametrize(
    ("policy", "fired", "missed"), [("skip", 0, 3), ("once", 1, 2), ("all", 2, 1)]
)
def test_runs_that_were_missed(
    policy: str, fired: int, missed: int, caplog: pytest.LogCaptureFixture
) -> None:
    now = 2.5 * 3_600
    PeriodicTaskFactory(
        name="s", misfire_policy=policy, misfire_window_ms=2 * 3_600_000, declared_at=later(now)
    )

    fire(now)

    assert Job.objects.count() == fired
    row = PeriodicTask.objects.get()
    assert (row.missed_count, row.next_run_at) == (missed, later(3 * 3_600))
    assert f"schedule s missed {missed} runs" in caplog.text


@pytest.mark.parametrize(
    "bad",
    [
        {"cron": "nonsense"},
        {"cron": "0 0 30 2 *"},
        {"timezone": "Mars/Olympus"},
        {"task_name": "app.bad"},
        pytest.param(
            {"misfire_policy": "x"},
        ),
        pytest.param(
            {"misfire_window_ms": 2**62},
        ),
    ],
    ids=str,
)
def test_a_bad_row_stops_no_other(bad: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    PeriodicTaskFactory(name="bad", next_run_at=later(-1), **bad)
    PeriodicTaskFactory(name="good")

    assert fire(1) == 1.0  # not at once: the bad row is still due

    assert Job.objects.get().metadata == str(NOW)
    assert "schedule bad cannot fire" in caplog.text
    assert PeriodicTask.objects.get(name="bad").next_run_at == later(-1)


def test_a_row_that_somebody_else_fired_is_no_news() -> None:
    PeriodicTaskFactory()

    def too_slow(row: ScheduleRow, occurrences: Sequence[datetime]) -> list[NewJob]:
        PeriodicTask.objects.update(next_run_at=later(3_600))
        return build(row, occurrences)

    Periodic(at(1), call, too_slow, pytest.fail).run()

    assert Job.objects.count() == 0
