"""Retry of dead letters: each gives way to one job, by hand or by itself."""

import json
from typing import Any
from uuid import UUID

import pytest

from flexiq_django.core.records import AutoRetry
from flexiq_django.exceptions import TaskRevokedError
from flexiq_django.models import DeadLetter, Job, ReplayHistory
from flexiq_django.store import dead_letters, enqueue, purge, revive, settle
from flexiq_django.store.ids import new_id
from tests.concurrency import run_in_threads
from tests.factories import DeadLetterFactory, JobFactory, TaskStateFactory, at, later
from tests.store.acting import claim_one, running, settlement, stored

pytestmark = pytest.mark.django_db

KEPT: dict[str, Any] = {
    "queue": "mail",
    "task_name": "app.tasks.send",
    "payload": '[["é"],{"a":1}]',
    "priority": 7,
    "max_retries": 5,
    "timeout_ms": 1_500,
    "result_ttl_ms": 60_000,
    "notes": '{"a":1}',
    "origin": "django_task",
    "schedule": "nightly",
    "session_id": "s",
    "user_id": "u",
    "deployment_id": "blue",
    "trace_id": "t",
}
HOURLY = AutoRetry(3_600_000, 2)


def retry(*letter_ids: UUID, seconds: float = 0) -> list[UUID]:
    """Retry these letters; the new jobs in the order of the letters."""
    jobs = revive.retry_dead(at(seconds), letter_ids, limited={}).jobs
    return [jobs[key].id for key in letter_ids if key in jobs]


def die(seconds: float = 0, auto_retry: AutoRetry | None = None) -> DeadLetter:
    """Let the job that is ready die; its letter."""
    job = claim_one(at(seconds), deployment_id="blue")
    end = settlement(job, "dead", error="E: bad", attempt_error="E: bad")
    settle.settle(at(seconds), [end], auto_retry)
    return DeadLetter.objects.get(original_job_id=job.id)


# --- by hand --------------------------------------------------------------------------------------


def test_a_job_takes_the_place_of_the_letter() -> None:
    job = JobFactory(
        **KEPT, ready_lane="mail\x1fblue", session_slot="s", unique_key="k", active_key="k"
    )
    letter = die()
    before = Job.objects.values().get(id=job.id)

    (key,) = retry(letter.id, seconds=9)

    copy = stored(key)
    assert {name: getattr(copy, name) for name in KEPT} == KEPT
    assert (copy.status, copy.session_line, copy.scheduled_at) == ("pending", "s", later(9))
    assert (copy.retry_count, copy.unique_key, copy.expires_at) == (0, None, None)
    assert (copy.dlq_retry_count, copy.origin_job_id) == (1, job.id)
    assert json.loads(copy.metadata or "") == {
        "__dlq_retry_count": 1,
        "__origin_job_id": str(job.id),
    }
    assert Job.objects.values().get(id=job.id) == before
    assert not DeadLetter.objects.exists()
    assert not ReplayHistory.objects.exists()


@pytest.mark.parametrize("metadata", [None, '{"order": 7}', "order 7"])
def test_the_chain_goes_on_when_it_fails_again(metadata: str | None) -> None:
    first = JobFactory(metadata=metadata)

    for count in (1, 2, 3):
        letter = die()
        assert letter.dlq_retry_count == count - 1
        (key,) = retry(letter.id)
        job = stored(key)
        assert (job.dlq_retry_count, job.origin_job_id) == (count, first.id)

    letter = die()
    assert (letter.dlq_retry_count, letter.origin_job_id) == (3, first.id)
    if metadata == "order 7":
        assert letter.metadata == metadata
    else:
        assert json.loads(letter.metadata or "") == {
            **json.loads(metadata or "{}"),
            "__dlq_retry_count": 3,
            "__origin_job_id": str(first.id),
        }


def test_what_metadata_claims_of_the_chain_counts_for_nothing() -> None:
    letter = DeadLetterFactory(metadata='{"__dlq_retry_count": 99, "__origin_job_id": "x"}')

    (key,) = retry(letter.id)

    assert stored(key).dlq_retry_count == 1
    assert json.loads(stored(key).metadata or "")["__dlq_retry_count"] == 1


def test_a_letter_outlives_its_job() -> None:
    letter = DeadLetterFactory()
    assert stored(retry(letter.id)[0]).origin_job_id == letter.original_job_id


def test_unknown_foreign_and_retried_letters_are_passed_over() -> None:
    foreign = DeadLetterFactory(namespace="other")
    letter = DeadLetterFactory()

    assert retry(new_id(), foreign.id, letter.original_job_id) == []
    assert len(retry(letter.id, foreign.id)) == 1
    assert retry(letter.id) == []
    assert DeadLetter.objects.get() == foreign
    assert retry() == []


def test_letters_of_several_tasks_in_the_order_of_their_deaths() -> None:
    letters = [DeadLetterFactory(task_name=f"app.{number % 3}").id for number in range(7)]
    TaskStateFactory(name="app.1", max_concurrent=1)

    keys = retry(*letters)

    assert keys == sorted(keys)
    assert [stored(key).task_name for key in keys] == [f"app.{number % 3}" for number in range(7)]
    assert stored(keys[1]).ready_lane == "default\x1f\x1fapp.1"


def test_letters_of_a_revoked_task_stay() -> None:
    TaskStateFactory(name="app.off", revoked_at=later(0))
    off, on = DeadLetterFactory(task_name="app.off"), DeadLetterFactory()

    outcome = revive.retry_dead(at(), [off.id, on.id], limited={})

    assert outcome.revoked == [off.id]
    assert list(outcome.jobs) == [on.id]
    assert DeadLetter.objects.get() == off


