"""purge_dead and purge_completed: what is old goes with all that belongs to it, nothing else."""

from typing import Any

import pytest

from flexiq_django.models import ArchivedJob, DeadLetter, Job
from flexiq_django.store import purge
from flexiq_django.store.enqueue import insert_jobs
from flexiq_django.store.steer import cancel_pending
from flexiq_django.store.vendors import open_database
from tests.concurrency import run_in_threads
from tests.factories import (
    ArchivedJobFactory,
    DeadLetterFactory,
    JobDependencyFactory,
    JobFactory,
    NewJobFactory,
    at,
    later,
)
from tests.store.acting import stored
from tests.store.test_retention import child_counts, with_children

pytestmark = pytest.mark.django_db

BOTH = pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(open_database(at())), "batch_size", 3)


def make(factory: Any, status: str = "complete", **fields: Any) -> Any:
    """An ended job, live or archived."""
    ended = {"ended": True} if factory is JobFactory else {}
    return factory(**{**ended, "status": status, **fields})


def purge_dead(seconds: float = 0, older_than: float = 0, **scope: Any) -> int:
    return sum(purge.purge_dead(at(seconds, **scope), older_than_ms=round(older_than * 1000)))


def purge_completed(seconds: float = 0, older_than: float = 0, **scope: Any) -> int:
    where = at(seconds, **scope)
    return sum(purge.purge_completed(where, older_than_ms=round(older_than * 1000)))


# --- completed jobs -------------------------------------------------------------------------------


@BOTH
def test_a_completed_job_goes_with_all_that_belongs_to_it(factory: Any) -> None:
    old, young = make(factory), make(factory, completed_at=later(1))
    with_children(old.id)
    with_children(young.id)

    assert purge_completed(61, 60) == 1

    assert type(old).objects.get().id == young.id
    assert child_counts() == [1, 1, 1, 2, 1]
    assert purge_completed(61, 60) == 0


@BOTH
@pytest.mark.parametrize(("older_than", "removed"), [(60, 0), (59.999, 1), (-(10**9), 1), (0, 1)])
def test_the_age_is_exceeded_not_reached(factory: Any, older_than: float, removed: int) -> None:
    make(factory)
    assert purge_completed(60, older_than) == removed


@BOTH
def test_other_ends_stay_however_many_are_older(factory: Any, small_batches: None) -> None:
    kept = [make(factory, status, completed_at=later(-9)) for status in ("dead", "cancelled") * 4]
    for number in range(10):
        make(factory, completed_at=later(-number % 4))
    JobFactory()
    JobFactory(running=True)

    assert purge_completed(9) == 10

    assert set(type(kept[0]).objects.exclude(completed_at=None)) == set(kept)
    assert Job.objects.filter(completed_at=None).count() == 2


def test_many_that_ended_at_the_same_moment(small_batches: None) -> None:
    for factory in (JobFactory, ArchivedJobFactory):
        for number in range(14):
            make(factory, "dead" if number % 2 else "complete")

    assert purge_completed(9) == 14
    assert set(Job.objects.values_list("status", flat=True)) == {"dead"}


def test_purging_stays_in_its_namespace() -> None:
    for factory in (JobFactory, ArchivedJobFactory):
        make(factory, namespace="other")
    DeadLetterFactory(namespace="other")

    assert purge_completed(9) == purge_dead(9) == 0
    assert purge_completed(9, namespace="other") == 2
    assert purge_dead(9, namespace="other") == 1


@BOTH
def test_what_still_waits_for_a_purged_job_goes_on(factory: Any) -> None:
    child = JobFactory(waiting=True)
    JobDependencyFactory(job_id=child.id, parent_id=make(factory).id)

    assert purge_completed(9) == 1

    assert stored(child.id).ready_lane == "default"


def test_what_completes_during_a_purge_stays() -> None:
    make(JobFactory)
    batches = purge.purge_completed(at(9), older_than_ms=0)
    assert next(batches) == 1
    young = make(JobFactory, completed_at=later(9))

    assert list(batches) == []
    assert Job.objects.get().id == young.id


@pytest.mark.django_db(transaction=True)
def test_two_purges_at_once_count_each_job_once(small_batches: None) -> None:
    for number in range(20):
        make((JobFactory, ArchivedJobFactory)[number % 2])

    assert sum(run_in_threads([lambda: purge_completed(9)] * 2)) == 20
    assert not Job.objects.exists()
    assert not ArchivedJob.objects.exists()


# --- dead letters ---------------------------------------------------------------------------------


@BOTH
def test_a_letter_goes_with_its_job_and_all_that_belongs_to_it(factory: Any) -> None:
    jobs = [make(factory, "dead"), make(factory, "dead")]
    for number, job in enumerate(jobs):
        with_children(job.id)
        DeadLetterFactory(original_job_id=job.id, failed_at=later(number))
    other = make(factory)
    with_children(other.id)

    assert purge_dead(61, 60) == 1

    assert DeadLetter.objects.get().original_job_id == jobs[1].id
    assert set(type(other).objects.values_list("id", flat=True)) == {jobs[1].id, other.id}
    assert child_counts() == [2, 2, 2, 4, 2]


@pytest.mark.parametrize(("older_than", "removed"), [(60, 0), (59.999, 1), (-(10**9), 1), (0, 1)])
def test_the_age_of_a_letter_is_exceeded_not_reached(older_than: float, removed: int) -> None:
    DeadLetterFactory()
    assert purge_dead(60, older_than) == removed


def test_what_a_job_left_behind_that_is_gone_already() -> None:
    letter = DeadLetterFactory()
    with_children(letter.original_job_id)

    assert purge_dead(9) == 1

    assert child_counts() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("state", [{}, {"running": True}, {"ended": True}], ids=str)
def test_a_job_that_is_not_dead_any_more_stays(state: dict[str, Any]) -> None:
    job = JobFactory(**state)
    with_children(job.id)
    DeadLetterFactory(original_job_id=job.id)

    assert purge_dead(9) == 1

    assert Job.objects.get().id == job.id
    assert child_counts() == [1, 1, 1, 2, 1]


def test_dead_jobs_without_a_letter_stay() -> None:
    job = make(JobFactory, "dead")
    assert purge_dead(10**6) == 0
    assert Job.objects.get() == job


def test_letters_in_batches(small_batches: None) -> None:
    for number in range(10):
        job = make(JobFactory, "dead")
        DeadLetterFactory(original_job_id=job.id, failed_at=later(-number))

    assert list(purge.purge_dead(at(9), older_than_ms=0)) == [3, 3, 3, 1]
    assert not Job.objects.exists()


# --- pending jobs of a queue ----------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_purge_of_a_queue_and_an_enqueue_at_once_leave_no_job_in_between() -> None:
    def enqueue() -> None:
        for _ in range(20):
            insert_jobs(at(), [NewJobFactory(queue="mail") for _ in range(3)])

    JobFactory(queue="mail")
    cancelled, _ = run_in_threads([
        lambda: cancel_pending(at(), error="purged", queue="mail"),
        enqueue,
    ])  # fmt: skip

    rows = list(Job.objects.values_list("status", "error", "ready_lane", "completed_at"))
    assert len(rows) == 61
    gone = [row for row in rows if row[0] == "cancelled"]
    assert len(gone) == cancelled >= 1
    assert all(row[1:3] == ("purged", None) and row[3] for row in gone)
    assert {row for row in rows if row[0] != "cancelled"} <= {("pending", None, "mail", None)}
