"""A queue with tasks of its own for every test."""

import json
import weakref
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from flexiq_django import JobResult, Queue
from flexiq_django.api import default, registry
from flexiq_django.models import ArchivedJob, DeadLetter, Job, JobDependency
from flexiq_django.store import settle
from tests.factories import at
from tests.store.acting import claim_one, settlement

Ender = Callable[..., None]


@pytest.fixture(autouse=True)
def own_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds the tasks of the queues that another has made and left to the collector."""
    monkeypatch.setattr(registry, "_queues", weakref.WeakSet([default.queue]))


@pytest.fixture
def queue() -> Queue:
    """A queue in the namespace that the store tests look into."""
    return Queue("default")


@pytest.fixture
def end() -> Ender:
    """Claim a job and end it: `end(handle, "dead", error="...")`."""

    def act(handle: JobResult, status: str = "complete", **fields: Any) -> None:
        job = claim_one(queues=[handle.queue])
        assert str(job.id) == handle.id
        assert settle.settle(at(), [settlement(job, status, **fields)]).settled == {job.id}

    return act


def open_first(queue: Queue) -> None:
    """The first use of a queue in a process asks who may work with the database."""
    assert queue.scope == queue.place


def row_of(handle: JobResult) -> Job:
    """The stored row behind a handle."""
    return Job.objects.get(id=UUID(handle.id))


def call_of(handle: JobResult) -> list[Any]:
    """The stored arguments: [args, kwargs]."""
    return list(json.loads(row_of(handle).payload))


def row_counts() -> list[int]:
    """How many rows the tables have that an enqueue may write to."""
    return [model.objects.count() for model in (Job, ArchivedJob, JobDependency, DeadLetter)]
