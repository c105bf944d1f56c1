"""The chores that keep the tables small: one small batch at a time, the tables by turns."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from flexiq_django.core.retention import RECOMMENDED, Retention, policy_of
from flexiq_django.models import ArchivedJob, DeadLetter, Job, TaskLog, TaskMetric
from flexiq_django.scheduler import sweeping
from flexiq_django.scheduler.leader import Leader
from flexiq_django.scheduler.loop import Chore, ChoreLoop
from flexiq_django.scheduler.sweeping import Archival, RetentionSweep
from flexiq_django.store import archive, inspect, retention, settings
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from tests.factories import (
    NOW,
    ArchivedJobFactory,
    DeadLetterFactory,
    JobFactory,
    TaskLogFactory,
    TaskMetricFactory,
    at,
    later,
)

pytestmark = pytest.mark.django_db

ALL = policy_of(Retention(10, 10, 10, 10, 10))
OFF = policy_of(Retention())
DAY = 86_400


def call(verb: Callable[[], Any]) -> Any:
    return verb()


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows a batch."""
    monkeypatch.setattr(type(open_database(at())), "batch_size", 2)


def to_the_end(chore: RetentionSweep | Archival) -> int:
    """Run until there is nothing left to do; how many runs that took."""
    for number in range(1, 100):
        if chore.run() == sweeping.LOOK_SECONDS:
            return number
    raise AssertionError("it never came to an end")


def test_a_run_is_one_small_batch_and_says_when_to_come_back(small_batches: None) -> None:
    for _ in range(5):
        TaskLogFactory()
    chore = RetentionSweep(at(11), call, ALL)

    rest = chore.run()

    assert TaskLog.objects.count() == 3
    assert 0 < rest <= 1
    assert to_the_end(chore) <= 4
    assert TaskLog.objects.count() == 0


def test_the_tables_take_turns(small_batches: None) -> None:
    for _ in range(9):
        ArchivedJobFactory()
        TaskLogFactory()
        TaskMetricFactory()
        DeadLetterFactory()
    chore = RetentionSweep(at(11), call, ALL)

    for _ in range(4):
        chore.run()

    assert [model.objects.count() for model in (ArchivedJob, TaskLog, TaskMetric, DeadLetter)] == [
        7
    ] * 4


def test_nothing_to_do_is_one_run() -> None:
    assert to_the_end(RetentionSweep(at(11), call, ALL)) == 1


def test_what_came_meanwhile_is_for_the_next_round() -> None:
    chore = RetentionSweep(at(11), call, ALL)
    to_the_end(chore)
    TaskLogFactory()

    to_the_end(chore)

    assert TaskLog.objects.count() == 0


def test_a_round_ends_though_rows_keep_growing_old(small_batches: None) -> None:
    scope, runs = Scope(), 0
    chore = RetentionSweep(scope, call, policy_of(Retention(task_logs=0)))
    TaskLogFactory.create_batch(2)
    while chore.run() != sweeping.LOOK_SECONDS:
        runs += 1
        assert runs < 9
        young = TaskLogFactory.create_batch(2, logged_at=inspect.read_clock(scope))

    assert TaskLog.objects.filter(id=young[0].id).exists()


def test_a_batch_that_others_took_is_no_reason_for_a_long_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = retention.Swept(0, NOW)
    monkeypatch.setattr(retention, "sweep_batch", lambda *_, **__: taken)
    monkeypatch.setattr(archive, "archive_batch", lambda *_, **__: 0)

    assert RetentionSweep(at(11), call, ALL).run() <= 1
    assert Archival(at(11), call, 0).run() <= 1


def test_a_page_that_stays_as_it_is_waits_for_the_next_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def take_nothing(*_: Any, after: Any, **__: Any) -> retention.Swept:
        asked.append(after)
        return retention.Swept(0, NOW)  # a full page of one moment, which others hold

    monkeypatch.setattr(retention, "sweep_batch", take_nothing)
    chore = RetentionSweep(at(11), call, policy_of(Retention(task_logs=0)))

    while chore.run() != sweeping.LOOK_SECONDS:
        assert len(asked) < 99
    assert asked.count(None) == asked.count(NOW)


