"""The reading methods of Queue: filters, shapes, errors."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from flexiq_django import JobResult, Queue
from flexiq_django.api.context import LogLevel
from flexiq_django.exceptions import GraphTooLargeError, InvalidOptionError
from flexiq_django.store import inspect
from flexiq_django.store.scope import Scope
from tests.factories import (
    NOW,
    ArchivedJobFactory,
    JobErrorFactory,
    JobFactory,
    ReplayHistoryFactory,
    TaskLogFactory,
    WorkerFactory,
    later,
)

pytestmark = pytest.mark.django_db

NOW_MS = int(NOW.timestamp() * 1000)
NONE = {"pending": 0, "running": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 0}


@pytest.mark.parametrize("as_given", [str, lambda key: key, lambda key: key.hex, "{%s}".__mod__])
@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_job_is_found_by_its_id(queue: Queue, factory: Any, as_given: Any) -> None:
    job = factory()

    found = queue.get_job(as_given(job.id))

    assert found is not None
    assert found.id == str(job.id)


@pytest.mark.parametrize(
    "job_id", ["", "nonsense", None, 5, "01900000-0000-7000-8000-000000000000", "\x00"]
)
def test_what_cannot_be_an_id_finds_nothing(queue: Queue, job_id: Any) -> None:
    JobFactory()

    assert queue.get_job(job_id) is None
    assert queue.job_errors(job_id) == []
    assert not queue.cancel_job(job_id)
    assert not queue.cancel_running_job(job_id)


def test_errors_are_plain_values(queue: Queue) -> None:
    job = JobFactory()
    row = JobErrorFactory(job_id=job.id, attempt=0, failed_at=later(1.5))

    (found,) = queue.job_errors(str(job.id))

    assert found == {
        "id": str(row.id), "job_id": str(job.id), "attempt": 0, "error": "ValueError: bad",
        "failed_at": NOW_MS + 1_500,
    }  # fmt: skip
    handle = queue.get_job(str(job.id))
    assert handle is not None
    assert handle.errors == [found]


def test_workers_are_plain_values(queue: Queue) -> None:
    now = inspect.read_clock(Scope())
    fresh = {"started_at": NOW, "heartbeat_at": later(2), "lease_at": now + timedelta(hours=1)}
    WorkerFactory(id="a", queues='["x"]', config='{"b": 1}', deployment_id="blue", **fresh)
    WorkerFactory(id="gone", lease_at=now - timedelta(seconds=1))

    (found,) = queue.workers()

    assert json.loads(json.dumps(found)) == found
    assert found == {
        "id": "a", "namespace": "default", "hostname": "host", "pid": 42, "queues": ["x"],
        "executor": "threads", "concurrency": 8, "deployment_id": "blue", "version": "0",
        "state": "running", "clock_skew_ms": 0, "started_at": NOW_MS,
        "heartbeat_at": NOW_MS + 2_000, "turned_at": NOW_MS, "config": {"b": 1},
    }  # fmt: skip


def test_ids_are_texts(queue: Queue) -> None:
    (job,) = queue.list_jobs() or [queue.enqueue("app.work")]

    assert isinstance(job.id, str)
    assert str(UUID(job.id)) == job.id


# --- what is connected, what was run again, what was logged ---------------------------------------


def test_the_graph_of_a_job(queue: Queue) -> None:
    parent = queue.enqueue("app.first")
    middle = queue.enqueue("app.second", depends_on=parent)
    child = queue.enqueue("app.third", depends_on=[parent, middle])
    queue.enqueue("app.alone")

    found = queue.job_dag(middle.id)

    assert found["nodes"][0] == middle.to_dict()
    assert {node["id"] for node in found["nodes"]} == {parent.id, middle.id, child.id}
    assert all(node == JobResult(queue, UUID(node["id"])).to_dict() for node in found["nodes"])
    assert sorted(found["edges"], key=lambda edge: (edge["from"], edge["to"])) == [
        {"from": parent.id, "to": middle.id},
        {"from": parent.id, "to": child.id},
        {"from": middle.id, "to": child.id},
    ]


@pytest.mark.parametrize("job_id", ["nonsense", "01900000-0000-7000-8000-000000000000", None])
def test_of_an_unknown_job_nothing_is_known(queue: Queue, job_id: Any) -> None:
    assert queue.job_dag(job_id) == {"nodes": [], "edges": []}
    assert queue.replay_history(job_id) == []
    assert queue.task_logs(job_id) == []


def test_a_graph_larger_than_allowed_is_refused(queue: Queue) -> None:
    parent = queue.enqueue("app.first")
    for _ in range(3):
        queue.enqueue("app.second", depends_on=parent)

    assert len(queue.job_dag(parent.id, max_jobs=4)["nodes"]) == 4
    with pytest.raises(GraphTooLargeError, match="connected to more than 3 jobs"):
        queue.job_dag(parent.id, max_jobs=3)
    with pytest.raises(InvalidOptionError, match=r"^max_jobs is 0; allowed is"):
        queue.job_dag(parent.id, max_jobs=0)


def test_replays_are_plain_values(queue: Queue) -> None:
    job = JobFactory()
    first = ReplayHistoryFactory(original_job_id=job.id, original_error="ValueError: bad")
    second = ReplayHistoryFactory(original_job_id=job.id, replayed_at=later(2), replay_error="x")

    found = queue.replay_history(str(job.id))

    assert [row["id"] for row in found] == [str(second.id), str(first.id)]
    assert found[1] == {
        "id": str(first.id), "original_job_id": str(job.id),
        "replay_job_id": str(first.replay_job_id), "replayed_at": NOW_MS,
        "original_error": "ValueError: bad", "replay_error": None,
    }  # fmt: skip
    assert found[0]["replay_error"] == "x"
    assert queue.replay_history(str(first.replay_job_id)) == []


def test_log_lines_of_a_job_are_plain_values(queue: Queue) -> None:
    job = JobFactory()
    second = TaskLogFactory(job_id=job.id, logged_at=later(1), level="result", extra='{"a": 1}')
    first = TaskLogFactory(job_id=job.id, message="begun")
    TaskLogFactory(job_id=job.id, namespace="other")
    TaskLogFactory()

    found = queue.task_logs(str(job.id))

    assert [row["id"] for row in found] == [str(first.id), str(second.id)]
    assert found[0] == {
        "id": str(first.id), "job_id": str(job.id), "task_name": "app.tasks.work", "level": "info",
        "message": "begun", "extra": None, "logged_at": NOW_MS,
    }  # fmt: skip
    assert found[1]["extra"] == '{"a": 1}'


def test_lines_of_the_last_hour(queue: Queue) -> None:
    now = inspect.read_clock(Scope())

    def line(ago: float, **fields: Any) -> str:
        return str(TaskLogFactory(logged_at=now - timedelta(seconds=ago), **fields).id)

    old, middle = line(4_000), line(20, level="error", task_name="b")
    new = line(10)
    line(5, namespace="other")

    def found(*args: Any, **options: Any) -> list[str]:
        return [row["id"] for row in queue.query_logs(*args, **options)]

    assert found() == [new, middle]
    assert found(since=5_000) == [new, middle, old]
    assert found("b") == found(level="error") == found(level=LogLevel.ERROR) == [middle]
    assert found("b", "info") == found("unknown") == []
    assert found(limit=1) == [new]
    assert found(limit=0) == []


def test_a_hundred_lines_unless_told_otherwise(queue: Queue) -> None:
    now = inspect.read_clock(Scope())
    for _ in range(101):
        TaskLogFactory(logged_at=now)

    assert len(queue.query_logs()) == 100


def test_an_unknown_level_is_told_the_known_ones(queue: Queue) -> None:
    with pytest.raises(InvalidOptionError, match=r"^level is 'loud'; allowed are debug, info"):
        queue.query_logs(level="loud")
    with pytest.raises(InvalidOptionError, match=r"^limit is"):
        queue.query_logs(limit=-1)
