"""A worker keeps the tables small, says by which windows, and stops where it may not work."""

import pytest

from flexiq_django import queue
from flexiq_django.models import ArchivedJob, Job, TaskLog
from flexiq_django.store import settings
from tests.factories import ArchivedJobFactory, JobFactory, TaskLogFactory, at
from tests.flows.conftest import Workers
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

ANNOUNCEMENT = "no retention is configured"


def test_recommended_windows_unless_somebody_says_otherwise(
    workers: Workers, namespace: str
) -> None:
    TaskLogFactory(namespace=namespace)
    ArchivedJobFactory(namespace=namespace)
    young = JobFactory(ended=True, namespace=namespace)
    Job.objects.filter(id=young.id).update(completed_at=None, status="pending")
    assert queue.effective_retention() is None

    worker = workers.start()

    wait_until(lambda: not TaskLog.objects.exists() and not ArchivedJob.objects.exists())
    worker.wait_for_log(ANNOUNCEMENT)
    found = wait_until(queue.effective_retention)
    assert (found.enabled, found.defaulted, found.namespace) == (True, True, namespace)
    assert found.windows == queue.dry_run_retention().windows
    assert Job.objects.filter(id=young.id).exists()


def test_retention_that_is_off(workers: Workers, namespace: str) -> None:
    TaskLogFactory(namespace=namespace)
    ArchivedJobFactory(namespace=namespace)
    mortal = ArchivedJobFactory(namespace=namespace, purge_at=at().now)

    worker = workers.start(RETENTION={})

    wait_until(lambda: not ArchivedJob.objects.filter(id=mortal.id).exists())
    found = wait_until(queue.effective_retention)
    assert (found.enabled, found.defaulted) == (False, False)
    assert TaskLog.objects.count() == ArchivedJob.objects.count() == 1
    assert ANNOUNCEMENT not in worker.log


def test_ended_jobs_move_to_the_archive_by_themselves(workers: Workers, namespace: str) -> None:
    old = JobFactory(ended=True, namespace=namespace)

    workers.start(RETENTION={})

    wait_until(lambda: ArchivedJob.objects.filter(id=old.id).exists())
    assert queue.get_job(str(old.id)) is not None
    assert queue.stats()["completed"] == 0


def test_no_worker_works_below_the_contract_floor(workers: Workers) -> None:
    settings.put(queue.place, "contract:min_sdk", "99")

    worker = workers.launch()

    assert worker.wait() == 1
    assert "asks for contract level 99 or newer" in worker.log
    assert "Traceback" not in worker.log
