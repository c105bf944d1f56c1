"""The chores that only look: what they warn of, how often, and what that costs."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from flexiq_django.scheduler.watching import (
    LANE_SECONDS,
    RESTART_SECONDS,
    FleetWatch,
    LaneWatch,
)
from tests.admin.rows import pause_queue
from tests.factories import WorkerFactory, at
from tests.store.acting import claim, enqueue, enqueue_one

pytestmark = pytest.mark.django_db


def call(verb: Callable[[], Any]) -> Any:
    return verb()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The messages since the last look, from INFO upwards."""
    caplog.set_level(logging.INFO, "flexiq_django")

    def messages() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return messages


def test_a_difference_is_told_once_until_the_values_change(told: Callable[[], list[str]]) -> None:
    watch = FleetWatch(at(), call)
    first = WorkerFactory(id="a", config='{"lock_grace_seconds": 60, "kept": {"x": 1, "y": 2}}')
    WorkerFactory(id="b", config='{"kept": {"y": 2, "x": 1}, "lock_grace_seconds": 60}')
    watch.run()
    assert told() == []

    other = WorkerFactory(id="c", config='{"lock_grace_seconds": 30}')
    watch.run()
    watch.run()
    assert told() == ["workers differ in lock_grace_seconds: 60 on a, b; 30 on c"]

    # Another worker with a known value is no news, another value is.
    first.delete()
    WorkerFactory(id="d", config='{"lock_grace_seconds": 30}')
    watch.run()
    assert told() == []
    WorkerFactory(id="e", config='{"lock_grace_seconds": 5}')
    watch.run()
    assert told() == ["workers differ in lock_grace_seconds: 60 on b; 30 on c, d; 5 on e"]

    type(other).objects.exclude(id="b").delete()
    watch.run()
    assert told() == ["workers agree in lock_grace_seconds again"]


def test_numbers_are_compared_as_numbers(told: Callable[[], list[str]]) -> None:
    WorkerFactory(id="a", config='{"drain": 30, "windows": {"logs": 60000}, "big": 1e300}')
    WorkerFactory(id="b", config='{"drain": 30.0, "windows": {"logs": 6e4}, "big": 1e300}')
    FleetWatch(at(), call).run()
    assert told() == []

    WorkerFactory(id="c", config='{"drain": 30.5}')
    FleetWatch(at(), call).run()
    assert told() == ["workers differ in drain: 30 on a, b; 30.5 on c"]


def test_many_workers_are_counted_and_not_named(told: Callable[[], list[str]]) -> None:
    WorkerFactory(id="old", version="1")
    for number in range(8):
        WorkerFactory(id=f"new-{number}", version="2")

    FleetWatch(at(), call).run()

    assert told() == [
        'workers differ in version: "2" on new-0, new-1, new-2, new-3, new-4 and 3 more; "1" on old'
    ]


def test_workers_that_are_gone_or_elsewhere_do_not_differ(told: Callable[[], list[str]]) -> None:
    WorkerFactory(version="1")
    WorkerFactory(version="2", lease_at=at(-1).now)
    WorkerFactory(version="3", namespace="elsewhere")

    FleetWatch(at(), call).run()

    assert told() == []


def test_a_lane_that_nobody_serves_is_told_once_until_somebody_does(
    told: Callable[[], list[str]],
) -> None:
    watch = LaneWatch(at(), call)
    WorkerFactory(queues='["mail"]', deployment_id="blue")
    enqueue_one(queue="mail")
    enqueue_one(queue="mail", deployment_id="blue")
    watch.run()
    assert told() == []

    enqueue_one(queue="mail", deployment_id="gpu")
    enqueue_one(queue="reports")
    enqueue_one(queue="paused")
    pause_queue("paused")
    watch.run()
    enqueue(2, queue="reports")
    watch.run()
    assert told() == [
        "jobs wait in queue mail for deployment gpu, which no live worker there has",
        "jobs wait in queue reports, which no live worker serves",
    ]

    WorkerFactory()
    claim(queues=["mail"], deployment_id="gpu")
    watch.run()
    assert told() == [
        "no longer: jobs wait in queue mail for deployment gpu, which no live worker there has",
        "no longer: jobs wait in queue reports, which no live worker serves",
    ]
    watch.run()
    assert told() == []


class Clock:
    """Monotonic seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


EVERY_ONE_DRAINS = "jobs wait in queue mail, and every live worker drains"


def test_a_restart_is_told_only_if_nobody_comes_back(told: Callable[[], list[str]]) -> None:
    clock = Clock()
    watch = LaneWatch(at(), call, clock)
    old = WorkerFactory(queues='["mail"]')
    watch.run()

    # It drains, it is gone, and jobs have come meanwhile: nothing yet.
    old.state = "draining"
    old.save()
    enqueue_one(queue="mail")
    clock.now += 30
    watch.run()
    old.delete()
    clock.now += RESTART_SECONDS - 31
    watch.run()
    assert told() == []

    new = WorkerFactory(queues='["mail"]')
    watch.run()
    new.delete()
    clock.now += RESTART_SECONDS - 1
    watch.run()
    assert told() == []
    clock.now += 1
    watch.run()
    watch.run()
    assert told() == ["jobs wait in queue mail, and no worker is alive"]


def test_a_drain_without_end_is_told(told: Callable[[], list[str]]) -> None:
    clock = Clock()
    watch = LaneWatch(at(), call, clock)
    WorkerFactory(state="draining")
    enqueue_one(queue="mail")
    watch.run()
    assert told() == []

    for _ in range(8):
        clock.now += LANE_SECONDS
        watch.run()
    assert told() == [EVERY_ONE_DRAINS]


def test_a_lane_that_no_worker_ever_served_is_told_while_others_restart(
    told: Callable[[], list[str]],
) -> None:
    watch = LaneWatch(at(), call)
    WorkerFactory(queues='["mail"]', state="draining")
    WorkerFactory(queues='["other"]')
    enqueue_one(queue="mail")
    enqueue_one(queue="reports")

    watch.run()

    assert told() == ["jobs wait in queue reports, which no live worker serves"]


def test_lanes_of_one_queue_with_and_without_a_deployment_are_served_again(
    told: Callable[[], list[str]],
) -> None:
    watch = LaneWatch(at(), call)
    enqueue_one(queue="mail")
    enqueue_one(queue="mail", deployment_id="blue")
    watch.run()
    assert len(told()) == 2

    claim(queues=["mail"], deployment_id="blue")
    watch.run()

    assert [text.split(":")[0] for text in told()] == ["no longer", "no longer"]


def test_a_look_reads_lanes_and_not_jobs(told: Callable[[], list[str]]) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as seen:
            LaneWatch(at(), call).run()
        return len(seen)

    enqueue(1, queue="reports")
    WorkerFactory(queues='["mail"]')
    few = statements()
    enqueue(50, queue="reports")

    assert statements() == few <= 4
