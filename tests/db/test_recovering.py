"""Jobs of lost workers come back, those of living ones never."""

import pytest

from flexiq_django import db as jobs
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.models import DeadLetter, JobError, Worker
from flexiq_django.store.ids import new_id
from tests.concurrency import run_in_threads
from tests.db.conftest import LONG_AGO, change, claimed, outlive_lease, row_of
from tests.factories import JobDependencyFactory, JobFactory, WorkerFactory


def test_only_leases_that_have_run_out_are_reclaimed(place: jobs.JobDatabase) -> None:
    gone, alive = claimed(place, 1), claimed(place, 2)
    outlive_lease(gone)
    change(alive, updated_at=LONG_AGO)  # silent for long, but it has a lease that runs

    assert jobs.reclaim_stale(place, 1) == 1

    assert row_of(alive).status == "running"
    row = row_of(gone)
    assert (row.status, row.retry_count, row.token) == ("pending", 1, None)
    found = jobs.get_job_details(place, gone.id)
    assert found is not None
    assert found.worker_id is None
    assert [(each.number, each.worker_id) for each in found.failed_attempts] == [(0, "me")]
    assert jobs.reclaim_stale(place) == 0


def test_a_grace_after_the_last_sign_of_life(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    change(claim, lease_at=LONG_AGO)

    assert jobs.reclaim_stale(place, 3600) == 0
    change(claim, updated_at=LONG_AGO)
    assert jobs.reclaim_stale(place, 3600) == 1
    with pytest.raises(InvalidOptionError):
        jobs.reclaim_stale(place, -1)


def test_what_a_dead_process_has_left_waiting_is_found(place: jobs.JobDatabase) -> None:
    children = []
    for _ in range(2):
        child = JobFactory(waiting=True)
        JobDependencyFactory(job_id=child.id, parent_id=new_id())  # the parent is gone
        children.append(child)
        head = JobFactory(ready_lane=None, session_id="s", session_line="s")
        assert jobs.reclaim_stale(place) == 0
        if len(children) == 1:
            assert row_of(str(head.id)).session_slot == "s"
            change(str(head.id), session_slot=None, session_id=None)
        lanes = [row_of(str(each.id)).ready_lane for each in children]
        assert lanes == ["default", None][: len(children)]  # once in half a minute

    place.walk.rests_until = 0
    assert jobs.reclaim_stale(place) == 0
    assert row_of(str(children[1].id)).ready_lane == "default"
    assert row_of(str(head.id)).session_slot == "s"


def test_without_a_retry_left_the_job_has_failed(place: jobs.JobDatabase) -> None:
    claim = claimed(place, max_retries=0)
    outlive_lease(claim)

    assert jobs.reclaim_stale(place) == 1
    assert jobs.count_by_status(place, "failed") == DeadLetter.objects.count() == 1


def test_what_a_crashed_life_of_the_same_name_left(place: jobs.JobDatabase) -> None:
    mine = [claimed(place, number) for number in range(2)]
    jobs.insert_job(place, 9)
    theirs = jobs.claim(place, "other")
    assert theirs is not None

    assert jobs.requeue_interrupted(place, "me") == 2
    assert jobs.requeue_interrupted(place, "me") == 0

    assert [row_of(each).status for each in mine] == ["pending"] * 2
    assert row_of(theirs).status == "running"
    assert JobError.objects.count() == 2
    assert not jobs.mark_completed_owned(place, mine[0])
    assert jobs.mark_completed_owned(place, theirs)


def test_a_worker_that_is_alive_keeps_its_jobs(place: jobs.JobDatabase) -> None:
    claim = claimed(place)
    WorkerFactory(id="me", namespace=place.namespace)
    Worker.objects.update(lease_at=row_of(claim).lease_at)

    with pytest.raises(InvalidOptionError, match="'me', which is a flexiq_worker that is alive"):
        jobs.requeue_interrupted(place, "me")
    with pytest.raises(InvalidOptionError):
        jobs.requeue_interrupted(place, "")
    assert row_of(claim).status == "running"


@pytest.mark.django_db(transaction=True)
def test_many_may_reclaim_at_once() -> None:
    place = jobs.open_database()
    for number in range(6):
        outlive_lease(claimed(place, number))

    taken = run_in_threads([lambda: jobs.reclaim_stale(place)] * 3)

    assert sum(taken) + jobs.reclaim_stale(place) == 6
    assert JobError.objects.count() == 6
    assert jobs.count_by_status(place, "pending") == 6
