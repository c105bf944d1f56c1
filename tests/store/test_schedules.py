"""Schedule rows: declared by code, fired once, moved on and enqueued in one transaction."""

from datetime import datetime
from typing import Any

import pytest

from flexiq_django.models import Job, PeriodicTask
from flexiq_django.store import enqueue, schedules
from flexiq_django.store.schedules import FORGOTTEN_AFTER_MS, ScheduleRow, declare, due, fire
from flexiq_django.store.scope import Scope
from tests.concurrency import run_in_threads
from tests.factories import NO_ARGUMENTS, NOW, NewJobFactory, PeriodicTaskFactory, at, later

pytestmark = pytest.mark.django_db

NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "task_name": "app.clean",
    "cron": "0 3 * * *",
    "timezone": "Europe/Berlin",
    "payload": '[[1],{"a":2}]',
    "queue": "slow",
    "misfire_policy": "once",
    "misfire_window_ms": 60_000,
}
FORGOTTEN = FORGOTTEN_AFTER_MS / 1000


def row() -> PeriodicTask:
    return PeriodicTask.objects.get(name="nightly")


def test_a_new_schedule_is_stored_as_declared() -> None:
    declare(at(), NIGHTLY, later(100))

    found = row()
    assert {name: getattr(found, name) for name in NIGHTLY} == NIGHTLY
    assert (found.namespace, found.enabled, found.missed_count) == ("default", True, 0)
    assert (found.next_run_at, found.declared_at) == (later(100), NOW)
    assert (found.last_run_at, found.last_job_id) == (None, None)


def test_declaring_it_again_changes_only_when_it_was_declared() -> None:
    declare(at(), NIGHTLY, later(100))
    declare(at(60), NIGHTLY, later(999))

    assert (row().next_run_at, row().declared_at) == (later(100), later(60))
    assert PeriodicTask.objects.count() == 1


@pytest.mark.parametrize("change", [{"cron": "0 4 * * *"}, {"timezone": "UTC"}])
def test_another_timing_moves_the_next_run(change: dict[str, str]) -> None:
    declare(at(), NIGHTLY, later(100))
    declare(at(60), {**NIGHTLY, **change}, later(999))

    assert row().next_run_at == later(999)
    assert {name: getattr(row(), name) for name in change} == change


@pytest.mark.parametrize(
    "change",
    [
        {"task_name": "app.other"},
        {"payload": NO_ARGUMENTS},
        {"queue": None},
        {"misfire_policy": "all"},
        {"misfire_window_ms": 5},
    ],
)
def test_any_other_change_leaves_the_next_run(change: dict[str, Any]) -> None:
    declare(at(), NIGHTLY, later(100))
    declare(at(60), {**NIGHTLY, **change}, later(999))

    assert row().next_run_at == later(100)
    assert {name: getattr(row(), name) for name in change} == change


def test_after_an_outage_the_misfire_policy_finds_the_run_that_was_missed() -> None:
    declare(at(), NIGHTLY, later(100))
    declare(at(FORGOTTEN + 1), NIGHTLY, later(999))

    assert row().next_run_at == later(100)


def test_a_schedule_of_the_database_keeps_its_next_run_when_code_declares_it() -> None:
    PeriodicTaskFactory(**NIGHTLY, declared_at=None, next_run_at=later(100))
    declare(at(10**6), NIGHTLY, later(999))

    assert row().next_run_at == later(100)


def test_what_an_operator_disabled_stays_so() -> None:
    declare(at(), NIGHTLY, later(100))
    PeriodicTask.objects.update(enabled=False)
    declare(at(60), {**NIGHTLY, "cron": "0 4 * * *"}, later(999))

    assert not row().enabled


