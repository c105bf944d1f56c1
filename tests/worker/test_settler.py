"""Settler: results in batches, notes before them, one bad row apart, and who is told."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from django.db import DataError, connections

from flexiq_django import signals
from flexiq_django.core.outcome import Ending, Outcome
from flexiq_django.core.records import ClaimedJob, Settlement
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.models import Job, TaskLog, TaskMetric
from flexiq_django.store import journal, link, operate, settle
from flexiq_django.worker import settler as settling
from flexiq_django.worker.connections import GaveUp
from flexiq_django.worker.settler import BATCH, Settler
from tests.factories import at
from tests.store.acting import claim, enqueue, enqueue_one, running, stored
from tests.worker.running import make_attempt

pytestmark = pytest.mark.django_db


class Calls:
    """A keeper that calls at once; the verbs of a settler, counted."""

    def __init__(self) -> None:
        self.closed = False

    def call(self, verb: Callable[[], Any]) -> Any:
        return verb()

    def close(self) -> None:
        self.closed = True
        connections.close_all()


class Desk:
    """A settler that is not started, and all that it told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.batches: list[list[UUID]] = []
        self.settled: list[UUID] = []
        self.ready = 0
        self.notified = 0
        self.keeper = Calls()
        self._verb = settle.settle
        monkeypatch.setattr(settle, "settle", self._settle)
        monkeypatch.setattr(link, "notify", self._notify)
        options.setdefault("expects_more", lambda: False)
        options.setdefault("notifies", True)
        self.settler = Settler(
            at(),
            self.keeper,  # type: ignore[arg-type]
            worker_id="worker-1",
            policy_of=lambda _name: RetryPolicy(max_retries=0, jitter=False),
            on_settled=lambda jobs: self.settled.extend(job.id for job in jobs),
            on_ready=self._on_ready,
            **options,
        )

    def _settle(self, scope: Any, settlements: Sequence[Settlement]) -> Any:
        self.batches.append([each.job_id for each in settlements])
        return self._verb(scope, settlements)

    def _notify(self, _scope: Any) -> None:
        self.notified += 1

    def _on_ready(self) -> None:
        self.ready += 1

    def add(self, *outcomes: Outcome) -> None:
        for outcome in outcomes:
            self.settler.add(outcome)

    def write(self) -> None:
        self.settler._write()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


