"""The database itself refuses a job in a state that cannot be."""

from typing import Any

import pytest
from django.db import DataError, IntegrityError, OperationalError, transaction

from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.models import Job
from tests.factories import NOW, ArchivedJobFactory, JobFactory

pytestmark = pytest.mark.django_db

#: MariaDB reports a failed CHECK as OperationalError 4025, and a number out of range as DataError.
REFUSALS = (IntegrityError, OperationalError, DataError)


def refused(factory: Any, **fields: Any) -> None:
    with pytest.raises(REFUSALS), transaction.atomic():
        factory(**fields)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"scheduled": True},
        {"waiting": True},
        {"running": True},
        {"waiting": True, "status": "paused"},
        {"ended": True},
        {"ended": True, "status": "dead"},
        {"ended": True, "status": "failed"},
        {"ended": True, "status": "cancelled"},
        {"running": True, "active_key": "k"},
        {"progress": 0},
        {"progress": 100},
    ],
)
def test_every_state_of_a_job_is_accepted(state: dict[str, Any]) -> None:
    job = JobFactory(**state)

    assert Job.objects.filter(id=job.id).count() == 1


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"status": "processing"}, id="unknown status"),
        pytest.param({"status": ""}, id="empty status"),
        pytest.param({"promote_at": NOW}, id="ready and due later"),
        pytest.param({"running": True, "ready_lane": "default"}, id="running and ready"),
        pytest.param({"running": True, "promote_at": NOW}, id="running and due later"),
        pytest.param({"ended": True, "ready_lane": "default"}, id="ended and ready"),
        pytest.param({"ended": True, "promote_at": NOW}, id="ended and due later"),
        pytest.param({"status": "paused"}, id="paused and ready"),
        pytest.param({"running": True, "lease_at": None}, id="running without lease"),
        pytest.param({"lease_at": NOW}, id="lease while pending"),
        pytest.param({"ended": True, "lease_at": NOW}, id="lease after the end"),
        pytest.param({"ended": True, "completed_at": None}, id="ended without time"),
        pytest.param({"ended": True, "active_key": "k"}, id="ended and holding its key"),
        pytest.param({"completed_at": NOW}, id="pending with an end"),
        pytest.param({"running": True, "completed_at": NOW}, id="running with an end"),
        pytest.param({"progress": 101}, id="progress over 100"),
        pytest.param({"progress": -1}, id="negative progress"),
        pytest.param({"max_retries": -1}, id="negative budget"),
        pytest.param({"retry_count": -1}, id="negative retries"),
        pytest.param({"attempt": -1}, id="negative attempt"),
        pytest.param({"timeout_ms": -1}, id="negative timeout"),
        pytest.param({"result_ttl_ms": -1}, id="negative lifetime"),
        pytest.param({"payload": None}, id="no payload"),
        pytest.param({"queue": None, "ready_lane": "x"}, id="no queue"),
        pytest.param({"scheduled_at": None}, id="no due time"),
    ],
)
def test_a_job_that_cannot_be_is_refused(state: dict[str, Any]) -> None:
    refused(JobFactory, **state)


@pytest.mark.parametrize("status", sorted(set(JobStatus) - TERMINAL))
def test_a_job_that_has_not_ended_is_not_archived(status: JobStatus) -> None:
    refused(ArchivedJobFactory, status=status.value)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_job_that_has_ended_is_archived_with_its_time(status: JobStatus) -> None:
    ArchivedJobFactory(status=status.value)

    refused(ArchivedJobFactory, status=status.value, completed_at=None)


def test_ids_are_taken_once() -> None:
    job = JobFactory()

    refused(JobFactory, id=job.id)


def test_an_active_key_is_held_once_in_a_namespace() -> None:
    JobFactory(active_key="k")
    JobFactory(active_key="k", namespace="other")
    JobFactory(active_key=None)
    JobFactory(active_key=None)

    refused(JobFactory, active_key="k")
    refused(JobFactory, active_key="k", running=True)


@pytest.mark.parametrize("priority", [-(2**31) + 1, -1, 0, 1, 2**31 - 1])
def test_rank_is_minus_the_priority(priority: int) -> None:
    job = JobFactory(priority=priority)

    assert Job.objects.get(id=job.id).rank == -priority


def test_rank_follows_a_changed_priority() -> None:
    job = JobFactory(priority=3)
    Job.objects.filter(id=job.id).update(priority=8)

    assert Job.objects.get(id=job.id).rank == -8
