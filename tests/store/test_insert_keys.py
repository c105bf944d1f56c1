"""insert_jobs with unique keys: one job that has not ended for each key."""

import pytest
from django.db import IntegrityError, transaction

from flexiq_django.models import Job
from flexiq_django.store import operate, settle
from flexiq_django.store.enqueue import insert_jobs
from flexiq_django.store.keys import active_key
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import JobFactory, NewJobFactory, at
from tests.store.acting import claim_one, enqueue_one, settlement, stored

pytestmark = pytest.mark.django_db


def test_a_taken_key_answers_with_its_holder() -> None:
    first = NewJobFactory(unique_key="k", queue="a", task_name="one")
    second = NewJobFactory(unique_key="k", queue="b", task_name="two", priority=9)

    assert insert_jobs(at(), [first]) == [first.id]
    assert insert_jobs(at(), [second]) == [first.id]

    row = Job.objects.get()
    assert (row.id, row.queue, row.task_name, row.priority) == (first.id, "a", "one", 0)


def test_a_key_belongs_to_its_namespace() -> None:
    first = enqueue_one(unique_key="k")
    second = enqueue_one(at(namespace="other"), unique_key="k")

    assert first != second
    assert Job.objects.count() == 2


@pytest.mark.parametrize("other", ["K", "k ", " k", "ḱ", "k\u200b"])
def test_keys_are_compared_exactly(other: str) -> None:
    enqueue_one(unique_key="k")
    enqueue_one(unique_key=other)

    assert Job.objects.count() == 2


def test_repeats_within_a_bulk_stand_for_the_first() -> None:
    jobs = [
        NewJobFactory(unique_key="a"),
        NewJobFactory(),
        NewJobFactory(unique_key="b"),
        NewJobFactory(unique_key="a"),
        NewJobFactory(),
        NewJobFactory(unique_key="b"),
    ]
    a, plain, b, _, also_plain, _ = (job.id for job in jobs)

    assert insert_jobs(at(), jobs) == [a, plain, b, a, also_plain, b]
    assert set(Job.objects.values_list("id", flat=True)) == {a, plain, b, also_plain}


def test_a_bulk_mixes_new_and_taken_keys() -> None:
    held = enqueue_one(unique_key="held")
    jobs = [NewJobFactory(unique_key=key) for key in ("new", "held", "newer", "held")]

    assert insert_jobs(at(), jobs) == [jobs[0].id, held, jobs[2].id, held]
    assert Job.objects.count() == 3


@pytest.mark.parametrize("state", ["scheduled", "waiting", "running"])
def test_a_job_holds_its_key_until_it_ends(state: str) -> None:
    holder = JobFactory(active_key=active_key("k"), unique_key="k", **{state: True})

    assert insert_jobs(at(), [NewJobFactory(unique_key="k")]) == [holder.id]


def test_a_paused_job_holds_its_key() -> None:
    holder = JobFactory(waiting=True, status="paused", active_key=active_key("k"))

    assert insert_jobs(at(), [NewJobFactory(unique_key="k")]) == [holder.id]


def test_a_retry_keeps_the_key() -> None:
    holder = enqueue_one(unique_key="k")
    settle.settle(at(), [settlement(claim_one(), "pending", wait_ms=5_000, attempt_error="e")])

    assert insert_jobs(at(), [NewJobFactory(unique_key="k")]) == [holder]


@pytest.mark.parametrize("status", ["complete", "dead", "cancelled"])
def test_every_end_of_an_attempt_frees_the_key(status: str) -> None:
    holder = enqueue_one(unique_key="k")
    settle.settle(at(), [settlement(claim_one(), status)])

    assert enqueue_one(unique_key="k") != holder
    assert Job.objects.count() == 2
    assert stored(holder).unique_key == "k"


def test_a_cancelled_job_frees_its_key() -> None:
    holder = enqueue_one(unique_key="k")
    operate.cancel(at(), holder)

    assert enqueue_one(unique_key="k") != holder
    assert Job.objects.filter(active_key__isnull=False).count() == 1


def test_a_taken_key_leaves_the_callers_transaction_usable() -> None:
    with transaction.atomic():
        first = enqueue_one(unique_key="k")
        assert insert_jobs(at(), [NewJobFactory(unique_key="k")]) == [first]
        second = enqueue_one(unique_key="other")

    assert set(Job.objects.values_list("id", flat=True)) == {first, second}


def test_a_keyed_bulk_that_fails_stores_nothing() -> None:
    taken = enqueue_one()
    jobs = [NewJobFactory(unique_key="k"), NewJobFactory(id=taken)]

    with pytest.raises(IntegrityError), transaction.atomic():
        insert_jobs(at(), jobs)

    assert Job.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_threads_that_race_for_a_key_all_get_the_same_job() -> None:
    def enqueue() -> object:
        (found,) = insert_jobs(at(), [NewJobFactory(unique_key="k")])
        return found

    answers = set(run_in_threads([enqueue] * 10))

    assert answers == {Job.objects.get().id}


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_bulks_with_the_same_keys_in_another_order_do_not_deadlock() -> None:
    keys = [f"key-{number}" for number in range(20)]

    def enqueue(names: list[str]) -> list[object]:
        with transaction.atomic():
            return list(insert_jobs(at(), [NewJobFactory(unique_key=name) for name in names]))

    one, other = run_in_threads([lambda: enqueue(keys), lambda: enqueue(keys[::-1])])

    assert one == other[::-1]
    assert Job.objects.count() == 20


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_an_open_transaction_is_waited_for_and_its_job_found(
    other_connection: OtherConnection,
) -> None:
    def begin() -> object:
        transaction.set_autocommit(False)
        return enqueue_one(unique_key="k")

    def commit() -> None:
        transaction.commit()
        transaction.set_autocommit(True)

    holder = other_connection.run(begin)
    committed = other_connection.submit(commit)

    assert insert_jobs(at(), [NewJobFactory(unique_key="k")]) == [holder]
    committed.result(10)


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_key_whose_holder_rolls_back_is_free(other_connection: OtherConnection) -> None:
    def begin() -> None:
        transaction.set_autocommit(False)
        enqueue_one(unique_key="k")

    def roll_back() -> None:
        transaction.rollback()
        transaction.set_autocommit(True)

    other_connection.run(begin)
    rolled_back = other_connection.submit(roll_back)
    job = NewJobFactory(unique_key="k")

    assert insert_jobs(at(), [job]) == [job.id]
    rolled_back.result(10)
    assert Job.objects.get().id == job.id
