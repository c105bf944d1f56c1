"""replay: a new job that does the same, and a row that says who asked for it and how it ended."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from flexiq_django.exceptions import TaskRevokedError
from flexiq_django.models import ArchivedJob, Job, JobDependency, ReplayHistory
from flexiq_django.store import operate, purge, revive, settle, steer
from flexiq_django.store.ids import new_id
from flexiq_django.store.promote import cancel_expired
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import (
    ArchivedJobFactory,
    JobDependencyFactory,
    JobFactory,
    ReplayHistoryFactory,
    TaskStateFactory,
    at,
    later,
)
from tests.store.acting import claim_one, settlement, stored

pytestmark = pytest.mark.django_db

KEPT: dict[str, Any] = {
    "queue": "mail",
    "task_name": "app.tasks.send",
    "payload": '[["é"],{"a":1}]',
    "priority": 7,
    "max_retries": 5,
    "timeout_ms": 1_500,
    "result_ttl_ms": 60_000,
    "metadata": "order 7",
    "notes": '{"a":1}',
    "origin": "periodic",
    "schedule": "nightly",
    "session_id": "s",
    "user_id": "u",
    "deployment_id": "blue",
    "trace_id": "t",
}


def replay(job_id: UUID, seconds: float = 0, **options: Any) -> UUID | None:
    job = revive.replay(at(seconds), job_id, limited={}, **options)
    return None if job is None else job.id


@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_what_a_copy_takes_over_and_what_it_does_not(factory: Any) -> None:
    ended = {"ended": True} if factory is JobFactory else {}
    original = factory(
        **{**KEPT, **ended}, status="dead", error="E: bad", unique_key="k", progress=50,
        retry_count=5, result="1", dlq_retry_count=2, origin_job_id=new_id(), worker_id="w",
        cancel_requested_at=later(0), scheduled_at=later(-60),
    )  # fmt: skip
    JobDependencyFactory(job_id=original.id, is_open=False)
    model = type(original)
    before = model.objects.values().get(id=original.id)

    key = replay(original.id, 5, actor="ada")

    copy = stored(key)  # type: ignore[arg-type]
    assert {name: getattr(copy, name) for name in KEPT} == KEPT
    assert (copy.status, copy.session_line, copy.scheduled_at) == ("pending", "s", later(5))
    assert (copy.retry_count, copy.attempt, copy.dlq_retry_count) == (0, 0, 0)
    for name in ("unique_key", "active_key", "expires_at", "progress", "error", "result",
                 "origin_job_id", "cancel_requested_at", "worker_id", "purge_at"):  # fmt: skip
        assert getattr(copy, name) is None, name
    assert JobDependency.objects.count() == 1
    assert model.objects.values().get(id=original.id) == before
    history = ReplayHistory.objects.get()
    assert (history.original_job_id, history.replay_job_id) == (original.id, key)
    assert (history.original_error, history.replay_error) == ("E: bad", None)
    assert (history.actor, history.replayed_at) == ("ada", later(5))


@pytest.mark.parametrize(
    "state",
    [{}, {"scheduled": True}, {"waiting": True}, {"running": True}, {"ended": True},
     {"ended": True, "status": "dead"}, {"ended": True, "status": "cancelled"},
     {"status": "paused", "ready_lane": None}],
    ids=str,
)  # fmt: skip
def test_a_job_in_any_state_is_replayed(state: dict[str, Any]) -> None:
    job = JobFactory(expires_at=None if "ended" in state else later(9), **state)

    key = replay(job.id)

    copy = stored(key)  # type: ignore[arg-type]
    assert (copy.status, copy.ready_lane, copy.expires_at) == ("pending", "default", None)


def test_unknown_and_foreign_jobs() -> None:
    assert replay(new_id()) is None
    assert replay(JobFactory(namespace="other").id) is None
    assert replay(ArchivedJobFactory(namespace="other").id) is None
    assert not ReplayHistory.objects.exists()
    assert Job.objects.count() == 1


def test_a_revoked_task_refuses_and_nothing_is_written() -> None:
    TaskStateFactory(revoked_at=later(0))
    job = JobFactory(ended=True)

    with pytest.raises(TaskRevokedError):
        replay(job.id)

    assert not ReplayHistory.objects.exists()
    assert Job.objects.count() == 1


def test_a_limited_task_waits_in_its_own_lane() -> None:
    TaskStateFactory(max_concurrent=1)
    key = replay(JobFactory(ended=True).id)
    assert stored(key).ready_lane == "default\x1f\x1fapp.tasks.work"  # type: ignore[arg-type]


# --- how the copy ends ----------------------------------------------------------------------------


def dies(key: UUID) -> None:
    settle.settle(at(), [settlement(claim_one(), "dead", error="E: again", attempt_error="e")])


def is_cancelled(key: UUID) -> None:
    assert operate.cancel(at(), key)


def is_cancelled_while_running(key: UUID) -> None:
    settle.settle(at(), [settlement(claim_one(), "cancelled", error="cancelled by request")])


def expires(key: UUID) -> None:
    Job.objects.filter(id=key).update(expires_at=later(1))
    assert cancel_expired(at(2)).cancelled == [key]


def is_purged(key: UUID) -> None:
    assert steer.cancel_pending(at(), error="purged", queue="default") == 1


def is_revoked(key: UUID) -> None:
    assert steer.cancel_pending(at(), error="revoked", task_name="app.tasks.work") == 1


def is_lost(key: UUID) -> None:
    claim_one()
    settlements, _ = settle.reap(
        at(61), lambda job: settlement(job, "dead", error="worker lost", attempt_error="e")
    )
    assert len(settlements) == 1


def completes(key: UUID) -> None:
    settle.settle(at(), [settlement(claim_one())])


def fails_once(key: UUID) -> None:
    settle.settle(at(), [settlement(claim_one(), "pending", attempt_error="e")])


@pytest.mark.parametrize(
    ("end", "error"),
    [(dies, "E: again"), (is_cancelled, "cancelled"),
     (is_cancelled_while_running, "cancelled by request"), (expires, "expired"),
     (is_purged, "purged"), (is_revoked, "revoked"), (is_lost, "worker lost"),
     (completes, None), (fails_once, None)],
)  # fmt: skip
def test_the_history_says_how_a_copy_ended_badly(
    end: Callable[[UUID], None], error: str | None
) -> None:
    bystander = ReplayHistoryFactory()
    key = replay(JobFactory(ended=True).id)
    assert key is not None

    end(key)

    assert ReplayHistory.objects.get(replay_job_id=key).replay_error == error
    bystander.refresh_from_db()
    assert bystander.replay_error is None


# --- at the same time -----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_two_who_replay_at_once_get_a_copy_each() -> None:
    job = JobFactory(ended=True)

    keys = run_in_threads([lambda: replay(job.id)] * 2)

    assert len({*keys, job.id}) == 3
    assert set(ReplayHistory.objects.values_list("replay_job_id", flat=True)) == set(keys)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_replay_and_a_purge_at_once_leave_no_history_of_a_job_that_is_gone(factory: Any) -> None:
    ended = {"ended": True} if factory is JobFactory else {}
    for _ in range(10):
        job = factory(**ended)
        key, removed = run_in_threads(
            [
                lambda job=job: replay(job.id),
                lambda: sum(purge.purge_completed(at(9), older_than_ms=0)),
            ]
        )
        assert removed == 1
        assert not ReplayHistory.objects.exists()
        assert Job.objects.count() == (key is not None)
        Job.objects.all().delete()
        ArchivedJob.objects.all().delete()


@pytest.mark.row_locks
@pytest.mark.django_db(transaction=True)
def test_a_replay_in_a_long_transaction_holds_up_no_worker(
    other_connection: OtherConnection,
) -> None:
    from django.db import transaction

    JobFactory()
    job = claim_one()
    with transaction.atomic():
        assert replay(job.id)
        done = other_connection.run(settle.settle, at(), [settlement(job)])
        assert done.settled == {job.id}
