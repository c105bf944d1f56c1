"""One live job for each key, whoever asks at the same time, and never at the caller's expense."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from django.db import transaction

from flexiq_django import queue
from flexiq_django.models import Job
from tests.concurrency import OtherConnection, blocked_connections, run_in_threads
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import job_row, keys
from tests.flows.gates import Gate
from tests.testapp.models import Mark
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

THREADS = 50


def enqueue(key: str = "k") -> str:
    return tasks.note.apply_async(("unique",), unique_key=key).id


def enqueue_with_data() -> str:
    with transaction.atomic():
        Mark.objects.create(key="data")
        job_id = enqueue()
        Mark.objects.create(key="more data")  # the transaction is still good
    return job_id


def enqueue_in_bulk() -> str:
    same = queue.enqueue_many(tasks.note, [("unique",)] * 3, unique_keys=["k", "other", "k"])
    assert same[0] == same[2] != same[1]
    return same[0].id


@pytest.mark.parametrize("call", [enqueue, enqueue_with_data, enqueue_in_bulk])
def test_fifty_threads_get_one_job(namespace: str, call: Callable[[], str]) -> None:
    ids = run_in_threads([call] * THREADS)

    assert len(set(ids)) == 1
    assert Job.objects.filter(unique_key="k").count() == 1
    if call is enqueue_with_data:
        assert keys() == {"data": THREADS, "more data": THREADS}
    if call is enqueue_in_bulk:
        assert Job.objects.count() == 2


def test_bulk_calls_with_the_same_keys_in_other_orders(namespace: str) -> None:
    names = [f"key {number}" for number in range(40)]

    def forwards() -> list[str]:
        jobs = queue.enqueue_many(tasks.note, [("unique",)] * 40, unique_keys=names)
        return [job.id for job in jobs]

    def backwards() -> list[str]:
        jobs = queue.enqueue_many(tasks.note, [("unique",)] * 40, unique_keys=names[::-1])
        return [job.id for job in jobs][::-1]

    answers = run_in_threads([forwards, backwards] * 5)

    assert len({tuple(answer) for answer in answers}) == 1
    assert Job.objects.count() == 40


@pytest.mark.parametrize("inside_atomic", [False, True])
def test_half_of_them_roll_back(namespace: str, inside_atomic: bool) -> None:
    def rolled_back() -> None:
        with transaction.atomic():
            enqueue()
            transaction.set_rollback(True)

    kept = enqueue_with_data if inside_atomic else enqueue

    ids = run_in_threads([kept, rolled_back] * 10)

    (survivor,) = {job_id for job_id in ids if job_id}
    assert [str(key) for key in Job.objects.values_list("id", flat=True)] == [survivor]


@pytest.mark.row_locks
def test_who_waits_for_a_key_gets_it_when_the_holder_rolls_back(namespace: str) -> None:
    holder, others = OtherConnection(), [OtherConnection() for _ in range(4)]
    is_stored, may_end = threading.Event(), threading.Event()

    def hold_the_key() -> None:
        with transaction.atomic():
            enqueue()
            is_stored.set()
            may_end.wait(30)
            transaction.set_rollback(True)

    held = holder.submit(hold_the_key)
    assert is_stored.wait(30)
    waiting: list[Future[str]] = [other.submit(enqueue) for other in others]
    wait_until(lambda: blocked_connections() == len(others), 20)
    may_end.set()

    held.result(30)
    ids = {each.result(30) for each in waiting}
    for other in [holder, *others]:
        other.close()
    assert len(ids) == 1
    assert Job.objects.count() == 1


def test_the_key_is_held_while_running_and_free_afterwards(workers: Workers, gate: Gate) -> None:
    workers.start()
    first = tasks.hold.apply_async((str(gate),), unique_key="k")
    gate.wait_until_reached()

    assert set(run_in_threads([enqueue] * 10)) == {first.id}
    gate.open()
    assert first.result(20) == "attempt 1"

    second = enqueue()
    assert second != first.id
    queue.get_job(second).result(20)
    assert keys() == {"unique": 1}


def test_the_key_is_held_between_retries_and_free_after_the_death(workers: Workers) -> None:
    workers.start()
    failing = tasks.fail_until.apply_async((9,), unique_key="k", max_retries=1)

    def enqueue_until_dead() -> str | None:
        return failing.id if enqueue() == failing.id else None

    seen = 0
    while job_row(failing.id).status != "dead":
        seen += enqueue_until_dead() is not None or job_row(failing.id).status == "dead"
    assert seen > 0
    assert enqueue() != failing.id


def test_a_cancelled_job_frees_its_key(namespace: str) -> None:
    first = enqueue()
    assert queue.cancel_job(first)
    assert enqueue() != first


def test_keys_are_compared_as_they_are(namespace: str) -> None:
    names = [
        "a",
        "A",
        "A ",
        " A",
        "ä",
        "a\u0308",
        "\U0001f600",
        "\U0001f601",
        "a\n",
        "ß",
        "ss",
        "0",
    ]

    ids = [enqueue(name) for name in names]
    again = [enqueue(name) for name in names]

    assert len(set(ids)) == len(names)
    assert again == ids
    in_bulk = queue.enqueue_many(tasks.note, [("unique",)] * len(names), unique_keys=names)
    assert [job.id for job in in_bulk] == ids
    assert [job_row(job_id).unique_key for job_id in ids] == names


@pytest.mark.parametrize("key", ["", "a\x00b", "\ud800", "x" * 256])
def test_keys_no_database_can_keep_are_refused(namespace: str, key: str) -> None:
    with pytest.raises(ValueError, match="unique_key"):
        enqueue(key)
    assert not Job.objects.exists()


def test_namespaces_do_not_share_keys(namespace: str) -> None:
    other = type(queue)(namespace=f"{namespace}-other")

    first = enqueue()
    second = other.enqueue(tasks.note, ("unique",), unique_key="k")

    assert first != second.id
    assert Job.objects.count() == 2
