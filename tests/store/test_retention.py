"""purge_outlived deletes ended jobs whose own lifetime is over, with all that belongs to them."""

from typing import Any
from uuid import UUID

import pytest

from flexiq_django.models import (
    ArchivedJob,
    DeadLetter,
    Job,
    JobDependency,
    JobError,
    ReplayHistory,
    TaskLog,
    TaskMetric,
)
from flexiq_django.store.retention import CHILDREN, purge_outlived
from tests.factories import (
    NOW,
    ArchivedJobFactory,
    DeadLetterFactory,
    JobDependencyFactory,
    JobErrorFactory,
    JobFactory,
    ReplayHistoryFactory,
    TaskLogFactory,
    TaskMetricFactory,
    at,
    later,
)
from tests.store.acting import stored

pytestmark = pytest.mark.django_db

CHILD_MODELS = (JobError, TaskLog, TaskMetric, JobDependency, ReplayHistory)


def with_children(job_id: UUID) -> None:
    JobErrorFactory(job_id=job_id)
    TaskLogFactory(job_id=job_id)
    TaskMetricFactory(job_id=job_id)
    JobDependencyFactory(job_id=job_id, is_open=False)
    JobDependencyFactory(parent_id=job_id, is_open=False)
    ReplayHistoryFactory(original_job_id=job_id)


def child_counts() -> list[int]:
    return [model.objects.count() for model in CHILD_MODELS]


@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_job_goes_with_all_that_belongs_to_it(factory: Any) -> None:
    ended = {"ended": True} if factory is JobFactory else {}
    old = factory(purge_at=NOW, **ended)
    young = factory(purge_at=later(0.001), **ended)
    with_children(old.id)
    with_children(young.id)

    assert purge_outlived(at()) == 1

    model = type(old)
    assert model.objects.get().id == young.id
    assert child_counts() == [1, 1, 1, 2, 1]
    assert JobError.objects.get().job_id == young.id
    assert purge_outlived(at()) == 0


def test_the_history_of_a_replay_goes_with_its_original_only() -> None:
    copy = JobFactory(ended=True, purge_at=NOW)
    ReplayHistoryFactory(replay_job_id=copy.id)

    purge_outlived(at())

    assert ReplayHistory.objects.count() == 1


def test_every_table_that_names_a_job_is_known() -> None:
    tables = {table for table, _ in CHILDREN}

    assert tables == {model._meta.db_table for model in CHILD_MODELS}


def test_without_a_lifetime_nothing_goes() -> None:
    JobFactory(ended=True)
    ArchivedJobFactory()
    DeadLetterFactory()

    assert purge_outlived(at(10**9)) == 0


def test_dead_letters_have_their_own_lifetime() -> None:
    DeadLetterFactory(purge_at=NOW)
    young = DeadLetterFactory(purge_at=later(1))

    assert purge_outlived(at()) == 1
    assert DeadLetter.objects.get().id == young.id


def test_no_more_than_the_limit_of_each_table() -> None:
    for factory, fields in [(JobFactory, {"ended": True}), (ArchivedJobFactory, {}),
                            (DeadLetterFactory, {})]:  # fmt: skip
        for number in range(3):
            factory(purge_at=later(-number), **fields)

    assert purge_outlived(at(), limit=2) == 6
    assert [model.objects.get().purge_at for model in (Job, ArchivedJob)] == [NOW, NOW]
    assert purge_outlived(at(), limit=2) == 3
    assert purge_outlived(at(), limit=2) == 0


def test_purging_stays_in_its_namespace() -> None:
    JobFactory(ended=True, purge_at=NOW, namespace="other")
    ArchivedJobFactory(purge_at=NOW, namespace="other")
    DeadLetterFactory(purge_at=NOW, namespace="other")

    assert purge_outlived(at()) == 0
    assert purge_outlived(at(namespace="other")) == 3


@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_dependent_that_still_waits_for_a_purged_job_moves_first(factory: Any) -> None:
    ended = {"ended": True} if factory is JobFactory else {}
    fine = factory(purge_at=NOW, **ended)
    dead = factory(purge_at=NOW, status="dead", **ended)
    released, doomed = JobFactory(waiting=True), JobFactory(waiting=True)
    JobDependencyFactory(job_id=released.id, parent_id=fine.id)
    JobDependencyFactory(job_id=doomed.id, parent_id=dead.id)

    assert purge_outlived(at()) == 2

    assert stored(released.id).ready_lane == "default"
    assert stored(doomed.id).error == f"dependency failed: {dead.id}"
    assert JobDependency.objects.count() == 0
