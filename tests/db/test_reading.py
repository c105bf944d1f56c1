"""get_job, get_job_details, lists and counts."""

from typing import Any

import pytest

from flexiq_django import db as jobs
from flexiq_django.exceptions import InvalidOptionError, UnknownStatusError
from tests.db.conftest import claimed
from tests.factories import ArchivedJobFactory, JobFactory

WORDS = {
    "pending": {},
    "processing": {"running": True},
    "completed": {"ended": True},
    "failed": {"ended": True, "status": "dead"},
    "cancelled": {"ended": True, "status": "cancelled"},
}


@pytest.mark.parametrize("word", WORDS)
def test_the_words_of_the_statuses(place: jobs.JobDatabase, word: str) -> None:
    job = JobFactory(**WORDS[word], payload='[["x"],{}]', priority=2, error="E: bad\nline")

    assert jobs.get_job(place, str(job.id)) == (str(job.id), 2, word, "x", "E: bad line")
    assert jobs.list_all_jobs(place) == [(str(job.id), word, "x")]
    assert jobs.count_by_status(place, word) == 1
    assert jobs.count_by_status(place) == {**dict.fromkeys(WORDS, 0), word: 1}


def test_archived_jobs_are_found_by_id_only(place: jobs.JobDatabase) -> None:
    key = str(ArchivedJobFactory(trial_id="t", attempt=3).id)

    row = jobs.get_job(place, key)
    assert row is not None
    assert row.status == "completed"
    details = jobs.get_job_details(place, key)
    assert details is not None
    assert (details.is_archived, details.trial_id, details.lease_until) == (True, "t", None)
    assert jobs.get_attempt_count(place, key) == 3
    assert jobs.list_all_jobs(place) == []
    assert jobs.count_by_status(place, "completed") == 0


def test_unknown_jobs(place: jobs.JobDatabase) -> None:
    for key in ("01890000-0000-7000-8000-000000000000", "no id"):
        assert jobs.get_job(place, key) is jobs.get_job_details(place, key) is None
        assert jobs.get_attempt_count(place, key) is None


def test_everything_about_a_job(
    place: jobs.JobDatabase, django_capture_on_commit_callbacks: Any
) -> None:
    parent = claimed(place)
    jobs.mark_completed_owned(place, parent)
    with django_capture_on_commit_callbacks(execute=True):
        job_id = jobs.insert_job_full(
            place, {"n": 1}, attempt_id="a", trial_id="t", trace_id="tr", priority=4, timeout=5,
            result_ttl=60, metadata="m", notes={"k": "v"}, user_id="u", session_id="s",
            depends_on=parent.id, max_retries=2, expires=900,
        )  # fmt: skip
    claim = jobs.claim(place, "me")
    assert claim is not None
    jobs.mark_failed_with_retry_owned(place, claim, "busy", "rate_limited", retry_after=0)
    child = jobs.insert_job_full(place, 1, depends_on=job_id)
    waiting = jobs.get_job_details(place, job_id)
    again = jobs.claim_with_lease(place, "other", 60)
    assert again is not None
    place.queue.update_progress(job_id, 40)

    details = jobs.get_job_details(place, job_id)

    assert waiting is not None
    assert details is not None
    assert (waiting.status, waiting.worker_id, waiting.lease_until) == ("pending", None, None)
    assert waiting.next_run_at is not None
    assert details.next_run_at is None
    assert (details.id, details.namespace, details.queue) == (job_id, place.namespace, "default")
    assert (details.status, details.worker_id, details.progress) == ("processing", "other", 40)
    assert (details.data, details.priority, details.result) == ({"n": 1}, 4, None)
    assert (details.attempt_id, details.trial_id, details.trace_id) == ("a", "t", "tr")
    assert (details.attempt_count, details.retry_count, details.max_retries) == (2, 1, 2)
    assert (details.timeout, details.result_ttl, details.notes) == (5, 60, {"k": "v"})
    assert (details.metadata, details.user_id, details.session_id) == ("m", "u", "s")
    assert (details.depends_on, details.dependents) == ((parent.id,), (child,))
    (failure,) = details.failed_attempts
    assert (failure.number, failure.error, failure.worker_id) == (0, "busy", "me")
    assert details.started_at is not None
    assert details.lease_until is not None
    assert details.expires_at is not None
    assert round((details.lease_until - details.started_at).total_seconds(), 2) == 60
    jobs.mark_completed_owned(place, again, [1])
    ended = jobs.get_job_details(place, job_id)
    assert ended is not None
    assert (ended.status, ended.result, ended.worker_id) == ("completed", [1], "other")


def test_the_order_of_the_list(place: jobs.JobDatabase) -> None:
    old, urgent = jobs.insert_job(place, 1), jobs.insert_job(place, 2, priority=5)
    new = jobs.insert_job(place, 3)
    done = str(JobFactory(ended=True).id)
    running = str(JobFactory(running=True).id)

    found = [each.id for each in jobs.list_all_jobs(place)]

    assert found == [done, urgent, old, new, running]
    assert [each.id for each in jobs.list_all_jobs(place, limit=2, offset=1)] == [urgent, old]
    assert [each.id for each in jobs.list_all_jobs(place, offset=4)] == [running]


@pytest.mark.parametrize("bad", [{"limit": -1}, {"limit": 1.5}, {"offset": -1}])
def test_bad_questions_are_refused(place: jobs.JobDatabase, bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        jobs.list_all_jobs(place, **bad)
    with pytest.raises(UnknownStatusError, match="allowed are pending, processing, completed"):
        jobs.count_by_status(place, "running")
