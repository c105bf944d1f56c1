"""What the database refuses in the tables around the jobs."""

from typing import Any

import pytest
from django.db import DataError, IntegrityError, OperationalError, transaction

from flexiq_django.models import JobDependency, Lease, Setting, TaskState, Worker
from flexiq_django.store.ids import new_id
from tests.factories import (
    NOW,
    DeadLetterFactory,
    JobDependencyFactory,
    JobErrorFactory,
    PeriodicTaskFactory,
    QueueStateFactory,
    ReplayHistoryFactory,
    TaskLogFactory,
    TaskMetricFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

REFUSALS = (IntegrityError, OperationalError, DataError)


def refused(factory: Any, **fields: Any) -> None:
    with pytest.raises(REFUSALS), transaction.atomic():
        factory(**fields)


def test_no_job_depends_on_itself() -> None:
    key = new_id()

    refused(JobDependencyFactory, job_id=key, parent_id=key)


def test_an_edge_exists_once() -> None:
    edge = JobDependencyFactory()
    JobDependencyFactory(job_id=edge.job_id)
    JobDependencyFactory(parent_id=edge.parent_id)
    JobDependencyFactory(job_id=edge.parent_id, parent_id=edge.job_id)

    refused(JobDependencyFactory, job_id=edge.job_id, parent_id=edge.parent_id)
    assert JobDependency.objects.count() == 4


@pytest.mark.parametrize("factory", [QueueStateFactory, PeriodicTaskFactory])
def test_a_name_is_taken_once_in_a_namespace(factory: Any) -> None:
    factory(name="mail")
    factory(name="Mail")
    factory(name="mail", namespace="other")

    refused(factory, name="mail")


def test_a_task_has_one_state() -> None:
    TaskState.objects.create(namespace="a", name="t")
    TaskState.objects.create(namespace="b", name="t")

    refused(TaskState.objects.create, namespace="a", name="t")


@pytest.mark.parametrize(
    ("create", "fields"),
    [
        (Setting.objects.create, {"key": "k", "value": "", "updated_at": NOW}),
        (Lease.objects.create, {"name": "leader:default", "holder": "a", "expires_at": NOW}),
        (WorkerFactory, {"id": "worker"}),
    ],
)
def test_a_key_is_taken_once(create: Any, fields: dict[str, Any]) -> None:
    create(**fields)

    refused(create, **fields)


@pytest.mark.parametrize(
    ("factory", "fields"),
    [
        (QueueStateFactory, {"max_concurrent": -1}),
        (PeriodicTaskFactory, {"next_run_at": None}),
        (PeriodicTaskFactory, {"misfire_window_ms": -1}),
        (PeriodicTaskFactory, {"missed_count": -1}),
        (WorkerFactory, {"lease_at": None}),
        (WorkerFactory, {"concurrency": -1}),
        (JobErrorFactory, {"error": None}),
        (JobErrorFactory, {"attempt": -1}),
        (TaskLogFactory, {"message": None}),
        (TaskMetricFactory, {"duration_ms": None}),
        (ReplayHistoryFactory, {"replay_job_id": None}),
        (DeadLetterFactory, {"original_job_id": None}),
        (DeadLetterFactory, {"dlq_retry_count": -1}),
    ],
)
def test_a_column_without_its_value_is_refused(factory: Any, fields: dict[str, Any]) -> None:
    refused(factory, **fields)


def test_a_clock_may_be_behind() -> None:
    worker = WorkerFactory(clock_skew_ms=-(2**40))

    assert Worker.objects.get(id=worker.id).clock_skew_ms == -(2**40)
