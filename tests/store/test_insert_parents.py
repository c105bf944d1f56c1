"""insert_jobs with parents: who waits, who is ready, who is refused."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connections, transaction

from flexiq_django.exceptions import DependencyError
from flexiq_django.models import Job, JobDependency
from flexiq_django.store import dependencies, settle
from flexiq_django.store.archive import archive_batch
from flexiq_django.store.enqueue import insert_jobs
from flexiq_django.store.ids import new_id
from tests.concurrency import OtherConnection
from tests.factories import ArchivedJobFactory, JobFactory, NewJobFactory, at
from tests.store.acting import claim, claim_one, enqueue_one, running, settlement, stored

pytestmark = pytest.mark.django_db


def edges(child: UUID) -> dict[UUID, bool]:
    return dict(JobDependency.objects.filter(job_id=child).values_list("parent_id", "is_open"))


@pytest.mark.parametrize("state", [{}, {"scheduled": True}, {"waiting": True}, {"running": True}])
def test_a_job_waits_for_a_parent_that_has_not_ended(state: dict[str, bool]) -> None:
    parent = JobFactory(**state)

    child = enqueue_one(parents=(parent.id,))

    row = stored(child)
    assert (row.status, row.ready_lane, row.promote_at) == ("pending", None, None)
    assert edges(child) == {parent.id: True}


def test_a_paused_parent_is_waited_for() -> None:
    parent = JobFactory(waiting=True, status="paused")

    assert edges(enqueue_one(parents=(parent.id,))) == {parent.id: True}


def test_a_completed_parent_holds_nothing_up() -> None:
    live = JobFactory(ended=True)
    archived = ArchivedJobFactory()

    child = enqueue_one(parents=(live.id, archived.id))

    assert stored(child).ready_lane == "default"
    assert edges(child) == {live.id: False, archived.id: False}


def test_one_open_parent_is_enough_to_wait() -> None:
    done, running_parent = JobFactory(ended=True), JobFactory(running=True)

    child = enqueue_one(parents=(done.id, running_parent.id))

    assert stored(child).ready_lane is None
    assert edges(child) == {done.id: False, running_parent.id: True}


@pytest.mark.parametrize("status", ["dead", "cancelled", "failed"])
@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_failed_parent_is_refused_by_name(status: str, factory: type[JobFactory]) -> None:
    state = {"ended": True} if factory is JobFactory else {}
    parent = factory(status=status, **state)
    before = Job.objects.count()

    with pytest.raises(DependencyError, match=f"{parent.id} is {status}"):
        insert_jobs(at(), [NewJobFactory(), NewJobFactory(parents=(parent.id,))])

    assert Job.objects.count() == before
    assert JobDependency.objects.count() == 0


@pytest.mark.parametrize("status", ["dead", "cancelled"])
def test_a_failed_parent_is_accepted_where_that_is_allowed(status: str) -> None:
    parent = JobFactory(ended=True, status=status)

    child = enqueue_one(parents=(parent.id,), allow_parent_failure=True)

    assert stored(child).ready_lane == "default"
    assert JobDependency.objects.get(job_id=child).allow_failure


@pytest.mark.parametrize("namespace", [None, "other"])
def test_a_parent_that_is_not_here_is_refused(namespace: str | None) -> None:
    parent = JobFactory(namespace=namespace).id if namespace else new_id()
    before = Job.objects.count()

    with pytest.raises(DependencyError, match=f"no job {parent} in namespace 'default'"):
        insert_jobs(at(), [NewJobFactory(parents=(parent,), allow_parent_failure=True)])

    assert Job.objects.count() == before


def test_a_refusal_leaves_the_callers_transaction_usable() -> None:
    with transaction.atomic():
        with pytest.raises(DependencyError):
            enqueue_one(parents=(new_id(),))
        key = enqueue_one()

    assert Job.objects.get().id == key


@pytest.mark.django_db(transaction=True)
def test_a_parent_that_is_archived_meanwhile_is_found(other_connection: OtherConnection) -> None:
    parent = JobFactory(ended=True)
    archive = iter([lambda: archive_batch(at(1), older_than_ms=0)])

    def archive_after_the_first_look(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        for act in archive:
            assert other_connection.run(act) == 1
        return answer

    with connections["default"].execute_wrapper(archive_after_the_first_look):
        child = enqueue_one(parents=(parent.id,))

    assert stored(child).ready_lane == "default"


def test_jobs_of_one_call_may_wait_for_each_other() -> None:
    first, second, third = NewJobFactory(), NewJobFactory(), NewJobFactory()
    second = NewJobFactory(id=second.id, parents=(first.id,))
    third = NewJobFactory(id=third.id, parents=(first.id, second.id))

    insert_jobs(at(), [third, second, first])

    assert [job.id for job in claim()] == [first.id]
    assert edges(third.id) == {first.id: True, second.id: True}


def test_a_delayed_child_is_due_only_after_its_parents() -> None:
    parent = running()
    child = enqueue_one(parents=(parent.id,), delay_ms=30_000)

    assert stored(child).promote_at is None
    settle.settle(at(10), [settlement(parent)])

    row = stored(child)
    assert row.promote_at == row.scheduled_at
    assert row.ready_lane is None


def test_a_keyed_child_that_is_a_repeat_gets_no_edges() -> None:
    parent = JobFactory(running=True)
    holder = enqueue_one(unique_key="k")
    jobs = [NewJobFactory(unique_key="k", parents=(parent.id,))]

    assert insert_jobs(at(), jobs) == [holder]
    assert JobDependency.objects.count() == 0


def test_many_parents() -> None:
    parents = [JobFactory(running=True).id for _ in range(30)]

    child = enqueue_one(parents=tuple(parents))

    assert edges(child) == dict.fromkeys(parents, True)


# --- the parent ends while its child is being enqueued --------------------------------------------


def open_child_of(parent: UUID, **fields: object) -> UUID:
    """A child whose edge was stored too late for the parent to see it."""
    child = JobFactory(waiting=True)
    JobDependency.objects.create(
        namespace="default", job_id=child.id, parent_id=parent, is_open=True, **fields
    )
    return child.id


@pytest.mark.parametrize("archived", [False, True])
def test_a_recheck_releases_the_child_of_a_completed_parent(archived: bool) -> None:
    parent = ArchivedJobFactory() if archived else JobFactory(ended=True)
    child = open_child_of(parent.id)

    assert dependencies.recheck(at(), [parent.id]) == []

    assert stored(child).ready_lane == "default"
    assert edges(child) == {parent.id: False}


def test_a_recheck_cancels_the_child_of_a_failed_parent() -> None:
    parent = JobFactory(ended=True, status="dead")
    child = open_child_of(parent.id)
    tolerant = open_child_of(parent.id, allow_failure=True)

    assert dependencies.recheck(at(), [parent.id]) == [child]

    assert stored(child).error == f"dependency failed: {parent.id}"
    assert stored(tolerant).ready_lane == "default"


def test_a_recheck_leaves_the_child_of_an_open_parent_alone() -> None:
    parent = JobFactory(running=True)
    child = open_child_of(parent.id)

    assert dependencies.recheck(at(), [parent.id, parent.id]) == []
    assert edges(child) == {parent.id: True}


def test_a_recheck_releases_the_child_of_a_purged_parent() -> None:
    child = open_child_of(gone := new_id())

    assert dependencies.recheck(at(), [gone]) == []

    assert stored(child).ready_lane == "default"


def test_the_net_finds_what_a_recheck_never_did() -> None:
    ended, failed = JobFactory(ended=True), JobFactory(ended=True, status="cancelled")
    children = [open_child_of(ended.id), open_child_of(new_id())]
    doomed = open_child_of(failed.id)
    waiting = open_child_of(JobFactory(running=True).id)

    assert dependencies.sweep_ended(at(), 0) == (0, ([doomed], 2, 0))

    assert [stored(key).ready_lane for key in children] == ["default", "default"]
    assert stored(doomed).status == "cancelled"
    assert stored(waiting).ready_lane is None


def test_the_net_goes_on_where_it_stopped() -> None:
    parent = JobFactory(running=True)
    for _ in range(5):
        open_child_of(parent.id)
    last = open_child_of(JobFactory(ended=True).id)

    position, _ = dependencies.sweep_ended(at(), 0, limit=3)
    assert position > 0
    assert stored(last).ready_lane is None
    position, _ = dependencies.sweep_ended(at(), position, limit=3)
    assert stored(last).ready_lane == "default"
    assert dependencies.sweep_ended(at(), position, limit=3) == (0, ([], 0, 0))


def test_the_net_stays_in_its_namespace() -> None:
    child = open_child_of(new_id())

    assert dependencies.sweep_ended(at(namespace="other"), 0) == (0, ([], 0, 0))
    assert stored(child).ready_lane is None


def test_a_child_can_run_once_its_last_parent_is_done() -> None:
    first, second = running(), running()
    child = enqueue_one(parents=(first.id, second.id))

    settle.settle(at(), [settlement(first)])
    assert claim() == []
    settle.settle(at(), [settlement(second)])
    assert claim_one().id == child
