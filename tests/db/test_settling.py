"""The ends of attempts: by their owner, and over its head."""

from typing import Any

import pytest
from django.db import transaction

from flexiq_django import Queue
from flexiq_django import db as jobs
from flexiq_django.exceptions import InvalidOptionError, SerializationError
from flexiq_django.models import DeadLetter, Job, JobError, TaskMetric
from tests.concurrency import OtherConnection
from tests.db.conftest import LONG_AGO, change, claimed, outlive_lease, row_of


def status(place: jobs.JobDatabase, claim: jobs.Claim) -> str:
    found = jobs.get_job(place, claim.id)
    assert found is not None
    return found.status


def test_completed_with_a_result(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    child = jobs.insert_job_full(place, 2, depends_on=claim.id)

    assert jobs.mark_completed_owned(place, claim, {"rows": (1, 2)})
    assert jobs.mark_completed_owned(place, claim, {"rows": (1, 2)})  # the answer was lost

    assert status(place, claim) == "completed"
    handle = place.queue.get_job(claim.id)
    assert handle is not None
    assert handle.result() == {"rows": (1, 2)}
    assert TaskMetric.objects.get().succeeded
    assert row_of(child).ready_lane == "default"


def test_failed_for_good_leaves_a_dead_letter(place: jobs.JobDatabase) -> None:
    claim = claimed(place, max_retries=5)

    with pytest.raises(ValueError, match="no such picture") as caught:
        raise ValueError("no such picture")
    assert jobs.mark_failed_owned(place, claim, caught.value)

    assert status(place, claim) == "failed"
    letter = DeadLetter.objects.get()
    assert letter.original_job_id == row_of(claim).id
    details = jobs.get_job_details(place, claim.id)
    assert details is not None
    assert details.dead_letter_id == str(letter.id)
    found = jobs.get_job(place, claim.id)
    assert found is not None
    assert found.error_message == "ValueError: no such picture"
    assert "test_settling" in JobError.objects.get().error


def test_a_transient_failure_waits_longer_each_time_until_no_retry_is_left(
    place: jobs.JobDatabase,
) -> None:
    job_id = jobs.insert_job(place, 1, max_retries=1)
    first = jobs.claim(place, "me")
    assert first is not None
    assert jobs.mark_failed_with_retry_owned(place, first, "busy") == "pending"
    row = row_of(job_id)
    assert (row.status, row.retry_count, row.token) == ("pending", 1, first.token)
    change(job_id, promote_at=LONG_AGO, ready_lane=None)

    second = jobs.claim(place, "me")
    assert second is not None
    assert (second.attempt, second.retry_count) == (2, 1)
    assert jobs.mark_failed_with_retry_owned(place, second, "busy") == "failed"
    assert status(place, second) == "failed"
    assert JobError.objects.count() == 2
    assert DeadLetter.objects.count() == 1


def test_the_backoff_is_that_of_a_declared_task(place: jobs.JobDatabase) -> None:
    queue = Queue()

    @queue.task(name="low.slow", retry_delays=[600])
    def slow(data: Any) -> None: ...

    claim = claimed(place, task_name="low.slow")
    assert jobs.mark_failed_with_retry_owned(place, claim, "busy") == "pending"
    row = row_of(claim)
    assert round((row.scheduled_at - row.updated_at).total_seconds(), 2) == 600


def test_rate_limited_and_permanent(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    rate_limited = jobs.FailureClass.RATE_LIMITED
    assert (
        jobs.mark_failed_with_retry_owned(place, claim, "slow down", rate_limited, retry_after=90)
        == "pending"
    )
    row = row_of(claim)
    assert round((row.scheduled_at - row.updated_at).total_seconds(), 2) == 90

    claim = claimed(place)
    assert jobs.mark_failed_with_retry_owned(place, claim, "no", "permanent") == "failed"


def test_nothing_is_written_by_an_attempt_that_lost_its_job(
    place: jobs.JobDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    late = claimed(place)
    outlive_lease(late)
    assert jobs.reclaim_stale(place) == 1
    current = jobs.claim(place, "other")
    assert current is not None

    before = Job.objects.values().get()
    errors = JobError.objects.count()
    assert not jobs.mark_completed_owned(place, late, 1)
    assert not jobs.mark_failed_owned(place, late, "late")
    assert jobs.mark_failed_with_retry_owned(place, late, "late") is None
    assert not jobs.update_canonical_lineage(place, late, trial_id="late")

    assert Job.objects.values().get() == before
    assert JobError.objects.count() == errors
    assert caplog.text.count("the attempt no longer owns the job") == 3
    assert jobs.mark_completed_owned(place, current)


def test_over_the_head_of_the_attempt(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    assert jobs.mark_completed(place, claim.id, 5)
    assert not jobs.mark_completed_owned(place, claim, 6)
    assert not jobs.mark_completed(place, claim.id)
    handle = place.queue.get_job(claim.id)
    assert handle is not None
    assert handle.result() == 5

    claim = claimed(place)
    assert jobs.mark_failed(place, claim.id, "stop it")
    assert status(place, claim) == "failed"

    claim = claimed(place)
    assert jobs.mark_failed_with_retry(place, claim.id, "again", "rate_limited", retry_after=0) == (
        "pending"
    )
    assert not jobs.heartbeat(place, claim)


def test_only_a_running_job_can_be_ended(place: jobs.JobDatabase) -> None:
    job_id = jobs.insert_job(place, 1)
    for key in (job_id, "no id"):
        assert not jobs.mark_completed(place, key)
        assert not jobs.mark_failed(place, key, "e")
        assert jobs.mark_failed_with_retry(place, key, "e") is None
    assert row_of(job_id).status == "pending"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("",), {}),
        ((7,), {}),
        (("e", "fatal"), {}),
        (("e", "rate_limited"), {}),
        (("e", "transient"), {"retry_after": 1}),
        (("e", "rate_limited"), {"retry_after": -1}),
        (("e", "rate_limited"), {"retry_after": 1e9}),
    ],
)
def test_bad_failures_are_refused(
    place: jobs.JobDatabase, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    claim = claimed(place)
    with pytest.raises(InvalidOptionError):
        jobs.mark_failed_with_retry_owned(place, claim, *arguments, **options)
    with pytest.raises(SerializationError):
        jobs.mark_completed_owned(place, claim, object())
    with pytest.raises(InvalidOptionError, match="claim is of namespace 'default'; the database"):
        jobs.mark_completed_owned(jobs.open_database(namespace="theirs"), claim)
    assert row_of(claim).status == "running"


@pytest.mark.row_locks
@pytest.mark.django_db(transaction=True)
def test_an_operator_and_the_owner_at_the_same_moment(other_connection: OtherConnection) -> None:
    place = jobs.open_database()
    claim = claimed(place)
    with transaction.atomic():
        assert jobs.mark_completed_owned(place, claim, "mine")
        verdict = other_connection.submit(jobs.mark_failed, place, claim.id, "theirs")
    assert not verdict.result(30)
    assert row_of(claim).status == "complete"
    assert not DeadLetter.objects.exists()
