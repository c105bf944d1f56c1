"""What is kept: the windows of a queue, what a worker reports, what a sweep would delete."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from flexiq_django import Queue, Retention
from flexiq_django.api import registry as queues
from flexiq_django.api.retention import sweep
from flexiq_django.api.windows import windows_of
from flexiq_django.core.retention import RECOMMENDED, TABLES, policy_of
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.models import ArchivedJob, DeadLetter, Setting, TaskLog
from flexiq_django.store import inspect, retention, settings
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from tests.concurrency import DEADLINE, OtherConnection, blocked_connections
from tests.factories import (
    ArchivedJobFactory,
    DeadLetterFactory,
    JobErrorFactory,
    JobFactory,
    TaskLogFactory,
    TaskMetricFactory,
    at,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db

OFF = dict.fromkeys(TABLES)
DEFAULTS = policy_of(RECOMMENDED).windows


def one_of_each() -> None:
    """A row in every table, all much older than any window."""
    JobFactory(ended=True)
    ArchivedJobFactory()
    DeadLetterFactory()
    TaskLogFactory()
    TaskMetricFactory()
    JobErrorFactory()


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "enabled", "defaulted", "windows"),
    [
        ({}, True, True, DEFAULTS),
        ({"retention": Retention()}, False, False, OFF),
        ({"retention": Retention(task_logs=10)}, True, False, {**OFF, "task_logs": 10_000}),
        ({"result_ttl": 3_600}, True, False, dict.fromkeys(TABLES, 3_600_000)),
        ({"result_ttl": 0}, True, False, dict.fromkeys(TABLES, 0)),
        ({"result_ttl": 5, "retention": Retention()}, False, False, OFF),
    ],
)
def test_a_preview_says_what_the_queue_is_configured_with(
    options: Any, enabled: bool, defaulted: bool, windows: Any
) -> None:
    found = Queue("default", **options).dry_run_retention()

    assert (found.enabled, found.defaulted, found.windows) == (enabled, defaulted, windows)
    assert found.namespace == "default"


@pytest.mark.parametrize(
    ("settings_", "options", "windows"),
    [
        ({"RETENTION": {}}, {}, OFF),
        ({"RETENTION": {"task_logs": 5}}, {}, {**OFF, "task_logs": 5_000}),
        ({"RETENTION": {"task_logs": 5}, "RESULT_TTL": 7}, {}, {**OFF, "task_logs": 5_000}),
        ({"RESULT_TTL": 7}, {}, dict.fromkeys(TABLES, 7_000)),
        ({"RETENTION": {}}, {"result_ttl": 7}, dict.fromkeys(TABLES, 7_000)),
        ({"RETENTION": {}}, {"retention": RECOMMENDED}, DEFAULTS),
    ],
)
def test_the_queue_counts_before_the_settings(
    settings: Any, settings_: Any, options: Any, windows: Any
) -> None:
    settings.FLEXIQ = settings_

    assert Queue("default", **options).dry_run_retention().windows == windows


@pytest.mark.parametrize("bad", [-1, float("nan"), "5", True])
def test_a_bad_result_ttl_is_refused_at_once(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"^result_ttl is"):
        Queue(result_ttl=bad)


@pytest.mark.parametrize("bad", [{}, {"task_logs": 5}, 5, "7d"])
def test_anything_but_windows_is_refused(bad: Any, queue: Queue) -> None:
    with pytest.raises(InvalidOptionError, match="must be a Retention"):
        Queue(retention=bad)
    with pytest.raises(InvalidOptionError, match="must be a Retention"):
        queue.dry_run_retention(bad)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Queue]]:
    """The only queues there are."""
    declared: set[Queue] = set()
    monkeypatch.setattr(queues, "_queues", declared)
    return declared  # type: ignore[return-value]


def test_a_worker_takes_the_windows_of_its_namespace(alone: set[Queue], settings: Any) -> None:
    kept = [
        Queue("a", retention=Retention(task_logs=5)),
        Queue("a"),
        Queue("b", result_ttl=9),
        Queue("a", using="elsewhere", result_ttl=1),
    ]

    assert windows_of(Scope(namespace="a")) == policy_of(Retention(task_logs=5))
    assert windows_of(Scope(namespace="b")).windows == dict.fromkeys(TABLES, 9_000)
    assert windows_of(Scope(namespace="c")) == policy_of(RECOMMENDED, defaulted=True)
    settings.FLEXIQ = {"RETENTION": {}}
    assert windows_of(Scope(namespace="c")) == policy_of(Retention())
    assert len(kept) == len(alone)


def test_of_queues_that_differ_the_longest_window_counts(
    alone: set[Queue], caplog: pytest.LogCaptureFixture
) -> None:
    kept = [Queue("a", result_ttl=5), Queue("a", retention=Retention(task_logs=9))]

    assert windows_of(Scope(namespace="a")).windows == {**OFF, "task_logs": 9_000}
    assert "queues of namespace a are declared with different retention" in caplog.text
    assert len(kept) == len(alone)


# --- the report -----------------------------------------------------------------------------------


def test_without_a_sweep_nothing_is_known(queue: Queue) -> None:
    assert queue.effective_retention() is None


def test_the_report_is_that_of_the_worker_not_of_this_queue(queue: Queue) -> None:
    retention.report(at(5), policy_of(Retention(task_logs=5)))

    found = Queue("default", retention=Retention()).effective_retention()

    assert found is not None
    assert (found.enabled, found.defaulted, found.namespace) == (True, False, "default")
    assert found.windows == {**OFF, "task_logs": 5_000}
    assert found.reported_at == int(at(5).now.timestamp() * 1000)  # type: ignore[union-attr]
    assert Queue("other").effective_retention() is None


def test_retention_that_is_off_is_a_report(queue: Queue) -> None:
    retention.report(at(), policy_of(Retention()))

    found = queue.effective_retention()

    assert found is not None
    assert not found.enabled


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "null"])
def test_a_report_that_cannot_be_read_is_none(queue: Queue, text: str) -> None:
    settings.put(queue.place, "retention:effective:default", text)

    assert queue.effective_retention() is None


# --- the preview ----------------------------------------------------------------------------------


def test_a_preview_counts_and_deletes_nothing(queue: Queue) -> None:
    one_of_each()

    before, found, after = (
        inspect.read_clock(Scope()),
        queue.dry_run_retention(),
        inspect.read_clock(Scope()),
    )

    assert found.counts == {**dict.fromkeys(TABLES, 1), "archived_jobs": 2}
    assert found.total == 6
    earliest, latest = (int(moment.timestamp() * 1000) for moment in (before, after))
    assert earliest <= found.reference_time <= latest
    assert ArchivedJob.objects.count() == DeadLetter.objects.count() == TaskLog.objects.count() == 1
    assert Setting.objects.count() == 0


def test_a_preview_of_other_windows(queue: Queue) -> None:
    one_of_each()

    found = queue.dry_run_retention(Retention(task_logs=60))

    assert found.counts == {**dict.fromkeys(TABLES, 0), "task_logs": 1}
    assert (found.enabled, found.defaulted) == (True, False)
    assert queue.dry_run_retention(Retention()).total == 0
    assert not queue.dry_run_retention(Retention()).enabled


def test_rows_past_their_own_lifetime_are_counted_without_windows(queue: Queue) -> None:
    JobFactory(ended=True, purge_at=at().now)
    DeadLetterFactory(purge_at=at().now)

    found = queue.dry_run_retention(Retention())

    assert (found.counts["archived_jobs"], found.counts["dead_letter"], found.total) == (1, 1, 2)


def test_a_preview_stays_in_its_namespace(queue: Queue) -> None:
    one_of_each()

    assert Queue("other").dry_run_retention().total == 0


def test_a_sweep_deletes_what_the_preview_counted(queue: Queue) -> None:
    one_of_each()
    ArchivedJobFactory(purge_at=at().now)
    counted = queue.dry_run_retention()

    gone = dict.fromkeys(TABLES, 0)
    for table, rows in sweep(queue.scope, queue.retention_policy):
        gone[table] += rows

    assert gone == counted.counts
    assert queue.dry_run_retention().total == 0


def test_a_sweep_ends_though_rows_keep_growing_old(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 1)
    TaskLogFactory()
    policy = policy_of(Retention(task_logs=0))

    for number, _ in enumerate(sweep(queue.scope, policy)):
        assert number < 9
        young = TaskLogFactory(logged_at=inspect.read_clock(queue.scope))

    assert TaskLog.objects.get().id == young.id


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
@pytest.mark.parametrize("make", [TaskLogFactory, DeadLetterFactory, ArchivedJobFactory])
def test_a_sweep_goes_on_where_somebody_else_was_faster(
    queue: Queue, other_connection: OtherConnection, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 2)
    model = type(make())
    make.create_batch(4)
    policy = policy_of(Retention(0, 0, 0, 0, 0))
    (batch,) = [
        each
        for each in retention.sweeps(policy.windows)
        if each.table == model._meta.db_table and each.window_ms is not None
    ]

    with transaction.atomic():
        assert retention.sweep_batch(queue.scope, batch).removed == 2
        slower = other_connection.submit(lambda: sum(n for _, n in sweep(queue.scope, policy)))
        wait_until(blocked_connections, DEADLINE)

    assert slower.result(DEADLINE) == 3
    assert not model.objects.exists()
