"""A job exists exactly when the caller's data does, and no worker sees it sooner."""

import pytest
from django.db import transaction

from flexiq_django import queue
from flexiq_django.models import Job
from tests.concurrency import OtherConnection
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import job_row, keys
from tests.testapp.models import Mark

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def give_and_take(number: int) -> int:
    return int(tasks.give.delay(number).result(20))


def test_a_rollback_takes_the_job_with_it(workers: Workers) -> None:
    with transaction.atomic():
        Mark.objects.create(key="data")
        job = tasks.note.delay("gone")
        queue.enqueue_many(tasks.note, [("gone",)] * 3)
        transaction.set_rollback(True)

    assert queue.get_job(job.id) is None
    assert not Job.objects.exists()
    workers.burst()
    assert not keys()


def test_a_savepoint_takes_only_its_own_jobs(workers: Workers) -> None:
    with transaction.atomic():
        kept = tasks.note.delay("outer")
        with transaction.atomic():
            gone = tasks.note.delay("inner")
            unique = tasks.note.apply_async(("inner",), unique_key="k")
            transaction.set_rollback(True)
        after = tasks.note.apply_async(("after",), unique_key="k")
        assert after != unique

    assert queue.get_job(gone.id) is None
    workers.burst()
    assert keys() == {"outer": 1, "after": 1}
    assert (kept.result(), after.result()) == (None, None)


def test_a_job_enqueued_on_commit_runs(workers: Workers) -> None:
    with transaction.atomic():
        transaction.on_commit(lambda: tasks.note.delay("committed"))
    with transaction.atomic():
        transaction.on_commit(lambda: tasks.note.delay("rolled back"))
        transaction.set_rollback(True)

    workers.burst()
    assert keys() == {"committed": 1}


def test_the_id_is_usable_inside_the_block(workers: Workers) -> None:
    with transaction.atomic():
        parent = tasks.note.delay("parent")
        assert job_row(parent.id).status == "pending"
        assert queue.get_job(parent.id) == parent
        assert parent.status == "pending"
        child = tasks.note.apply_async(("child",), depends_on=parent)
        dropped = tasks.note.delay("dropped")
        assert queue.cancel_job(dropped.id)

    workers.burst()
    assert child.result() is None
    assert keys() == {"parent": 1, "child": 1}


@pytest.mark.row_locks
def test_a_busy_worker_sees_the_job_only_after_the_commit(workers: Workers) -> None:
    workers.start()
    watcher = OtherConnection()
    with transaction.atomic():
        Mark.objects.create(key="data")
        job = tasks.note.delay("after the commit")
        # The worker looks again and again, for jobs that were committed meanwhile.
        for number in range(5):
            assert watcher.run(give_and_take, number) == number
        assert job_row(job.id).attempt == 0

    assert job.result(20) is None
    assert keys()["after the commit"] == 1
    watcher.close()


def test_a_woken_worker_runs_what_was_committed(workers: Workers) -> None:
    workers.start()
    with transaction.atomic():
        Mark.objects.create(key="data")
        job = tasks.note.delay("after the commit")

    assert job.result(20) is None
    assert job_row(job.id).attempt == 1
