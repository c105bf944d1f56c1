"""grant: a job that ended badly goes on, out of the reach of whoever had it before."""

from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from flexiq_django.exceptions import (
    FlexiQError,
    JobMayStillRunError,
    JobNotFoundError,
    JobNotGrantableError,
    TaskRevokedError,
    UniqueKeyTakenError,
)
from flexiq_django.models import ArchivedJob, DeadLetter, Job, ReplayHistory
from flexiq_django.store import archive, operate, revive, settle
from flexiq_django.store.grant import grant
from flexiq_django.store.ids import new_id
from flexiq_django.store.keys import active_key
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import (
    DeadLetterFactory,
    JobFactory,
    ReplayHistoryFactory,
    TaskStateFactory,
    at,
    later,
)
from tests.store.acting import claim, claim_one, enqueue_one, running, settlement, stored

pytestmark = pytest.mark.django_db

DEAD: dict[str, Any] = {"ended": True, "status": "dead", "error": "E: bad"}


def give(job_id: UUID, seconds: float = 0, **options: Any) -> None:
    """Grant an attempt at that second; its task has no limit unless said."""
    grant(at(seconds), job_id, **{"limited": {"app.tasks.work": False}, **options})


def crash(seconds: float = 0, **fields: Any) -> UUID:
    """A job that has died at its only attempt."""
    job = running(at(seconds), max_retries=0, **fields)
    settle.settle(at(seconds), [settlement(job, "dead", error="E", attempt_error="E")])
    return job.id


def test_the_same_job_is_ready_again_and_its_letter_is_gone() -> None:
    job = JobFactory(
        **DEAD, queue="mail", deployment_id="blue", max_retries=2, retry_count=2, attempt=3,
        progress=40, unique_key="k", purge_at=later(9), result_ttl_ms=9,
    )  # fmt: skip
    job.refresh_from_db()
    DeadLetterFactory(original_job_id=job.id)
    other = DeadLetterFactory()

    give(job.id, 5)

    row = stored(job.id)
    assert (row.status, row.ready_lane, row.promote_at) == ("pending", "mail\x1fblue", None)
    assert (row.attempt, row.max_retries, row.retry_count) == (3, 3, 3)
    assert (row.started_at, row.completed_at, row.purge_at, row.token) == (None,) * 4
    assert (row.error, row.progress, row.cancel_requested_at) == (None, 40, None)
    assert (row.active_key, row.unique_key) == (active_key("k"), "k")
    assert (row.scheduled_at, row.updated_at) == (later(5), later(5))
    assert list(DeadLetter.objects.values_list("id", flat=True)) == [other.id]


def test_it_is_worth_one_more_execution() -> None:
    job_id = crash()

    give(job_id)
    again = claim_one(at(1))

    assert (again.attempt, again.retry_count, again.max_retries) == (2, 1, 1)
    settle.settle(at(2), [settlement(again, "dead", error="E", attempt_error="E")])
    assert DeadLetter.objects.filter(original_job_id=job_id).count() == 1
    give(job_id, 3)
    assert (stored(job_id).attempt, stored(job_id).max_retries) == (2, 2)


def test_a_budget_that_is_not_used_up_stays() -> None:
    job = JobFactory(**{**DEAD, "status": "cancelled"}, max_retries=3)
    fresh = JobFactory(ended=True, status="cancelled", attempt=0, token=None)

    give(job.id)
    give(fresh.id)

    assert (stored(job.id).max_retries, stored(job.id).retry_count) == (3, 1)
    assert (stored(fresh.id).max_retries, stored(fresh.id).retry_count) == (3, 0)


def test_a_recorded_cancel_stays_unless_it_is_cleared() -> None:
    job_id = enqueue_one()
    operate.cancel(at(1), job_id)

    give(job_id, 2)
    assert stored(job_id).cancel_requested_at == later(1)

    operate.cancel(at(3), job_id)
    give(job_id, 4, clear_cancellation=True)
    assert stored(job_id).cancel_requested_at is None


def test_a_claim_says_that_the_job_was_asked_to_stop() -> None:
    asked, other = enqueue_one(), enqueue_one()
    operate.cancel(at(1), asked)
    give(asked, 2)

    assert {job.id: job.is_cancel_requested for job in claim(at(3))} == {asked: True, other: False}


def test_a_request_that_a_dying_job_never_saw_stays_too() -> None:
    job = JobFactory(**DEAD, cancel_requested_at=later(-5))

    give(job.id)

    assert stored(job.id).cancel_requested_at == later(-5)


def test_a_job_that_failed_just_now_has_to_wait_or_be_forced() -> None:
    job_id = crash()

    with pytest.raises(JobMayStillRunError, match="less than 60 s ago"):
        give(job_id, 59, grace_ms=60_000)
    assert stored(job_id).status == "dead"
    assert DeadLetter.objects.count() == 1

    give(job_id, 60, grace_ms=60_000)
    assert stored(job_id).status == "pending"


def test_a_cancelled_job_need_not_wait() -> None:
    job_id = enqueue_one()
    operate.cancel(at(), job_id)

    give(job_id, 1, grace_ms=60_000)

    assert stored(job_id).status == "pending"


