"""Worker rows: who is alive, as they last said."""

import json
from typing import Any

import pytest

from flexiq_django.models import Worker
from flexiq_django.store import workers
from tests.factories import NOW, WorkerFactory, at, later

pytestmark = pytest.mark.django_db

DESCRIBED: dict[str, Any] = {
    "id": "host-1",
    "hostname": "host",
    "pid": 42,
    "queues": '["a", "b"]',
    "executor": "threads",
    "concurrency": 8,
    "deployment_id": None,
    "version": "1.0",
    "config": json.dumps({"lock_grace_seconds": 60}),
    "state": "running",
    "clock_skew_ms": 0,
}


def test_a_worker_that_starts_is_alive() -> None:
    workers.register(at(), DESCRIBED, lease_ms=60_000)

    (found,) = workers.live(at(59.999))

    assert (found.id, found.namespace, found.hostname, found.pid) == (
        "host-1",
        "default",
        "host",
        42,
    )
    assert (found.queues, found.concurrency) == (("a", "b"), 8)
    assert (found.config, found.deployment_id) == ({"lock_grace_seconds": 60}, None)
    assert (found.state, found.clock_skew_ms, found.version) == ("running", 0, "1.0")
    assert (found.started_at, found.heartbeat_at, found.turned_at) == (NOW, NOW, NOW)
    assert workers.live(at(60)) == []


def test_every_queue_is_null() -> None:
    workers.register(at(), {**DESCRIBED, "queues": "null"}, lease_ms=60_000)

    assert workers.live(at())[0].queues is None


def test_a_heartbeat_keeps_it_alive_and_brings_news() -> None:
    workers.register(at(), DESCRIBED, lease_ms=60_000)

    assert workers.beat(
        at(50), "host-1", lease_ms=60_000, state="draining", clock_skew_ms=-70, turn_age_ms=1_500
    )

    (found,) = workers.live(at(109))
    assert (found.turned_at, found.turn_age) == (later(48.5), 1.5)
    assert (found.state, found.clock_skew_ms) == ("draining", -70)
    assert (found.started_at, found.heartbeat_at) == (NOW, later(50))


def test_a_heartbeat_without_a_row_says_so() -> None:
    assert not workers.beat(at(), "gone", lease_ms=1, state="running", clock_skew_ms=0)
    assert Worker.objects.count() == 0


def test_a_worker_that_stops_takes_its_row_with_it() -> None:
    workers.register(at(), DESCRIBED, lease_ms=60_000)
    WorkerFactory(id="other")

    workers.remove(at(), "host-1")
    workers.remove(at(), "host-1")

    assert Worker.objects.get().id == "other"


def test_the_oldest_come_first_and_only_those_of_the_namespace() -> None:
    WorkerFactory(id="b", started_at=NOW)
    WorkerFactory(id="a", started_at=NOW)
    WorkerFactory(id="c", started_at=later(-1))
    WorkerFactory(id="d", namespace="other")

    assert [each.id for each in workers.live(at())] == ["c", "a", "b"]
    assert [each.id for each in workers.live(at(namespace="other"))] == ["d"]


def test_rows_of_workers_gone_for_an_hour_are_forgotten() -> None:
    WorkerFactory(id="long", lease_at=later(-3_601))
    WorkerFactory(id="hour", lease_at=later(-3_600))
    WorkerFactory(id="foreign", lease_at=later(-9_999), namespace="other")

    assert workers.remove_gone(at()) == 1
    assert set(Worker.objects.values_list("id", flat=True)) == {"hour", "foreign"}
