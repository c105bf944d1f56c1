"""Cancel, reorder, label, prune."""

from typing import Any

import pytest

from flexiq_django import db as jobs
from flexiq_django.exceptions import (
    InvalidOptionError,
    JobNotCancellableError,
    JobNotFoundError,
)
from flexiq_django.models import ArchivedJob, DeadLetter, Job, JobError
from tests.concurrency import run_in_threads
from tests.db.conftest import LONG_AGO, change, claimed, row_of
from tests.factories import (
    ArchivedJobFactory,
    DeadLetterFactory,
    JobErrorFactory,
    JobFactory,
)

UNKNOWN = "01890000-0000-7000-8000-000000000000"


def test_a_pending_job_is_cancelled_with_what_depends_on_it(place: jobs.JobDatabase) -> None:
    job_id = jobs.insert_job(place, 1)
    child = jobs.insert_job_full(place, 2, depends_on=job_id)

    assert not jobs.is_cancelled(place, job_id)
    assert jobs.cancel_job(place, job_id) == "pending"

    assert jobs.is_cancelled(place, job_id)
    assert jobs.is_cancelled(place, child)
    assert jobs.claim(place, "me") is None


def test_a_running_job_is_lost_to_its_attempt_at_once(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    child = jobs.insert_job_full(place, 2, depends_on=claim.id)

    assert jobs.cancel_job(place, claim.id) == "processing"

    row = row_of(claim)
    assert (row.status, row.error, row.lease_at) == ("cancelled", "cancelled by request", None)
    assert row.started_at is not None
    assert jobs.is_cancelled(place, claim.id)
    assert jobs.is_cancelled(place, child)
    assert not jobs.heartbeat(place, claim)
    assert not jobs.mark_completed_owned(place, claim)
    assert not DeadLetter.objects.exists()


def test_a_request_to_stop_is_seen_too(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    assert place.queue.cancel_running_job(claim.id)
    assert jobs.is_cancelled(place, claim.id)
    assert jobs.mark_completed_owned(place, claim)
    assert not jobs.is_cancelled(place, claim.id)


def test_what_cannot_be_cancelled(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    jobs.mark_completed_owned(place, claim)
    archived = str(ArchivedJobFactory().id)

    for key in (claim.id, archived):
        with pytest.raises(JobNotCancellableError, match="is completed; only a job that is"):
            jobs.cancel_job(place, key)
    for key in (UNKNOWN, "no id"):
        with pytest.raises(JobNotFoundError):
            jobs.cancel_job(place, key)
        with pytest.raises(JobNotFoundError):
            jobs.is_cancelled(place, key)


@pytest.mark.django_db(transaction=True)
def test_a_cancel_races_the_end_of_the_attempt() -> None:
    place = jobs.open_database()
    claim = claimed(place)

    def cancel() -> bool:
        try:
            return jobs.cancel_job(place, claim.id) == "processing"
        except JobNotCancellableError:
            return False

    outcomes = run_in_threads([cancel, lambda: jobs.mark_completed_owned(place, claim)])

    assert sorted(outcomes) == [False, True]
    assert row_of(claim).status == ("cancelled" if outcomes[0] else "complete")


def test_priorities(place: jobs.JobDatabase) -> None:
    first, second = jobs.insert_job(place, 1), jobs.insert_job(place, 2)

    assert jobs.reorder_pending(place, second, 5)
    claim = jobs.claim(place, "me")
    assert claim is not None
    assert claim.id == second
    assert not jobs.reorder_pending(place, second, 6)
    assert jobs.update_priority(place, second, 7)
    assert [row_of(each).priority for each in (first, second)] == [0, 7]
    assert jobs.mark_completed_owned(place, claim)
    assert jobs.update_priority(place, second, -1)
    for key in (UNKNOWN, "no id", str(ArchivedJobFactory().id)):
        assert not jobs.update_priority(place, key, 1)
        assert not jobs.reorder_pending(place, key, 1)


@pytest.mark.parametrize("priority", [None, 1.5, True, 2**31, -(2**31)])
def test_bad_priorities_are_refused(place: jobs.JobDatabase, priority: Any) -> None:
    job_id = jobs.insert_job(place, 1)
    with pytest.raises(InvalidOptionError):
        jobs.update_priority(place, job_id, priority)
    with pytest.raises(InvalidOptionError):
        jobs.reorder_pending(place, job_id, priority)
    assert row_of(job_id).priority == 0


def test_the_lineage_of_a_job(place: jobs.JobDatabase) -> None:
    claim = claimed(place)

    assert jobs.update_canonical_lineage(place, claim.id, attempt_id="a-1", trial_id="t-1")
    assert jobs.update_canonical_lineage(place, claim, attempt_id="a-2")
    row = row_of(claim)
    assert (row.attempt_id, row.trial_id) == ("a-2", "t-1")
    assert not jobs.update_canonical_lineage(place, UNKNOWN, attempt_id="a")
    assert not jobs.update_canonical_lineage(place, "no id", attempt_id="a")
    with pytest.raises(InvalidOptionError):
        jobs.update_canonical_lineage(place, claim, attempt_id="x" * 201)


def test_old_jobs_go_with_all_that_belongs_to_them(place: jobs.JobDatabase) -> None:
    old = [
        JobFactory(ended=True, status=status, completed_at=LONG_AGO)
        for status in ("complete", "dead", "cancelled")
    ]
    archived = ArchivedJobFactory(completed_at=LONG_AGO)
    for job in (*old, archived):
        JobErrorFactory(job_id=job.id)
    DeadLetterFactory(original_job_id=old[1].id, failed_at=LONG_AGO)
    kept_letter = DeadLetterFactory()
    JobFactory(ended=True, status="complete", completed_at=LONG_AGO, namespace="theirs")
    waiting = JobFactory(waiting=True, created_at=LONG_AGO)
    paused = JobFactory(ready_lane=None, status="paused", created_at=LONG_AGO)
    fresh = claimed(place)
    jobs.mark_completed_owned(place, fresh)

    assert jobs.prune_old_jobs(place, 30) == 4

    left = set(Job.objects.filter(namespace="default").values_list("id", flat=True))
    assert left == {waiting.id, paused.id, row_of(fresh).id}
    assert not ArchivedJob.objects.exists()
    assert not JobError.objects.exists()
    assert [each.id for each in DeadLetter.objects.all()] == [kept_letter.id]
    assert Job.objects.filter(namespace="theirs").exists()
    change(fresh, completed_at=LONG_AGO)
    assert jobs.prune_old_jobs(place, 0.5) == 1


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf"), True, "7", None])
def test_bad_ages_are_refused(place: jobs.JobDatabase, days: Any) -> None:
    with pytest.raises((InvalidOptionError, TypeError)):
        jobs.prune_old_jobs(place, days)
