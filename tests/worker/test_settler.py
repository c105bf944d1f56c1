"""Settler: results in batches, one bad row apart, company waited for, and who is told."""

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import DataError

from flexiq_django import signals
from flexiq_django.core.outcome import Ending, Outcome
from flexiq_django.core.records import Settlement
from flexiq_django.models import DeadLetter, Job, TaskMetric
from flexiq_django.store import settle
from flexiq_django.worker import settler as settling
from flexiq_django.worker.connections import GaveUp
from flexiq_django.worker.settler import BATCH
from tests.store.acting import enqueue_one, running, stored
from tests.worker.desk import Desk, claimed, done, failed

pytestmark = pytest.mark.django_db


@pytest.fixture
def told() -> Iterator[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []

    def receive(sender: object, signal: object, **told: Any) -> None:
        found.append(told)

    signals.job_settled.connect(receive)
    yield found
    signals.job_settled.disconnect(receive)


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


def test_two_attempts_of_one_job_are_settled_one_after_the_other(
    desk: Desk, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    job, other = claimed(2)
    late = job._replace(token=1)
    desk.add(done(job, result="1"), failed(late, retryable=False), done(other))

    desk.write()

    assert desk.batches == [[job.id], [job.id, other.id]]
    assert caplog.text.count(f"late result of job {job.id} (app.tasks.work) dropped") == 1
    assert [each["status"] for each in told] == ["complete", "complete"]
    assert DeadLetter.objects.count() == 0
    assert TaskMetric.objects.filter(job_id=job.id).count() == 1


def test_receivers_are_told_how_it_ended(desk: Desk, told: list[Any]) -> None:
    fine, again, dead = claimed(3)
    desk.add(done(fine), failed(again), failed(dead, retryable=False))

    desk.write()

    place = {"namespace": "default", "using": "default"}
    common = {"task_name": "app.tasks.work", "worker_id": "worker-1", **place}
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

    def refuse(scope: Any, settlements: Sequence[Settlement], *more: Any) -> Any:
        if any(each.job_id == bad.id for each in settlements):
            raise DataError("value too long")
        return plain(scope, settlements, *more)

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
