"""Stored schedules: listed, paused, resumed, deleted."""

from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from flexiq_django import Queue
from flexiq_django.exceptions import (
    InvalidOptionError,
    InvalidScheduleError,
    SettingConflictError,
)
from flexiq_django.models import PeriodicTask
from flexiq_django.store import schedules
from tests.factories import NOW, PeriodicTaskFactory, at, later

pytestmark = pytest.mark.django_db

NOW_MS = int(NOW.timestamp() * 1000)
VERBS = ["pause_periodic", "resume_periodic", "delete_periodic"]


def stored(name: str = "nightly") -> PeriodicTask:
    return PeriodicTask.objects.get(namespace="default", name=name)


def test_schedules_are_plain_values(queue: Queue) -> None:
    PeriodicTaskFactory(name="b", queue="slow", last_run_at=later(-5), missed_count=4)
    PeriodicTaskFactory(name="a", enabled=False)

    first, second = queue.list_periodic()

    assert (first["name"], first["enabled"], first["last_run"]) == ("a", False, None)
    assert second == {
        "name": "b", "task_name": "app.tasks.work", "cron_expr": "0 * * * *", "timezone": "UTC",
        "queue": "slow", "enabled": True, "last_run": NOW_MS - 5_000, "next_run": NOW_MS,
        "missed": 4,
    }  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_only_a_schedule_of_the_namespace_is_meant(queue: Queue, verb: str) -> None:
    PeriodicTaskFactory(name="nightly", namespace="other", enabled=verb != "resume_periodic")
    before = PeriodicTask.objects.values().get()

    assert not getattr(queue, verb)("nightly")
    assert not async_to_sync(getattr(queue, f"a{verb}"))("Nightly")
    assert PeriodicTask.objects.values().get() == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["", " n", "n" * 201, None])
def test_a_name_that_none_can_have_is_refused(queue: Queue, verb: str, name: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^name is"):
        getattr(queue, verb)(name)


def test_a_paused_schedule_is_not_due_until_its_next_time_after_it_is_resumed(
    queue: Queue,
) -> None:
    PeriodicTaskFactory(name="nightly", cron="*/5 * * * *", next_run_at=later(-3_600))
    PeriodicTaskFactory(name="hourly", next_run_at=later(60))

    assert queue.pause_periodic("nightly")
    assert queue.pause_periodic("nightly")
    assert not stored().enabled
    assert [row.name for row, _ in schedules.due(at(0))[0]] == []

    began = datetime.now(UTC)
    assert queue.resume_periodic("nightly")
    row = stored()
    assert row.enabled
    assert row.next_run_at > began
    assert row.missed_count == 0
    assert schedules.due(at(0))[0] == []


def test_resuming_what_is_not_paused_changes_nothing(queue: Queue) -> None:
    PeriodicTaskFactory(name="nightly", next_run_at=later(-3_600))
    before = PeriodicTask.objects.values().get()

    assert queue.resume_periodic("nightly")
    assert PeriodicTask.objects.values().get() == before


def test_resuming_goes_by_the_timing_of_that_moment(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    PeriodicTaskFactory(name="nightly", cron="0 1 * * *", enabled=False)
    find = schedules.find
    changes = iter(["30 2 * * *"])

    def find_and_change(*args: Any) -> Any:
        found = find(*args)
        for cron in changes:  # a worker with newer code declares it between our look and our write
            PeriodicTask.objects.update(cron=cron)
        return found

    monkeypatch.setattr(schedules, "find", find_and_change)
    assert queue.resume_periodic("nightly")
    row = stored()
    assert row.enabled
    assert (row.next_run_at.hour, row.next_run_at.minute) == (2, 30)


def test_a_timing_that_this_transaction_cannot_see_is_not_waited_for(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    PeriodicTaskFactory(name="nightly", enabled=False)
    monkeypatch.setattr(schedules, "resume", lambda *_: False)

    with pytest.raises(SettingConflictError, match="'nightly' could not be resumed"):
        queue.resume_periodic("nightly")


def test_a_timing_that_cannot_be_read_is_said_and_stays_paused(queue: Queue) -> None:
    PeriodicTaskFactory(name="nightly", timezone="Mars/Olympus", enabled=False)

    with pytest.raises(InvalidScheduleError, match="Mars/Olympus"):
        queue.resume_periodic("nightly")
    assert not stored().enabled


def test_a_deleted_schedule_that_code_declares_again_is_new(queue: Queue) -> None:
    PeriodicTaskFactory(name="nightly", missed_count=4, enabled=False)
    names = ("name", "task_name", "cron", "timezone", "payload", "queue", "misfire_policy",
             "misfire_window_ms")  # fmt: skip
    declared = PeriodicTask.objects.values(*names).get()

    assert queue.delete_periodic("nightly")
    assert queue.list_periodic() == []
    assert not queue.delete_periodic("nightly")

    schedules.declare(at(0), declared, later(60))
    assert (stored().enabled, stored().missed_count) == (True, 0)
    assert stored().next_run_at == later(60)