@pytest.fixture
def told() -> Iterator[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []

    def receive(sender: object, signal: object, **told: Any) -> None:
        found.append(told)

    signals.job_settled.connect(receive)
    yield found
    signals.job_settled.disconnect(receive)


def done(job: ClaimedJob, **fields: Any) -> Outcome:
    return Outcome(job=job, ending=Ending.COMPLETED, duration_ms=1.0, **fields)


def failed(job: ClaimedJob, **fields: Any) -> Outcome:
    return Outcome(job=job, ending=Ending.FAILED, error="e", duration_ms=1.0, **fields)


def claimed(count: int) -> list[ClaimedJob]:
    enqueue(count)
    return claim(limit=count)


def test_results_that_wait_are_settled_together(desk: Desk) -> None:
    jobs = claimed(5)
    desk.add(*(done(job, result="1") for job in jobs))
    assert desk.settler.pending == 5

    desk.write()

    assert desk.batches == [[job.id for job in jobs]]
    assert desk.settled == [job.id for job in jobs]
    assert desk.settler.pending == 0
    assert Job.objects.filter(status="complete", result="1").count() == 5
    assert TaskMetric.objects.count() == 5


def test_a_batch_has_a_size(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "BATCH", 2)
    desk.add(*(done(job) for job in claimed(5)))

    desk.write()

    assert [len(batch) for batch in desk.batches] == [2, 2, 1]
    assert BATCH > 2


def test_a_late_result_is_dropped_and_said_once(
    desk: Desk, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    mine, lost = claimed(2)
    desk.add(done(mine), done(lost._replace(token=1)))

    desk.write()

    assert caplog.text.count(f"late result of job {lost.id} (app.tasks.work) dropped") == 1
    assert str(mine.id) not in caplog.text
    assert [each["job_id"] for each in told] == [str(mine.id)]
    assert desk.settled == [mine.id, lost.id]  # both are out of our hands
    assert stored(lost.id).status == "running"


def test_receivers_are_told_how_it_ended(desk: Desk, told: list[Any]) -> None:
    fine, again, dead = claimed(3)
    desk.add(done(fine), failed(again), failed(dead, retryable=False))

    desk.write()

    common = {"task_name": "app.tasks.work", "worker_id": "worker-1"}
    assert told == [
        {"job_id": str(fine.id), "status": "complete", "error": None, **common},
        {"job_id": str(again.id), "status": "pending", "error": "e", **common},
        {"job_id": str(dead.id), "status": "dead", "error": "e", **common},
    ]


@pytest.mark.parametrize("notifies", [True, False])
def test_workers_are_woken_when_a_job_became_ready(
    monkeypatch: pytest.MonkeyPatch, notifies: bool
) -> None:
    desk = Desk(monkeypatch, notifies=notifies)
    plain, parent, retried = claimed(3)
    desk.add(done(plain))
    desk.write()
    assert (desk.ready, desk.notified) == (0, 0)

    enqueue_one(parents=(parent.id,))
    desk.add(done(parent))
    desk.write()
    assert (desk.ready, desk.notified) == (1, int(notifies))

    desk.add(failed(retried))
    desk.write()
    assert (desk.ready, desk.notified) == (2, 2 * int(notifies))


# --- one bad row ----------------------------------------------------------------------------------


def test_one_bad_row_takes_no_other_with_it(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, also_good = claimed(3)
    plain = settle.settle

    def refuse(scope: Any, settlements: Sequence[Settlement]) -> Any:
        if any(each.job_id == bad.id for each in settlements):
            raise DataError("value too long")
        return plain(scope, settlements)

    monkeypatch.setattr(settle, "settle", refuse)
    desk.add(done(good), done(bad), done(also_good))

    with caplog.at_level(logging.WARNING):
        desk.write()

    assert [stored(job.id).status for job in (good, bad, also_good)] == [
        "complete", "running", "complete"
    ]  # fmt: skip
    # It is let go of: its lease is not renewed any more, and the reaper will say what happened.
    assert set(desk.settled) == {good.id, bad.id, also_good.id}
    assert "settling 3 attempts together failed" in caplog.text
    assert f"job {bad.id} cannot be settled; its lease will run out" in caplog.text
    assert desk.settler.pending == 0


def test_giving_up_is_passed_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(_verb: Any) -> None:
        raise GaveUp

    monkeypatch.setattr(desk.keeper, "call", give_up)
    desk.add(done(running()))

    with pytest.raises(GaveUp):
        desk.write()

    assert desk.settled == []
    assert desk.settler.pending == 1


# --- notes ----------------------------------------------------------------------------------------


def test_notes_are_written_before_the_result(desk: Desk) -> None:
    job = running()
    desk.settler.progress(job, 10)
    desk.settler.log(job, "info", "first", None)
    desk.settler.log(job, "result", "", '{"a":1}')
    desk.settler.progress(job, 90)
    desk.add(failed(job, retryable=False))

    desk.write()

    row = stored(job.id)
    assert (row.status, row.progress) == ("dead", 90)
    lines = TaskLog.objects.order_by("id").values_list("level", "message", "extra")
    assert list(lines) == [("info", "first", None), ("result", "", '{"a":1}')]


def test_only_the_latest_progress_is_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def note(_scope: Any, _id: Any, _token: Any, value: int) -> bool:
        written.append(value)
        return True

    job, other = claimed(2)
    monkeypatch.setattr(journal, "set_progress", note)
    for value in range(50):
        desk.settler.progress(job, value)
    desk.settler.progress(other, 7)

    desk.write()

    assert written == [49, 7]


def test_late_notes_are_dropped_and_said_once(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    job = running()._replace(token=1)
    desk.settler.progress(job, 5)
    for _ in range(3):
        desk.settler.log(job, "info", "line", None)

    desk.write()

    assert caplog.text.count("dropped: the attempt no longer owns the job") == 1
    assert TaskLog.objects.count() == 0


def test_a_note_that_cannot_be_stored_keeps_no_result(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> bool:
        raise DataError("too large")

    monkeypatch.setattr(journal, "append_log", refuse)
    job = running()
    desk.settler.log(job, "info", "x", None)
    desk.settler.progress(job, 5)
    desk.add(done(job))

    desk.write()

    assert (stored(job.id).status, stored(job.id).progress) == ("complete", 5)
    assert "cannot be stored" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_look_brings_the_flags_up_to_date(desk: Desk) -> None:
    calm, asked, lost = running(), running(), running()._replace(token=1)
    operate.request_cancel(at(), asked.id)
    attempts = [make_attempt(job) for job in (calm, asked, lost)]

    for attempt in attempts:
        desk.settler.look(attempt)

    assert [each.is_cancel_requested for each in attempts] == [False, True, False]
    assert [each.is_over for each in attempts] == [False, False, True]


# --- waiting for company --------------------------------------------------------------------------


def test_nothing_waits_when_no_more_is_expected(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "COMPANY_SECONDS", 3_600.0)
    desk.add(done(running()))

    desk.write()  # would wait an hour

    assert len(desk.settled) == 1


def test_a_result_waits_for_those_that_are_about_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = claimed(2)
    asked: list[int] = []

    def expects_more() -> bool:
        asked.append(1)
        if len(asked) == 2:
            desk.add(done(second))
        return len(asked) < 3

    monkeypatch.setattr(settling, "COMPANY_SECONDS", 3_600.0)
    desk = Desk(monkeypatch, expects_more=expects_more)
    desk.add(done(first))

    desk.write()

    assert desk.batches == [[first.id, second.id]]


def test_waiting_ends_after_a_few_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, expects_more=lambda: True)
    desk.add(done(running()))

    desk.write()

    assert len(desk.settled) == 1
    assert settling.COMPANY_SECONDS < 0.05


def test_a_full_batch_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "COMPANY_SECONDS", 3_600.0)
    monkeypatch.setattr(settling, "BATCH", 2)
    desk = Desk(monkeypatch, expects_more=lambda: True)
    desk.add(*(done(job) for job in claimed(2)))

    desk.write()

    assert len(desk.settled) == 2


# --- the thread -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_stop_settles_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    jobs = claimed(10)
    desk.settler.start()
    desk.add(*(done(job) for job in jobs))

    assert desk.settler.stop(30)

    assert Job.objects.filter(status="complete").count() == 10
    assert desk.keeper.closed


def test_a_thread_that_gives_up_says_how_much_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(monkeypatch)
    asked = threading.Event()

    def give_up(_verb: Any) -> None:
        asked.set()
        raise GaveUp

    monkeypatch.setattr(desk.keeper, "call", give_up)
    desk.settler.add(Outcome(job=running(), ending=Ending.COMPLETED))
    desk.settler.start()

    assert asked.wait(10)
    assert desk.settler.stop(10)
    assert "stopping with 1 attempts not settled" in caplog.text
