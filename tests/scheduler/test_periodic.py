"""The chore that fires schedules: what is due fires and moves on, whatever else stands there."""

import itertools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest
from django.db import DataError

from flexiq_django.core.records import NewJob
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.models import Job, PeriodicTask
from flexiq_django.scheduler import periodic
from flexiq_django.scheduler.loop import Blocked
from flexiq_django.scheduler.periodic import SCHEDULE_SECONDS, Periodic
from flexiq_django.store import schedules
from flexiq_django.store.schedules import ScheduleRow
from tests.factories import NOW, NewJobFactory, PeriodicTaskFactory, at, later

pytestmark = pytest.mark.django_db


def call(verb: Callable[[], Any]) -> Any:
    return verb()


def build(row: ScheduleRow, occurrences: Sequence[datetime]) -> list[NewJob]:
    if row.task_name == "app.bad":
        raise InvalidOptionError("bad payload")
    return [NewJobFactory(task_name=row.task_name, metadata=str(each)) for each in occurrences]


def fire(seconds: float, ready: list[int] | None = None) -> float:
    return firing(seconds, [] if ready is None else ready).run()


def firing(seconds: float, ready: list[int]) -> Periodic:
    return Periodic(at(seconds), call, build, ready.append)


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
    assert fire(0) == SCHEDULE_SECONDS
    PeriodicTaskFactory(next_run_at=later(4))
    assert fire(0) == pytest.approx(4)
    PeriodicTask.objects.update(next_run_at=later(9_999))
    assert fire(0) == SCHEDULE_SECONDS


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
        {"misfire_policy": "x"},
        {"misfire_window_ms": 2**62},
    ],
    ids=str,
)
def test_a_bad_row_stops_no_other(bad: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    PeriodicTaskFactory(name="bad", next_run_at=later(-1), **bad)
    PeriodicTaskFactory(name="good")

    chore = firing(1, [])

    assert chore.run() == 0  # look again at once, as something has fired
    assert 0 < chore.run() <= 1  # but not for the bad row, which is still due
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


# --- rows that cannot fire ------------------------------------------------------------------------


class Clock:
    """The seconds by which pauses are measured."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time passes for pauses only when the test says so."""
    made = Clock()
    monkeypatch.setattr(periodic, "time", made)
    return made


def test_a_bad_row_is_told_of_once_and_tried_with_growing_pauses(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    PeriodicTaskFactory(name="bad", timezone="Mars/Olympus")
    tries: list[float] = []

    def build_nothing(_row: ScheduleRow, _occurrences: Sequence[datetime]) -> list[NewJob]:
        tries.append(clock.now)
        raise InvalidOptionError("bad payload")

    PeriodicTaskFactory(name="unreadable")
    chore = Periodic(at(1), call, build_nothing, pytest.fail)
    for _ in range(30):
        rest = chore.run()
        assert rest > 0
        clock.now += rest

    assert caplog.text.count("schedule bad cannot fire") == 1
    assert caplog.text.count("schedule unreadable cannot fire") == 1
    pauses = [after - before for before, after in itertools.pairwise(tries)]
    assert pauses[:6] == [1, 2, 4, 8, 16, 32]
    assert set(pauses[6:]) == {60}


def test_a_bad_row_that_changes_is_tried_at_once_and_told_of_again(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    PeriodicTaskFactory(name="bad", timezone="Mars/Olympus")
    chore = firing(1, [])
    chore.run()

    PeriodicTask.objects.update(timezone="Moon/Tycho")
    chore.run()
    chore.run()
    assert caplog.text.count("schedule bad cannot fire") == 2

    PeriodicTask.objects.update(timezone="UTC")
    assert chore.run() == 0
    assert Job.objects.count() == 1


def test_an_error_of_the_database_is_about_its_row(caplog: pytest.LogCaptureFixture) -> None:
    PeriodicTaskFactory(name="bad", task_name="app.large", next_run_at=later(-1))
    PeriodicTaskFactory(name="good")

    def refuse(row: ScheduleRow, occurrences: Sequence[datetime]) -> list[NewJob]:
        if row.task_name == "app.large":
            raise DataError("value out of range")
        return build(row, occurrences)

    Periodic(at(1), call, refuse, lambda _count: None).run()

    assert Job.objects.count() == 1
    assert "schedule bad cannot fire" in caplog.text


def test_a_row_that_another_transaction_holds_up_stops_no_other(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    PeriodicTaskFactory(name="held", task_name="app.held", next_run_at=later(-1))
    PeriodicTaskFactory(name="good")

    def build_free(row: ScheduleRow, occurrences: Sequence[datetime]) -> list[NewJob]:
        if row.name == "held":
            raise Blocked("lock timeout")
        return build(row, occurrences)

    chore = Periodic(at(1), call, build_free, lambda _count: None)
    assert chore.run() == 0  # a second was lost: the other chores go on before the next schedule
    assert Job.objects.count() == 0
    assert chore.run() == 0
    assert Job.objects.count() == 1
    rests = []
    for _ in range(20):
        rests.append(chore.run())
        clock.now += rests[-1]

    assert Job.objects.count() == 1
    assert caplog.text.count("schedule held waits for another transaction (lock timeout)") == 1
    assert "Traceback" not in caplog.text
    assert max(rests) == 5


def test_bad_rows_hide_no_good_one_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        PeriodicTaskFactory(name=f"bad {number}", cron="nonsense", next_run_at=later(-1))
    PeriodicTaskFactory(name="good")
    plain = schedules.due
    monkeypatch.setattr(schedules, "due", lambda *where, **place: plain(*where, limit=3, **place))
    chore = firing(1, [])

    # Page by page, with the other chores in between, and once more as one has fired.
    assert [chore.run() for _ in range(3)] == [0, 0, 0]
    assert [job.metadata for job in Job.objects.all()] == [str(NOW)]
    assert [chore.run() for _ in range(2)] == [0, 0]
    assert 0 < chore.run() <= 1


def test_troubles_of_rows_that_are_gone_are_forgotten(clock: Clock) -> None:
    PeriodicTaskFactory(name="bad", cron="nonsense")
    chore = firing(1, [])
    chore.run()
    assert len(chore._troubles) == 1

    PeriodicTask.objects.all().delete()
    assert chore.run() == SCHEDULE_SECONDS
    assert not chore._troubles
