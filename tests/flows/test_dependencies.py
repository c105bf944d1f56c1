"""Dependents move however and whenever their parents end."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from flexiq_django import queue
from flexiq_django.exceptions import DependencyError, TaskCancelledError
from flexiq_django.models import Job, JobDependency
from tests.concurrency import OtherConnection
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, job_row, keys
from tests.flows.gates import Gate
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

#: Seconds; well below the pause of the safety net, which must not be needed.
BEFORE_THE_NET = 12


def statuses(*jobs: object) -> list[str]:
    return [job_row(job.id).status for job in jobs]  # type: ignore[attr-defined]


def enqueue_pairs(count: int) -> list[str]:
    """Enqueue parents, and children that may come too late to see them run; the children."""
    children = []
    try:
        for _ in range(count):
            parent = tasks.quick.delay()
            child = tasks.quick.apply_async(depends_on=parent)
            with transaction.atomic():  # the edge becomes visible later than it was decided
                grandchild = tasks.quick.apply_async(depends_on=[parent, child])
            children += [child.id, grandchild.id]
    finally:
        connections.close_all()
    return children


def test_a_parent_may_end_while_its_child_is_enqueued(workers: Workers) -> None:
    fleet = [workers.start("--concurrency", "4"), workers.start("--concurrency", "4")]

    with ThreadPoolExecutor(3) as threads:
        batches = list(threads.map(enqueue_pairs, [100] * 3))

    wait_until(lambda: queue.stats()["completed"] == 900, 30, "every child to run")
    children = [child for batch in batches for child in batch]
    assert len(children) == 600
    assert not JobDependency.objects.filter(is_open=True).exists()
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}
    assert_quiet(*fleet)


@pytest.mark.row_locks
@pytest.mark.parametrize("fails", [False, True])
def test_a_parent_may_end_before_the_childs_commit(
    workers: Workers, gate: Gate, fails: bool
) -> None:
    workers.start()
    task = tasks.hold_and_fail if fails else tasks.hold
    parent = task.apply_async((str(gate),), max_retries=0)
    gate.wait_until_reached()
    watcher = OtherConnection()

    with transaction.atomic():
        child = tasks.note.apply_async(("child",), depends_on=parent)
        tolerant = tasks.note.apply_async(
            ("tolerant",), depends_on=parent, allow_parent_failure=True
        )
        gate.open()
        ended = "dead" if fails else "complete"
        watcher.run(wait_until, lambda: job_row(parent.id).status == ended, 20)

    wait_until(lambda: job_row(tolerant.id).status == "complete", BEFORE_THE_NET)
    wait_until(lambda: job_row(child.id).completed_at, BEFORE_THE_NET)
    assert statuses(child) == ["cancelled" if fails else "complete"]
    watcher.close()


def test_two_parents_that_end_together_release_their_child(workers: Workers, gate: Gate) -> None:
    workers.start("--concurrency", "1")
    workers.start("--concurrency", "1")
    for number in range(5):
        door = Gate(f"{gate}-{number}")
        parents = queue.enqueue_many(tasks.hold_as, [(str(door), "one"), (str(door), "two")])
        child = tasks.note.apply_async((f"child {number}",), depends_on=parents)
        door.wait_until_reached("one")
        door.wait_until_reached("two")
        assert statuses(child) == ["pending"]

        door.open()

        assert child.result(BEFORE_THE_NET) is None
    assert keys()["child 4"] == 1


def test_a_failure_cancels_what_depends_on_it(workers: Workers) -> None:
    parent = tasks.fail_for_good.delay()
    child = tasks.note.apply_async(("child",), depends_on=parent)
    grandchild = tasks.note.apply_async(("grandchild",), depends_on=child)
    tolerant = tasks.note.apply_async(("tolerant",), depends_on=parent, allow_parent_failure=True)
    late_tolerant = tasks.note.apply_async(
        ("late tolerant",), depends_on=grandchild, allow_parent_failure=True
    )
    other = tasks.note.delay("other")

    workers.burst()

    assert statuses(parent, child, grandchild) == ["dead", "cancelled", "cancelled"]
    assert statuses(tolerant, late_tolerant, other) == ["complete"] * 3
    assert keys() == {"tolerant": 1, "late tolerant": 1, "other": 1}
    assert f"dependency failed: {parent.id}" in str(job_row(child.id).error)
    with pytest.raises(TaskCancelledError):
        child.result()
    with pytest.raises(DependencyError, match="dead"):
        tasks.note.apply_async(("too late",), depends_on=parent)


def test_a_cancel_cancels_what_depends_on_it(workers: Workers) -> None:
    parent = tasks.note.delay("parent")
    child = tasks.note.apply_async(("child",), depends_on=parent)
    grandchild = tasks.note.apply_async(("grandchild",), depends_on=[child])
    tolerant = tasks.note.apply_async(("tolerant",), depends_on=parent, allow_parent_failure=True)

    assert queue.cancel_job(parent.id)

    assert statuses(parent, child, grandchild) == ["cancelled"] * 3
    workers.burst()
    assert keys() == {"tolerant": 1}
    assert statuses(tolerant) == ["complete"]


def test_a_child_that_is_cancelled_does_not_come_back(workers: Workers) -> None:
    parent = tasks.note.delay("parent")
    child = tasks.note.apply_async(("child",), depends_on=parent)
    assert queue.cancel_job(child.id)

    workers.burst()

    assert keys() == {"parent": 1}
    assert statuses(child) == ["cancelled"]


def test_a_child_waits_for_its_own_delay_as_well(workers: Workers) -> None:
    workers.start()
    parent = tasks.quick.delay()
    child = tasks.quick.apply_async(depends_on=parent, delay=1.0)

    child.result(BEFORE_THE_NET)

    row = job_row(child.id)
    assert (row.started_at - row.created_at).total_seconds() >= 1.0


def test_unknown_parents_are_refused_before_anything_is_written(namespace: str) -> None:
    other = type(queue)(namespace=f"{namespace}-other").enqueue(tasks.quick)
    rolled_back = []
    with transaction.atomic():
        rolled_back.append(tasks.quick.delay())
        transaction.set_rollback(True)

    for unknown in [other.id, rolled_back[0], "no id at all", "0" * 32]:
        with transaction.atomic():
            with pytest.raises(DependencyError):
                tasks.note.apply_async(("child",), depends_on=unknown)
            with pytest.raises(DependencyError):
                queue.enqueue_many(tasks.note, [("child",)] * 3, depends_on=[unknown])
            kept = tasks.quick.delay()  # the caller's transaction is still good
        assert kept.status == "pending"
    assert not Job.objects.filter(task_name=tasks.note.name).exists()
    assert not JobDependency.objects.exists()


def test_many_children_of_one_parent_are_released_once(workers: Workers) -> None:
    parent = tasks.quick.delay()
    queue.enqueue_many(tasks.note, [(f"{number}",) for number in range(500)], depends_on=parent)

    workers.burst("--processes", "2")

    assert len(keys()) == 500
    assert set(keys().values()) == {1}