def test_lifetimes_of_single_rows_are_kept_without_any_window() -> None:
    JobFactory(ended=True, purge_at=NOW)
    JobFactory(ended=True)

    to_the_end(RetentionSweep(at(10**8), call, OFF))

    assert Job.objects.get().purge_at is None


def test_a_table_that_cannot_be_swept_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ArchivedJobFactory()
    TaskLogFactory()
    real = retention.sweep_batch

    def fail(scope: Any, sweep: Any, **options: Any) -> Any:
        if sweep.table == ArchivedJob._meta.db_table:
            raise ValueError("broken")
        return real(scope, sweep, **options)

    monkeypatch.setattr(retention, "sweep_batch", fail)
    chore = RetentionSweep(at(11), call, ALL)
    with pytest.raises(ValueError, match="broken"):
        chore.run()  # by their lifetimes
    with pytest.raises(ValueError, match="broken"):
        chore.run()  # by the window

    to_the_end(chore)

    assert TaskLog.objects.count() == 0
    with pytest.raises(ValueError, match="broken"):
        chore.run()  # the next round tries again


def test_promotion_goes_on_during_a_long_sweep(small_batches: None) -> None:
    for _ in range(20):
        TaskLogFactory()
    seen: list[int] = []
    sweep = RetentionSweep(at(11), call, ALL)

    def promote() -> float:
        seen.append(TaskLog.objects.count())
        return 0.0

    loop = ChoreLoop(
        Leader(lambda: True, lambda: None),
        [Chore(name="promote", run=promote), Chore(name="retention", run=sweep.run)],
        on_end=lambda: None,
    )
    clock = 0.0
    while TaskLog.objects.count():
        clock += 1  # every rest is over, the role is renewed
        loop.tick(loop._chores[1].due + 0.001)

    assert seen == list(range(20, 0, -2))


# --- the report and the announcement --------------------------------------------------------------


@pytest.mark.parametrize("policy", [ALL, OFF, policy_of(RECOMMENDED, defaulted=True)])
def test_each_round_reports_the_windows_in_force(policy: Any) -> None:
    assert retention.reported(at()) is None

    to_the_end(RetentionSweep(at(7), call, policy))

    found = retention.reported(at())
    assert found is not None
    assert (found.enabled, found.defaulted) == (policy.enabled, policy.defaulted)
    assert (found.windows, found.namespace) == (policy.windows, "default")
    assert found.reported_at == int(later(7).timestamp() * 1000)
    assert retention.reported(at(namespace="other")) is None
    assert list(settings.everything(at())) == ["retention:effective:default"]


def test_recommended_windows_are_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    chore = RetentionSweep(at(), call, policy_of(RECOMMENDED, defaulted=True))
    with caplog.at_level(logging.INFO, "flexiq_django"):
        to_the_end(chore)
        to_the_end(chore)

    assert caplog.text.count("no retention is configured for namespace default") == 1
    assert "archived_jobs 7 d, dead_letter 30 d, task_logs 3 d" in caplog.text


@pytest.mark.parametrize("policy", [ALL, OFF])
def test_windows_that_somebody_chose_are_not_announced(
    policy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "flexiq_django"):
        to_the_end(RetentionSweep(at(), call, policy))

    assert caplog.text == ""


# --- archival -------------------------------------------------------------------------------------


def test_what_ended_long_ago_is_archived_batch_by_batch(small_batches: None) -> None:
    for _ in range(5):
        JobFactory(ended=True)
    young = JobFactory(ended=True, completed_at=later(1))
    chore = Archival(at(DAY + 1), call, DAY * 1000)

    assert 0 < chore.run() <= 1
    assert ArchivedJob.objects.count() == 2
    to_the_end(chore)

    assert ArchivedJob.objects.count() == 5
    assert Job.objects.get().id == young.id


def test_jobs_that_have_not_ended_are_not_archived() -> None:
    JobFactory()
    JobFactory(running=True)
    JobFactory(waiting=True, status="paused")

    assert Archival(at(10**8), call, 0).run() == sweeping.LOOK_SECONDS
    assert Job.objects.count() == 3
