"""What Queue does to run work again - requeue, replay, retry of dead letters - and its purges."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from flexiq_django import Queue
from flexiq_django.exceptions import (
    DeadLetterNotFoundError,
    InvalidOptionError,
    JobMayStillRunError,
    JobNotFoundError,
    JobNotGrantableError,
    OptionTypeError,
    TaskRevokedError,
)
from flexiq_django.models import ArchivedJob, DeadLetter, Job, JobError, ReplayHistory
from flexiq_django.signals import job_enqueued
from flexiq_django.store.ids import new_id
from flexiq_django.store.vendors import open_database
from tests.api.conftest import Ender, row_of
from tests.factories import (
    ArchivedJobFactory,
    DeadLetterFactory,
    JobErrorFactory,
    JobFactory,
    later,
)

pytestmark = pytest.mark.django_db

UNKNOWN = ["", "x", "01900000-0000-7000-8000-000000000000", None, 5]
STATES: dict[str, dict[str, Any]] = {
    "ready": {},
    "running": {"running": True},
    "complete": {"ended": True},
    "dead": {"ended": True, "status": "dead"},
    "cancelled": {"ended": True, "status": "cancelled"},
}


# --- requeue --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES)
def test_only_a_running_job_is_requeued(queue: Queue, state: str) -> None:
    key = str(JobFactory(**STATES[state]).id)

    assert queue.requeue_job(key) is (state == "running")
    assert not queue.requeue_job(key)
    assert not Queue("other").requeue_job(key)
    assert not queue.requeue_job(str(ArchivedJobFactory().id))


@pytest.mark.parametrize("job_id", UNKNOWN)
def test_an_unknown_job_is_not_requeued(queue: Queue, job_id: Any) -> None:
    assert queue.requeue_job(job_id) is False


def test_a_requeued_job_of_a_limited_task_waits_in_its_own_lane(queue: Queue) -> None:
    @queue.task(name="app.slow", max_concurrent=1)
    def slow() -> None: ...

    job = JobFactory(running=True, task_name="app.slow")

    assert queue.requeue_job(str(job.id))
    assert Job.objects.get().ready_lane == "default\x1f\x1fapp.slow"


# --- replay ---------------------------------------------------------------------------------------


def test_a_replay_is_a_new_job_and_leaves_a_trace(queue: Queue, end: Ender) -> None:
    job = queue.enqueue("app.a", (1,), metadata="order 7", unique_key="k", notes={"a": 1})
    end(job, "dead", error="E: bad")

    copy = queue.replay(job.id, actor="ada")

    assert copy.id != job.id
    assert (copy.status, copy.metadata, copy.unique_key) == ("pending", "order 7", None)
    assert copy.notes == {"a": 1}
    assert row_of(copy).payload == row_of(job).payload
    history = ReplayHistory.objects.get()
    assert (str(history.original_job_id), str(history.replay_job_id)) == (job.id, copy.id)
    assert (history.original_error, history.actor) == ("E: bad", "ada")
    job.refresh()
    assert job.status == "dead"


@pytest.mark.parametrize("state", STATES)
def test_a_job_in_any_state_can_be_replayed_again_and_again(queue: Queue, state: str) -> None:
    key = str(JobFactory(**STATES[state]).id)

    copies = {queue.replay(key).id, queue.replay(key).id}

    assert len(copies) == 2
    assert ReplayHistory.objects.count() == 2


def test_an_archived_job_is_replayed(queue: Queue) -> None:
    job = ArchivedJobFactory(status="dead", error="E: bad")
    assert queue.replay(str(job.id)).status == "pending"
    assert ReplayHistory.objects.get().original_error == "E: bad"


@pytest.mark.parametrize("job_id", UNKNOWN)
@pytest.mark.parametrize("kind", [ValueError, KeyError, JobNotFoundError])
def test_an_unknown_job_cannot_be_replayed(queue: Queue, job_id: Any, kind: Any) -> None:
    with pytest.raises(kind, match=r"^there is no job"):
        queue.replay(job_id)


def test_a_job_of_another_namespace_cannot_be_replayed(queue: Queue) -> None:
    with pytest.raises(JobNotFoundError):
        queue.replay(str(JobFactory(namespace="other").id))


@pytest.mark.parametrize("actor", ["", "x" * 201, 5, "a\x00b"])
def test_a_bad_actor_is_refused_before_anything_is_written(queue: Queue, actor: Any) -> None:
    job = JobFactory()
    with pytest.raises(InvalidOptionError, match=r"^actor"):
        queue.replay(str(job.id), actor=actor)
    assert Job.objects.count() == 1


def test_a_replay_of_a_limited_task_waits_in_its_own_lane(queue: Queue) -> None:
    @queue.task(name="app.slow", rate_limit="5/m")
    def slow() -> None: ...

    copy = queue.replay(str(JobFactory(ended=True, task_name="app.slow").id))

    assert row_of(copy).ready_lane == "default\x1f\x1fapp.slow"


def test_a_revoked_task_is_neither_replayed_nor_retried(queue: Queue) -> None:
    job = JobFactory(ended=True, task_name="app.a")
    letter = DeadLetterFactory(task_name="app.a")
    queue.revoke_task("app.a")

    with transaction.atomic():
        with pytest.raises(TaskRevokedError):
            queue.replay(str(job.id))
        with pytest.raises(TaskRevokedError, match="unrevoke_task"):
            queue.retry_dead(str(letter.id))

    assert (Job.objects.count(), DeadLetter.objects.count()) == (1, 1)
    queue.unrevoke_task("app.a")
    queue.replay(str(job.id))
    queue.retry_dead(str(letter.id))
    assert Job.objects.count() == 3


# --- dead letters ---------------------------------------------------------------------------------


def test_a_dead_letter_is_retried_once(queue: Queue, end: Ender) -> None:
    job = queue.enqueue("app.a", (1,), metadata='{"order": 7}', max_retries=2, priority=3)
    end(job, "dead", error="E: bad", attempt_error="E: bad")
    (letter,) = queue.dead_letters()

    key = queue.retry_dead(letter["id"])

    copy = queue.get_job(key)
    assert copy is not None
    assert (copy.status, copy.priority, copy.max_retries, copy.retry_count) == ("pending", 3, 2, 0)
    assert json.loads(copy.metadata or "") == {
        "order": 7,
        "__dlq_retry_count": 1,
        "__origin_job_id": job.id,
    }
    assert queue.dead_letters() == []
    assert queue.stats()["dead"] == 1
    assert not ReplayHistory.objects.exists()
    assert JobError.objects.get().job_id == row_of(job).id
    with pytest.raises(DeadLetterNotFoundError, match="retried"):
        queue.retry_dead(letter["id"])

    end(copy, "dead", error="E: worse")
    (again,) = queue.dead_letters()
    assert (again["dlq_retry_count"], again["original_job_id"]) == (1, key)


@pytest.mark.parametrize("dead_id", UNKNOWN)
@pytest.mark.parametrize("kind", [RuntimeError, DeadLetterNotFoundError])
def test_an_unknown_letter_is_not_retried(queue: Queue, dead_id: Any, kind: Any) -> None:
    with pytest.raises(kind, match=r"^there is no dead letter"):
        queue.retry_dead(dead_id)
    assert queue.delete_dead(dead_id) is False


def test_letters_are_known_by_their_own_id_in_their_own_namespace(queue: Queue) -> None:
    letter = DeadLetterFactory()
    for where, key in [(queue, letter.original_job_id), (Queue("other"), letter.id)]:
        with pytest.raises(DeadLetterNotFoundError):
            where.retry_dead(str(key))
        assert not where.delete_dead(str(key))
    assert DeadLetter.objects.count() == 1


def test_deleting_a_letter_leaves_its_job(queue: Queue) -> None:
    job = JobFactory(ended=True, status="dead")
    JobErrorFactory(job_id=job.id)
    letter = DeadLetterFactory(original_job_id=job.id)

    assert queue.delete_dead(str(letter.id))
    assert not queue.delete_dead(str(letter.id))

    assert (Job.objects.count(), JobError.objects.count()) == (1, 1)
    with pytest.raises(DeadLetterNotFoundError):
        queue.retry_dead(str(letter.id))


# --- purges ---------------------------------------------------------------------------------------

Purge = Callable[..., int]


@pytest.mark.parametrize("name", ["purge_dead", "purge_completed"])
class TestPurge:
    @pytest.fixture
    def verb(self, queue: Queue, name: str) -> Purge:
        """The method, over one old row of its kind."""
        JobFactory(ended=True)
        ArchivedJobFactory()
        job = JobFactory(ended=True, status="dead")
        DeadLetterFactory(original_job_id=job.id)
        DeadLetterFactory()
        return getattr(queue, name)  # type: ignore[no-any-return]

    def test_it_removes_what_is_older_in_small_batches(
        self, verb: Purge, name: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(open_database(queue.scope)), "batch_size", 1)
        assert verb(older_than=60) == 2
        assert verb(60) == 0
        left = (Job.objects.count(), ArchivedJob.objects.count(), DeadLetter.objects.count())
        assert left == ((1, 1, 0) if name == "purge_dead" else (1, 0, 2))

    def test_a_day_by_default(self, verb: Purge, name: str) -> None:
        Job.objects.exclude(completed_at=None).update(completed_at=later(10**9))
        ArchivedJob.objects.update(completed_at=later(10**9))
        DeadLetter.objects.update(failed_at=later(10**9))
        assert verb() == 0

    @pytest.mark.parametrize(
        ("older_than", "removed"),
        [(0, 2), (1.5, 2), (-5, 2), (-1e300, 2), (float("-inf"), 2), (1e300, 0), (10**400, 0),
         (float("inf"), 0)],
    )  # fmt: skip
    def test_any_age_is_a_number_of_seconds(
        self, verb: Purge, name: str, older_than: Any, removed: int
    ) -> None:
        assert verb(older_than) == removed

    @pytest.mark.parametrize("older_than", [None, "5", True, []])
    def test_another_age_is_refused(self, verb: Purge, name: str, older_than: Any) -> None:
        with pytest.raises(TypeError, match=r"^older_than is"):
            verb(older_than)
        assert Job.objects.count() == 2

    def test_no_number_is_refused(self, verb: Purge, name: str) -> None:
        with pytest.raises(InvalidOptionError, match=r"^older_than is NaN"):
            verb(float("nan"))


# --- around it ------------------------------------------------------------------------------------


def test_the_twins(queue: Queue) -> None:
    running, letters = JobFactory(running=True), [DeadLetterFactory() for _ in range(3)]

    assert async_to_sync(queue.arequeue_job)(str(running.id))
    assert async_to_sync(queue.areplay)(str(running.id), actor="ada").status == "pending"
    assert async_to_sync(queue.aretry_dead)(str(letters[0].id))
    assert async_to_sync(queue.adelete_dead)(str(letters[1].id))
    assert async_to_sync(queue.apurge_dead)(-1) == 1
    assert async_to_sync(queue.apurge_completed)(-1) == 0
    with pytest.raises(DeadLetterNotFoundError):
        async_to_sync(queue.aretry_dead)(str(letters[0].id))


@pytest.mark.django_db(transaction=True)
def test_new_jobs_are_announced_after_the_commit(queue: Queue) -> None:
    told: list[str] = []
    job, letter = JobFactory(ended=True), DeadLetterFactory()

    def note(*, job_ids: list[str], **_: Any) -> None:
        told.extend(job_ids)

    job_enqueued.connect(note)
    try:
        with transaction.atomic():
            made = [queue.replay(str(job.id)).id, queue.retry_dead(str(letter.id))]
            assert told == []
        assert told == made
    finally:
        job_enqueued.disconnect(note)


@pytest.mark.django_db(transaction=True)
def test_a_rollback_takes_all_of_it_back(queue: Queue) -> None:
    job, letter = JobFactory(running=True), DeadLetterFactory()

    with transaction.atomic():
        queue.replay(str(job.id))
        queue.retry_dead(str(letter.id))
        queue.requeue_job(str(job.id))
        queue.purge_completed(-1)
        transaction.set_rollback(True)

    assert Job.objects.get().status == "running"
    assert not ReplayHistory.objects.exists()
    assert DeadLetter.objects.get().id == letter.id


# --- another attempt ------------------------------------------------------------------------------


def test_grant_attempt_goes_on_with_the_same_job(queue: Queue) -> None:
    job = JobFactory(ended=True, status="dead", max_retries=0, completed_at=later(0))
    recent = JobFactory(ended=True, status="dead", completed_at=datetime.now(UTC))

    queue.grant_attempt(str(job.id))
    with pytest.raises(JobMayStillRunError, match="60 s ago"):
        queue.grant_attempt(str(recent.id))
    queue.grant_attempt(str(recent.id), force=True)

    assert Job.objects.filter(status="pending").count() == 2
    assert Job.objects.get(id=job.id).max_retries == 1
    with pytest.raises(JobNotGrantableError, match="is pending"):
        queue.grant_attempt(str(job.id))


@pytest.mark.parametrize("flag", ["force", "clear_cancellation"])
def test_grant_attempt_takes_yes_or_no(queue: Queue, flag: str) -> None:
    with pytest.raises(OptionTypeError, match=rf"^{flag} is 'no'"):
        queue.grant_attempt(str(new_id()), **{flag: "no"})


def test_grant_attempt_clears_a_cancellation_only_on_demand(queue: Queue) -> None:
    kept, cleared = (JobFactory(**STATES["cancelled"]) for _ in range(2))

    queue.grant_attempt(str(kept.id))
    async_to_sync(queue.agrant_attempt)(str(cleared.id), clear_cancellation=True)

    assert Job.objects.get(id=kept.id).cancel_requested_at == later(0)
    assert Job.objects.get(id=cleared.id).cancel_requested_at is None


@pytest.mark.parametrize("job_id", UNKNOWN)
def test_grant_attempt_of_an_unknown_job_is_refused(queue: Queue, job_id: Any) -> None:
    with pytest.raises(JobNotFoundError, match="there is no job"):
        queue.grant_attempt(job_id)
