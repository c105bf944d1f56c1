"""settle: what each way to end an attempt writes, all of it or nothing."""

from typing import Any

import pytest
from django.db import connections

from flexiq_django.models import DeadLetter, Job, JobError, ReplayHistory, TaskMetric
from flexiq_django.store import history, operate
from flexiq_django.store.settle import Settled, settle
from flexiq_django.store.vendors import batches
from tests.factories import NOW, ReplayHistoryFactory, at, later
from tests.store.acting import (
    claim,
    claim_one,
    enqueue,
    enqueue_one,
    running,
    settlement,
    stored,
)

pytestmark = pytest.mark.django_db


def test_a_completed_job_keeps_its_result_and_its_history() -> None:
    job = running(unique_key="k", expires_ms=90_000)

    outcome = settle(at(5), [settlement(job, result='"done"', duration_ms=12.5, succeeded=True)])

    assert outcome == Settled(settled=frozenset({job.id}))
    row = stored(job.id)
    assert (row.status, row.result, row.error) == ("complete", '"done"', None)
    assert row.completed_at == row.updated_at == later(5)
    assert (row.started_at, row.scheduled_at) == (NOW, NOW)
    assert (row.attempt, row.retry_count, row.worker_id) == (1, 0, "worker-1")
    assert (row.lease_at, row.active_key, row.expires_at, row.purge_at) == (None,) * 4
    assert row.unique_key == "k"
    assert JobError.objects.count() == DeadLetter.objects.count() == 0
    metric = TaskMetric.objects.get()
    assert (metric.namespace, metric.task_name, metric.job_id) == (
        "default", "app.tasks.work", job.id
    )  # fmt: skip
    assert (metric.duration_ms, metric.succeeded, metric.recorded_at) == (12.5, True, later(5))


def test_a_retry_at_once_is_ready_in_its_lane() -> None:
    job = running(unique_key="k", expires_ms=90_000)

    settle(at(5), [settlement(job, "pending", attempt_error="ValueError: bad", duration_ms=3.0)])

    row = stored(job.id)
    assert (row.status, row.ready_lane, row.promote_at) == ("pending", "default", None)
    assert (row.retry_count, row.attempt, row.error, row.result) == (1, 1, None, None)
    assert row.scheduled_at == later(5)
    assert (row.started_at, row.completed_at, row.lease_at, row.purge_at) == (None,) * 4
    assert row.active_key is not None
    assert row.expires_at == later(90)
    assert claim_one(at(5)).retry_count == 1


def test_a_retry_with_a_wait_is_due_later() -> None:
    job = running()

    settle(at(5), [settlement(job, "pending", wait_ms=1_500, attempt_error="e")])

    row = stored(job.id)
    assert (row.status, row.ready_lane) == ("pending", None)
    assert row.promote_at == row.scheduled_at == later(6.5)
    assert row.retry_count == 1


def test_a_failed_attempt_leaves_an_error_row() -> None:
    job = running()
    settle(at(5), [settlement(job, "pending", attempt_error="first", duration_ms=3.0)])
    again = claim_one(at(6), worker_id="worker-2")
    settle(at(7), [settlement(again, "dead", attempt_error="second", error="second")])

    first, second = JobError.objects.order_by("id")
    assert (first.job_id, first.attempt, first.error, first.worker_id) == (
        job.id, 0, "first", "worker-1"
    )  # fmt: skip
    assert (second.attempt, second.error, second.worker_id) == (1, "second", "worker-2")
    assert (first.failed_at, second.failed_at) == (later(5), later(7))
    assert first.namespace == "default"
    assert [metric.succeeded for metric in TaskMetric.objects.all()] == [False]


def test_a_dead_job_leaves_a_dead_letter_that_needs_no_job() -> None:
    copied: dict[str, Any] = {
        "queue": "mail",
        "task_name": "app.send",
        "payload": "[[1],{}]",
        "priority": 4,
        "max_retries": 0,
        "timeout_ms": 900,
        "result_ttl_ms": 60_000,
        "metadata": "m",
        "notes": "{}",
        "session_id": "s",
        "user_id": "u",
        "trace_id": "t",
    }
    job = running(unique_key="k", **copied)

    settle(at(5), [settlement(job, "dead", error="E: bad", attempt_error="E: bad")])

    row = stored(job.id)
    assert (row.status, row.error, row.retry_count) == ("dead", "E: bad", 0)
    assert row.completed_at == later(5)
    assert row.purge_at == later(65)
    assert row.active_key is None
    letter = DeadLetter.objects.get()
    assert {name: getattr(letter, name) for name in copied} == copied
    assert (letter.original_job_id, letter.namespace, letter.error) == (job.id, "default", "E: bad")
    assert (letter.failed_at, letter.purge_at) == (later(5), later(65))
    assert (letter.retry_count, letter.dlq_retry_count, letter.auto_retry_at) == (0, 0, None)
    assert letter.id != job.id


def test_a_cancelled_job_leaves_neither() -> None:
    job = running()

    settle(at(5), [settlement(job, "cancelled", error="cancelled by request", duration_ms=2.0)])

    row = stored(job.id)
    assert (row.status, row.error, row.retry_count) == ("cancelled", "cancelled by request", 0)
    assert row.completed_at == later(5)
    assert JobError.objects.count() == DeadLetter.objects.count() == 0
    assert TaskMetric.objects.get().succeeded is False


def test_no_metric_for_a_body_that_never_began() -> None:
    settle(at(), [settlement(running(), "cancelled", error="expired before execution")])

    assert TaskMetric.objects.count() == 0


