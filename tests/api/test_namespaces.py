"""Namespaces never meet: what lies in another one looks unknown."""

import pytest

from flexiq_django import Queue
from flexiq_django.exceptions import DependencyError, JobNotActiveError
from flexiq_django.models import Job
from tests.factories import (
    ArchivedJobFactory,
    DeadLetterFactory,
    JobErrorFactory,
    JobFactory,
    PeriodicTaskFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> Queue:
    return Queue("here")


@pytest.fixture
def there() -> Queue:
    return Queue("there")


def test_nothing_of_another_namespace_is_seen(here: Queue) -> None:
    job = JobFactory(namespace="there", running=True)
    JobErrorFactory(namespace="there", job_id=job.id)
    ArchivedJobFactory(namespace="there")
    DeadLetterFactory(namespace="there")
    PeriodicTaskFactory(namespace="there")

    assert here.get_job(str(job.id)) is None
    assert here.list_jobs() == here.list_archived() == here.dead_letters() == []
    assert here.job_errors(str(job.id)) == here.list_periodic() == here.workers() == []
    assert sum(here.stats().values()) == 0
    assert here.stats_by_queue() == {}
    assert here.oldest_ready_seconds() is None


def test_nothing_of_another_namespace_is_changed(here: Queue) -> None:
    pending = JobFactory(namespace="there")
    running = JobFactory(namespace="there", running=True)
    JobFactory(namespace="there", ended=True)
    before = list(Job.objects.order_by("id").values())

    assert not here.cancel_job(str(pending.id))
    assert not here.cancel_running_job(str(running.id))
    with pytest.raises(JobNotActiveError):
        here.update_progress(str(running.id), 5)
    assert here.archive(-5) == 0
    assert list(Job.objects.order_by("id").values()) == before


def test_keys_and_parents_stay_apart(here: Queue, there: Queue) -> None:
    theirs = there.enqueue("app.work", unique_key="k")

    assert here.enqueue("app.work", unique_key="k") != theirs
    with pytest.raises(DependencyError, match="in namespace 'here'"):
        here.enqueue("app.work", depends_on=theirs)


def test_a_listing_may_look_elsewhere(here: Queue, there: Queue) -> None:
    mine, theirs = here.enqueue("app.work"), there.enqueue("app.work")

    assert here.list_jobs() == [mine]
    assert here.list_jobs(namespace="there") == [theirs]
    assert here.list_jobs(namespace=None) == [theirs, mine]
    assert [job.namespace for job in here.list_jobs(namespace=None)] == ["there", "here"]
    assert here.list_jobs(namespace="empty") == []


def test_a_job_found_elsewhere_tells_all_of_itself(here: Queue) -> None:
    job = JobFactory(namespace="there")
    JobErrorFactory(namespace="there", job_id=job.id, error="bad")

    (found,) = here.list_jobs(namespace="there")

    assert [each["error"] for each in found.errors] == ["bad"]


def test_a_queue_without_a_namespace_is_in_that_of_the_settings(settings: object) -> None:
    queue = Queue()
    assert queue.scope.namespace == "default"
    queue.enqueue("app.work")

    settings.FLEXIQ = {"NAMESPACE": "project"}  # type: ignore[attr-defined]

    assert queue.scope.namespace == "project"
    assert queue.list_jobs() == []
    queue.enqueue("app.work")
    assert set(Job.objects.values_list("namespace", flat=True)) == {"default", "project"}


@pytest.mark.parametrize("other", ["Here", "here\u200a", "hére"])
def test_lookalikes_are_two_namespaces(here: Queue, other: str) -> None:
    JobFactory(namespace=other)

    assert here.list_jobs() == []