@pytest.mark.parametrize(
    ("state", "error"),
    [({}, JobNotGrantableError), ({"scheduled": True}, JobNotGrantableError),
     ({"running": True}, JobNotGrantableError), ({"ended": True}, JobNotGrantableError),
     ({"status": "paused", "ready_lane": None}, JobNotGrantableError),
     ({**DEAD, "namespace": "other"}, JobNotFoundError)],
    ids=str,
)  # fmt: skip
def test_no_other_job_gets_one(state: dict[str, Any], error: type[FlexiQError]) -> None:
    job = JobFactory(**state)
    before = Job.objects.values().get()

    with pytest.raises(error):
        give(job.id)
    with pytest.raises(JobNotFoundError):
        give(new_id())
    assert Job.objects.values().get() == before


def test_a_revoked_task_gets_no_attempt() -> None:
    job_id = crash()
    TaskStateFactory(revoked_at=later(1))

    with pytest.raises(TaskRevokedError, match=r"app\.tasks\.work is revoked"):
        give(job_id, 2)

    assert (stored(job_id).status, DeadLetter.objects.count()) == ("dead", 1)


def test_a_key_that_another_job_holds_is_refused_and_nothing_breaks() -> None:
    job_id = crash(unique_key="k")
    holder = enqueue_one(unique_key="k")

    with pytest.raises(UniqueKeyTakenError, match=str(holder)):
        give(job_id)

    assert (stored(job_id).status, DeadLetter.objects.count()) == ("dead", 1)
    operate.cancel(at(1), holder)
    give(job_id, 2)
    assert stored(job_id).active_key == active_key("k")


def test_an_archived_job_comes_back() -> None:
    dead, done = crash(), running()
    settle.settle(at(), [settlement(done)])
    archive.archive_batch(at(10), older_than_ms=0)
    archived = ArchivedJob.objects.values().get(id=dead)
    del archived["archived_at"]

    give(dead, 20)
    with pytest.raises(JobNotGrantableError, match="is complete"):
        give(done.id, 20)

    assert list(ArchivedJob.objects.values_list("id", flat=True)) == [done.id]
    row = Job.objects.values().get(id=dead)
    changed = {name for name, value in archived.items() if row[name] != value}
    assert changed == {
        "status", "error", "started_at", "completed_at", "scheduled_at", "updated_at",
        "max_retries", "retry_count",
    }  # fmt: skip


def test_a_limited_task_has_its_lane() -> None:
    job_id = crash()

    give(job_id, limited={"app.tasks.work": True})

    assert stored(job_id).ready_lane == "default\x1f\x1fapp.tasks.work"


def test_a_job_of_a_session_goes_to_the_end_of_its_line(
    django_capture_on_commit_callbacks: Any,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        first = enqueue_one(session_id="ann", max_retries=0)
    with django_capture_on_commit_callbacks(execute=True):
        second = enqueue_one(session_id="ann")
    settle.settle(at(), [settlement(claim_one(), "dead", error="x", attempt_error="x")])
    assert (stored(second).session_slot, stored(second).ready_lane) == ("ann", "default")

    with django_capture_on_commit_callbacks(execute=True):
        grant(at(5), first, limited={})

    row = stored(first)
    assert (row.status, row.session_line, row.session_slot) == ("pending", "ann", None)
    settle.settle(at(6), [settlement(claim_one(at(6)))])
    assert (stored(first).session_slot, stored(first).ready_lane) == ("ann", "default")


def test_a_replay_that_goes_on_has_not_ended_badly() -> None:
    replay = ReplayHistoryFactory(replay_job_id=crash(), replay_error="E")
    other = ReplayHistoryFactory(replay_error="E")

    give(replay.replay_job_id)

    found = dict(ReplayHistory.objects.values_list("id", "replay_error"))
    assert found == {replay.id: None, other.id: "E"}


def test_dependents_that_fell_stay_cancelled() -> None:
    parent = running(max_retries=0)
    child = enqueue_one(parents=(parent.id,))
    settle.settle(at(), [settlement(parent, "dead", error="E")])

    give(parent.id)

    assert stored(child).status == "cancelled"


def test_the_old_attempt_can_write_nothing_any_more() -> None:
    old = running(max_retries=0)
    settle.reap(at(99), lambda job: settlement(job, "dead", error="lost"))

    give(old.id, 100)
    again = claim_one(at(101))

    late = settle.settle(at(102), [settlement(old)])
    assert late.lost == {old.id}
    assert stored(old.id).token == again.token


# --- races ----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_gives_the_attempt() -> None:
    job_id = crash()

    def try_it() -> str:
        try:
            give(job_id)
        except JobNotGrantableError as error:
            return str(error)
        return "granted"

    answers = run_in_threads([try_it] * 4)

    assert answers.count("granted") == 1
    assert all("is pending" in answer for answer in answers if answer != "granted")
    assert stored(job_id).max_retries == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_letter_that_is_being_retried_is_waited_for() -> None:
    job_id = crash()
    letter = DeadLetter.objects.get().id
    other = OtherConnection()
    try:
        with transaction.atomic():
            revive.retry_dead(at(1), [letter], limited={})
            waiting = other.submit(give, job_id, 2)
            assert not waiting.done()
        waiting.result(30)
    finally:
        other.close()
    assert DeadLetter.objects.count() == 0
    assert stored(job_id).status == "pending"
