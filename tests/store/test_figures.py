"""Counts, and figures of executions."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from flexiq_django.models import Job, TaskMetric
from flexiq_django.store import figures, operate, promote, settle
from flexiq_django.store.figures import Figures
from tests.factories import (
    NOW,
    ArchivedJobFactory,
    JobFactory,
    PeriodicTaskFactory,
    QueueStateFactory,
    TaskMetricFactory,
    at,
    later,
)
from tests.store.acting import claim_one, enqueue_one, settlement

pytestmark = pytest.mark.django_db

NONE = {"pending": 0, "running": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 0}


def test_counts_by_queue_and_in_all() -> None:
    for state in ("scheduled", "waiting", "running", "ended"):
        JobFactory(**{state: True})
    for status in ("dead", "cancelled", "failed"):
        JobFactory(ended=True, status=status)
    JobFactory(waiting=True, status="paused")
    JobFactory()
    JobFactory(queue="mail")
    JobFactory(namespace="other")
    ArchivedJobFactory()
    default = {
        "pending": 4, "running": 1, "completed": 1, "failed": 1, "dead": 1, "cancelled": 1
    }  # fmt: skip

    assert figures.stats_by_queue(at()) == {"default": default, "mail": {**NONE, "pending": 1}}
    assert figures.stats(at()) == {**default, "pending": 5}
    assert figures.stats(at(namespace="empty")) == NONE


def test_jobs_in_lanes_of_their_own_count_for_their_queue() -> None:
    enqueue_one(queue="mail")
    enqueue_one(queue="mail", deployment_id="blue")
    enqueue_one(queue="mail", is_limited=True)
    enqueue_one(queue="mail", is_limited=True, deployment_id="blue")

    assert figures.stats_by_queue(at()) == {"mail": {**NONE, "pending": 4}}


def test_jobs_that_have_not_ended_are_told_apart_by_what_they_wait_for() -> None:
    for state in ("scheduled", "waiting", "running"):
        JobFactory(**{state: True})
    JobFactory(waiting=True, status="paused")
    JobFactory(ended=True)
    JobFactory(namespace="other")
    enqueue_one(queue="mail", is_limited=True)
    enqueue_one(queue="mail")

    assert figures.live_by_queue(at()) == {
        "default": figures.Live(later=1, waiting=1, running=1, paused=1),
        "mail": figures.Live(ready=2),
    }
    assert figures.live_by_queue(at(namespace="empty")) == {}


def test_a_job_is_counted_once_at_every_step() -> None:
    parent = enqueue_one()
    enqueue_one(parents=(parent,))
    enqueue_one(delay_ms=1_000)
    seen = [figures.stats(at())]
    job = claim_one(at())
    seen.append(figures.stats(at()))
    settle.settle(at(), [settlement(job, "pending", attempt_error="x", wait_ms=500)])
    seen.append(figures.stats(at()))
    promote.promote_due(at(5))
    job = claim_one(at(5))
    settle.settle(at(5), [settlement(job, "dead", error="x", attempt_error="x")])
    seen.append(figures.stats(at()))
    operate.cancel(at(), Job.objects.filter(status="pending").values_list("id", flat=True)[0])
    seen.append(figures.stats(at()))

    def counts(*numbers: int) -> dict[str, int]:
        return dict(zip(("pending", "running", "dead", "cancelled"), numbers, strict=True))

    shown = [{key: each[key] for key in counts(0, 0, 0, 0)} for each in seen]
    assert shown == [
        counts(3, 0, 0, 0), counts(2, 1, 0, 0), counts(3, 0, 0, 0), counts(1, 0, 1, 1),
        counts(0, 0, 1, 2),
    ]  # fmt: skip


def test_the_idle_status_is_there_exactly_while_no_other_hot_column_is() -> None:
    jobs = {
        "ready": JobFactory(), "later": JobFactory(scheduled=True),
        "waiting": JobFactory(waiting=True), "running": JobFactory(running=True),
        "paused": JobFactory(waiting=True, status="paused"),
        "dead": JobFactory(ended=True, status="dead"),
    }  # fmt: skip

    found = dict(Job.objects.values_list("id", "idle_status"))

    assert {name: found[job.id] for name, job in jobs.items()} == {
        "ready": None, "later": None, "waiting": "pending", "running": None, "paused": "paused",
        "dead": "dead",
    }  # fmt: skip


def test_queues_that_the_tables_name() -> None:
    QueueStateFactory(name="slow")
    QueueStateFactory(name="foreign", namespace="other")
    PeriodicTaskFactory(name="a", queue="nightly", task_name="x")
    PeriodicTaskFactory(name="b", queue=None, task_name="y")
    PeriodicTaskFactory(namespace="other", queue="z")

    assert figures.known_queues(at()) == ({"slow"}, [("nightly", "x"), (None, "y")])


# --- executions -----------------------------------------------------------------------------------


def record(durations: Sequence[float], **fields: Any) -> None:
    """Executions that took so long, in any order."""
    shuffled = list(durations)
    random.Random(7).shuffle(shuffled)
    TaskMetric.objects.bulk_create(
        [TaskMetricFactory.build(duration_ms=each, **fields) for each in shuffled]
    )


def by_task(**options: Any) -> list[Figures]:
    return figures.by_task(at(), **{"since": later(-3600), "task_name": None, **options})


@pytest.mark.parametrize(
    ("durations", "percentiles"),
    [
        ([5], [5, 5, 5]),
        ([1, 3], [3, 3, 3]),
        (range(1, 11), [6, 10, 10]),
        (range(1, 101), [51, 96, 100]),
        ([2, 2, 2, 9], [2, 9, 9]),
    ],
)
def test_percentiles(durations: Sequence[float], percentiles: list[float]) -> None:
    record(durations)

    (found,) = by_task()

    assert list(found.percentiles) == percentiles
    assert (found.total, found.least, found.most) == (
        len(durations), min(durations), max(durations)
    )  # fmt: skip
    assert found.mean == pytest.approx(sum(durations) / len(durations))


@pytest.mark.parametrize("count", [7, 19, 20, 21, 99, 180, 199, 201])
def test_percentiles_are_those_of_the_sorted_list(count: int) -> None:
    durations = [random.Random(number).uniform(0, 1_000) for number in range(count)]
    record(durations)

    (found,) = by_task()

    expected = [sorted(durations)[percent * count // 100] for percent in (50, 95, 99)]
    assert list(found.percentiles) == pytest.approx(expected)


def test_executions_are_told_apart_by_task_and_outcome() -> None:
    record([1, 2], task_name="a")
    record([3], task_name="a", succeeded=False)
    record([4], task_name="b")
    record([5], task_name="A")
    record([6], task_name="a", namespace="other")

    found = {each.group: (each.total, each.succeeded, each.most) for each in by_task()}

    assert found == {"a": (3, 2, 3), "b": (1, 1, 4), "A": (1, 1, 5)}
    assert [each.group for each in by_task(task_name="b")] == ["b"]
    assert by_task(task_name="unknown") == []


def test_a_span_holds_so_many_executions_at_most() -> None:
    for seconds in (1, 2, 3, 4_000):
        record([1], recorded_at=later(-seconds))
    record([1], recorded_at=later(-2), namespace="other")
    hour = timedelta(hours=1)

    found = [figures.since_when(at(), longest=hour, most=most) for most in (1, 2, 3, 4)]

    assert found == [later(-2), later(-3), later(-3_600), later(-3_600)]
    assert figures.since_when(at(namespace="empty"), longest=hour, most=1) == later(-3_600)


def test_the_time_counts_from_its_beginning() -> None:
    record([1], recorded_at=later(-60))
    record([2], recorded_at=later(-60) - timedelta(microseconds=1))

    (found,) = by_task(since=later(-60))

    assert (found.total, found.most) == (1, 1)


def test_buckets_count_from_the_beginning_of_the_time() -> None:
    start = NOW + timedelta(microseconds=123_456)
    tick = timedelta(microseconds=1)
    ten = timedelta(seconds=10)
    for moment in (start, start + ten - tick, start + ten, start + 3 * ten - tick, start - tick):
        record([1.5], recorded_at=moment)
    record([4], recorded_at=start + 5 * ten, succeeded=False, task_name="b")

    found = figures.by_bucket(at(), since=start, task_name=None, bucket_ms=10_000)

    assert [(each.group, each.total, each.succeeded) for each in found] == [
        (0, 2, 2), (1, 1, 1), (2, 1, 1), (5, 1, 0)
    ]  # fmt: skip
    only = figures.by_bucket(at(), since=start, task_name="b", bucket_ms=20_000)
    assert [(each.group, each.total) for each in only] == [(2, 1)]