@pytest.mark.parametrize("ttl", [0, 1_500])
@pytest.mark.parametrize("status", ["complete", "dead", "cancelled"])
def test_a_lifetime_counts_from_the_end(ttl: int, status: str) -> None:
    job = running(result_ttl_ms=ttl)

    settle(at(10), [settlement(job, status)])

    assert stored(job.id).purge_at == later(10 + ttl / 1000)


def test_a_retry_has_no_end_to_count_from() -> None:
    job = running(result_ttl_ms=0)

    settle(at(10), [settlement(job, "pending", attempt_error="e")])

    assert stored(job.id).purge_at is None


def test_progress_and_a_cancel_request_survive_a_retry() -> None:
    job = running()
    operate.set_progress(at(), job.id, 40)
    operate.request_cancel(at(), job.id)

    settle(at(1), [settlement(job, "pending", attempt_error="e")])

    row = stored(job.id)
    assert row.progress == 40
    assert row.cancel_requested_at == NOW


def test_an_earlier_error_goes_when_a_later_attempt_succeeds() -> None:
    job = running()
    settle(at(), [settlement(job, "pending", attempt_error="e")])
    settle(at(1), [settlement(claim_one(at(1)))])

    row = stored(job.id)
    assert (row.status, row.error, row.retry_count) == ("complete", None, 1)
    assert JobError.objects.count() == 1


def test_a_mixed_batch_gives_each_its_own_end() -> None:
    enqueue(5)
    done, again, later_again, dead, cancelled = claim()

    outcome = settle(
        at(1),
        [
            settlement(done, result="1", duration_ms=1.0, succeeded=True),
            settlement(again, "pending", attempt_error="a", duration_ms=2.0),
            settlement(later_again, "pending", wait_ms=9_000, attempt_error="b"),
            settlement(dead, "dead", error="c", attempt_error="c", duration_ms=4.0),
            settlement(cancelled, "cancelled", error="d"),
        ],
    )

    jobs = [done, again, later_again, dead, cancelled]
    assert outcome.settled == {job.id for job in jobs}
    assert outcome.lost == frozenset()
    rows = [stored(job.id) for job in jobs]
    assert [row.status for row in rows] == ["complete", "pending", "pending", "dead", "cancelled"]
    assert [row.ready_lane for row in rows] == [None, "default", None, None, None]
    assert [row.error for row in rows] == [None, None, None, "c", "d"]
    assert dict(TaskMetric.objects.values_list("job_id", "duration_ms")) == {
        done.id: 1.0, again.id: 2.0, dead.id: 4.0
    }  # fmt: skip
    assert dict(JobError.objects.values_list("job_id", "error")) == {
        again.id: "a", later_again.id: "b", dead.id: "c"
    }  # fmt: skip
    assert DeadLetter.objects.get().original_job_id == dead.id


def test_texts_are_written_as_they_are() -> None:
    job = running()
    text = 'ünï "quoted" \\ %(now)s {now} \U0001f4e7'

    settle(at(), [settlement(job, "dead", result=text, error=text, attempt_error=text)])

    row = stored(job.id)
    assert row.result == row.error == text
    assert JobError.objects.get().error == DeadLetter.objects.get().error == text


def test_results_larger_than_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue(12)
    jobs = claim()
    monkeypatch.setattr(batches, "MAX_CHARS", 1_000)

    outcome = settle(
        at(), [settlement(job, result='"' + "x" * 400 + '"', duration_ms=1.0) for job in jobs]
    )

    assert outcome.settled == {job.id for job in jobs}
    assert Job.objects.filter(status="complete", result__isnull=False).count() == 12
    assert TaskMetric.objects.count() == 12


def test_nothing_to_settle() -> None:
    assert settle(at(), []) == Settled()


def test_a_replay_that_ends_badly_is_noted_in_its_history() -> None:
    dead, cancelled, fine = running(), running(), running()
    for job in (dead, cancelled, fine):
        ReplayHistoryFactory(replay_job_id=job.id)
    ReplayHistoryFactory(original_job_id=dead.id)

    settle(
        at(),
        [
            settlement(dead, "dead", error="E: bad"),
            settlement(cancelled, "cancelled", error="cancelled by request"),
            settlement(fine),
        ],
    )

    assert dict(ReplayHistory.objects.values_list("replay_job_id", "replay_error")) == {
        dead.id: "E: bad",
        cancelled.id: "cancelled by request",
        fine.id: None,
        ReplayHistory.objects.get(original_job_id=dead.id).replay_job_id: None,
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("part", ["append_errors", "append_dead_letters", "note_replay_errors"])
def test_everything_moves_together_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    job = running()
    child = enqueue_one(parents=(job.id,))

    def fail(*_: Any) -> None:
        raise RuntimeError(part)

    monkeypatch.setattr(history, part, fail)
    with pytest.raises(RuntimeError, match=part):
        settle(at(), [settlement(job, "dead", error="e", attempt_error="e", duration_ms=1.0)])

    assert stored(job.id).status == "running"
    assert stored(child).status == "pending"
    assert not connections["default"].in_atomic_block
    tables = (JobError, DeadLetter, TaskMetric)
    assert [table.objects.count() for table in tables] == [0, 0, 0]


def test_a_job_that_was_claimed_too_late_never_started() -> None:
    late, stopped = running(), running()

    settle(
        at(1),
        [
            settlement(late, "cancelled", error="expired before execution"),
            settlement(stopped, "cancelled", error="cancelled by request", duration_ms=5.0),
        ],
    )

    assert stored(late.id).started_at is None
    assert stored(stopped.id).started_at == NOW