def test_a_task_that_is_revoked_at_that_moment_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    letters = [DeadLetterFactory(task_name=name) for name in ("app.on", "app.off")]
    plain = enqueue.insert_copies

    def revoked_meanwhile(*arguments: Any) -> None:
        TaskStateFactory(name="app.off", revoked_at=later(0))
        plain(*arguments)

    monkeypatch.setattr(revive, "insert_copies", revoked_meanwhile)
    with pytest.raises(TaskRevokedError):
        retry(*(each.id for each in letters))

    assert DeadLetter.objects.count() == 2
    assert not Job.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_who_retry_one_letter_at_once_make_one_job() -> None:
    for _ in range(10):
        letter = DeadLetterFactory()
        others = [DeadLetterFactory().id for _ in range(3)]

        found = run_in_threads(
            [
                lambda letter=letter: retry(letter.id),
                lambda letter=letter, others=others: retry(letter.id, *others),
            ]
        )

        assert sorted(map(len, found)) in ([0, 4], [1, 3])
        assert Job.objects.count() == 4
        assert not DeadLetter.objects.exists()
        Job.objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_a_letter_that_is_retried_and_deleted_at_once() -> None:
    for _ in range(10):
        letter = DeadLetterFactory()

        keys, deleted = run_in_threads(
            [
                lambda letter=letter: retry(letter.id),
                lambda letter=letter: dead_letters.delete(at(), letter.id),
            ]
        )

        assert bool(keys) is not deleted
        assert Job.objects.count() == len(keys)
        Job.objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_a_letter_that_is_retried_and_purged_at_once() -> None:
    for _ in range(10):
        job = JobFactory(ended=True, status="dead")
        letter = DeadLetterFactory(original_job_id=job.id)

        keys, purged = run_in_threads(
            [
                lambda letter=letter: retry(letter.id),
                lambda: sum(purge.purge_dead(at(9), older_than_ms=0)),
            ]
        )

        # Whoever comes first has it; a purge that comes second leaves the dead job alone.
        assert purged == (not keys)
        assert Job.objects.filter(status="dead").exists() is bool(keys)
        assert Job.objects.filter(status="pending").count() == len(keys)
        Job.objects.all().delete()


# --- by itself ------------------------------------------------------------------------------------


def retry_due(seconds: float, most: int = 2) -> int:
    due = revive.due_letters(at(seconds))
    return len(revive.retry_due(at(seconds), due, most=most, limited={}).jobs)


def test_a_letter_says_when_it_is_due_and_is_retried_then() -> None:
    running()
    Job.objects.update(status="pending", lease_at=None, ready_lane="default")
    letter = die(10, HOURLY)
    assert letter.auto_retry_at == later(3_610)

    assert retry_due(3_609.9) == 0
    assert retry_due(3_610) == 1
    assert retry_due(3_610) == 0
    assert not DeadLetter.objects.exists()


def test_without_a_policy_a_letter_waits_for_a_person() -> None:
    JobFactory()
    assert die().auto_retry_at is None


def test_a_chain_ends_with_a_letter_for_a_person() -> None:
    JobFactory()
    for seconds in (0, 3_600):
        assert die(seconds, HOURLY).auto_retry_at == later(seconds + 3_600)
        assert retry_due(seconds + 3_600) == 1

    letter = die(7_200, HOURLY)

    assert (letter.dlq_retry_count, letter.auto_retry_at) == (2, None)
    assert retry_due(10**9) == 0


def test_a_lost_worker_leaves_such_a_letter_too() -> None:
    running()

    settle.reap(
        at(61),
        lambda job: settlement(job, "dead", error="lost", attempt_error="lost"),
        auto_retry=HOURLY,
    )

    assert DeadLetter.objects.get().auto_retry_at == later(3_661)


def test_a_limit_that_was_lowered_since_leaves_letters_alone() -> None:
    letter = DeadLetterFactory(auto_retry_at=later(0), dlq_retry_count=2)

    assert retry_due(1) == 0

    letter.refresh_from_db()
    assert letter.auto_retry_at is None


def test_letters_of_revoked_tasks_are_left_to_a_person() -> None:
    TaskStateFactory(revoked_at=later(0))
    letter = DeadLetterFactory(auto_retry_at=later(0))

    assert retry_due(1) == 0
    assert revive.due_letters(at(1)) == []
    letter.refresh_from_db()
    assert letter.auto_retry_at is None


def test_a_letter_that_a_person_took_is_not_retried_again() -> None:
    letter = DeadLetterFactory(auto_retry_at=later(0))
    due = revive.due_letters(at(1))
    retry(letter.id)

    assert revive.retry_due(at(1), due, most=9, limited={}).jobs == {}
    assert Job.objects.count() == 1


def test_due_letters_of_this_namespace_longest_due_first() -> None:
    letters = [DeadLetterFactory(auto_retry_at=later(-number)) for number in range(4)]
    DeadLetterFactory(auto_retry_at=later(0), namespace="other")
    DeadLetterFactory(auto_retry_at=later(2))

    assert revive.due_letters(at(1), limit=3) == [letters[3].id, letters[2].id, letters[1].id]


@pytest.mark.django_db(transaction=True)
def test_two_leaders_at_once_retry_each_letter_once() -> None:
    for _ in range(20):
        DeadLetterFactory(auto_retry_at=later(0))

    assert sum(run_in_threads([lambda: retry_due(1)] * 2)) == 20
    assert Job.objects.count() == 20