def test_names_belong_to_their_namespace() -> None:
    declare(at(), NIGHTLY, later(100))
    declare(at(namespace="other"), NIGHTLY, later(200))

    assert dict(PeriodicTask.objects.values_list("namespace", "next_run_at")) == {
        "default": later(100), "other": later(200)
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_workers_that_declare_at_once_agree() -> None:
    run_in_threads([lambda: declare(at(), NIGHTLY, later(100))] * 5)

    assert row().next_run_at == later(100)


# --- what is due ----------------------------------------------------------------------------------


def names_due(scope: Scope, **options: int) -> tuple[list[str], float | None]:
    ready, wait, _ = due(scope, **options)
    assert {now for _, now in ready} <= {scope.now}
    return [each.name for each, _ in ready], wait


def test_due_are_those_whose_time_has_come_in_order() -> None:
    PeriodicTaskFactory(name="b", next_run_at=later(-1))
    PeriodicTaskFactory(name="a", next_run_at=later(-2))
    PeriodicTaskFactory(name="c", next_run_at=later(5))

    assert names_due(at()) == (["a", "b"], pytest.approx(5))
    assert names_due(at(5)) == (["a", "b", "c"], None)
    assert names_due(at(), limit=1) == (["a"], None)


def test_a_walk_goes_on_behind_what_it_has_read() -> None:
    for name, seconds in (("d", 9), ("c", 0), ("b", 0), ("a", -1)):
        PeriodicTaskFactory(name=name, next_run_at=later(seconds))

    first = due(at(), limit=2)
    second = due(at(), limit=2, after=first.after)

    assert [row.name for row, _ in first.ready] == ["a", "c"]
    assert ([row.name for row, _ in second.ready], second.wait) == (["b"], pytest.approx(9))
    assert (first.wait, second.after) == (None, None)


def test_disabled_forgotten_and_foreign_ones_are_not_due() -> None:
    PeriodicTaskFactory(enabled=False)
    PeriodicTaskFactory(namespace="other")
    PeriodicTaskFactory(declared_at=later(-FORGOTTEN - 1))
    assert names_due(at()) == ([], None)

    PeriodicTaskFactory(name="just", declared_at=later(-FORGOTTEN))
    PeriodicTaskFactory(name="stored", declared_at=None, next_run_at=later(-1))
    assert names_due(at()) == (["stored", "just"], None)


def test_a_row_comes_with_all_that_firing_needs() -> None:
    declare(at(), NIGHTLY, NOW)

    ((found, now),) = due(at(1)).ready

    assert now == later(1)
    assert found._replace(id=0) == ScheduleRow(
        0, "nightly", "app.clean", "0 3 * * *", "Europe/Berlin", '[[1],{"a":2}]', "slow",
        "once", 60_000, True, NOW, None, 0,
    )  # fmt: skip


# --- firing ---------------------------------------------------------------------------------------


def due_row() -> ScheduleRow:
    ((found, _),) = due(at()).ready
    return found


def fire_once(found: ScheduleRow, *, jobs: int = 1, missed: int = 0) -> Any:
    return fire(
        at(), found, jobs=[NewJobFactory() for _ in range(jobs)],
        last_run_at=NOW if jobs else None, next_run_at=later(3_600), missed=missed,
    )  # fmt: skip


def test_firing_moves_on_and_stores_the_jobs() -> None:
    PeriodicTaskFactory(name="nightly")

    fired = fire_once(due_row(), jobs=2, missed=3)

    assert set(fired) == set(Job.objects.values_list("id", flat=True))
    assert len(fired) == 2
    found = row()
    assert (found.next_run_at, found.last_run_at) == (later(3_600), NOW)
    assert (found.last_job_id, found.missed_count) == (fired[-1], 3)


def test_firing_nothing_still_moves_on() -> None:
    PeriodicTaskFactory(name="nightly", last_run_at=later(-60))

    assert fire_once(due_row(), jobs=0, missed=2) == []

    found = row()
    assert (found.next_run_at, found.last_run_at) == (later(3_600), later(-60))
    assert (found.last_job_id, found.missed_count) == (None, 2)


@pytest.mark.parametrize(
    "meanwhile",
    [{"next_run_at": later(60)}, {"cron": "5 * * * *"}, {"enabled": False}],
    ids=lambda change: next(iter(change)),
)
def test_a_row_that_changed_meanwhile_does_not_fire(meanwhile: dict[str, Any]) -> None:
    PeriodicTaskFactory(name="nightly")
    found = due_row()
    PeriodicTask.objects.update(**meanwhile)

    assert fire_once(found) is None
    assert Job.objects.count() == 0
    assert row().missed_count == 0


def test_a_row_that_was_deleted_meanwhile_does_not_fire() -> None:
    PeriodicTaskFactory(name="nightly")
    found = due_row()
    PeriodicTask.objects.all().delete()

    assert fire_once(found) is None


@pytest.mark.django_db(transaction=True)
def test_of_many_that_fire_at_once_one_does() -> None:
    PeriodicTaskFactory(name="nightly")
    found = due_row()

    fired = run_in_threads([lambda: fire_once(found)] * 5)

    assert sum(each is not None for each in fired) == 1
    assert Job.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_firing_that_fails_leaves_the_schedule_due(monkeypatch: pytest.MonkeyPatch) -> None:
    PeriodicTaskFactory(name="nightly")

    def fail(*_: object) -> None:
        raise RuntimeError("disk")

    monkeypatch.setattr(enqueue, "insert_jobs", fail)
    with pytest.raises(RuntimeError, match="disk"):
        fire_once(due_row())

    assert due_row().next_run_at == NOW
    assert Job.objects.count() == 0


def test_the_listing_is_by_name_and_namespace() -> None:
    for name in ("b", "a"):
        PeriodicTaskFactory(name=name, enabled=False, last_run_at=NOW)
    PeriodicTaskFactory(name="c", namespace="other")

    rows = schedules.listing(at())

    assert [(each.name, each.enabled, each.last_run_at) for each in rows] == [
        ("a", False, NOW), ("b", False, NOW)
    ]  # fmt: skip
    assert isinstance(rows[0].next_run_at, datetime)
