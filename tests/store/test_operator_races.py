"""What people do while workers and callers are at it: one comes first, and both know who."""

import threading

import pytest
from django.db import transaction

from flexiq_django.core.records import ClaimedJob
from flexiq_django.exceptions import DependencyError
from flexiq_django.models import Job
from flexiq_django.store import claim as claiming
from flexiq_django.store import dependencies, operate, settle, steer
from flexiq_django.store.enqueue import insert_jobs
from flexiq_django.store.gates import NO_GATES
from tests.concurrency import run_in_threads
from tests.factories import NewJobFactory, at
from tests.store.acting import LEASE_MS, claim, enqueue, enqueue_one, running, settlement, stored

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_cancel_and_a_claim_at_once() -> None:
    for _ in range(20):
        job_id = enqueue_one()

        cancelled, claimed = run_in_threads(
            [
                lambda job_id=job_id: operate.cancel(at(), job_id),
                lambda: [job.id for job in claim()],
            ]
        )

        assert sorted([cancelled, claimed]) == [[], [job_id]]
        assert stored(job_id).status == ("cancelled" if cancelled else "running")
        Job.objects.all().delete()


def test_a_purge_of_a_queue_and_a_claim_at_once() -> None:
    enqueue(60)

    def claim_all() -> int:
        taken = 0
        while jobs := claim(limit=5):
            taken += len(jobs)
        return taken

    cancelled, claimed = run_in_threads(
        [
            lambda: steer.cancel_pending(at(), error="purged", queue="default"),
            claim_all,
        ]
    )

    # A claim passes over what is locked, and may leave before the purge is through.
    assert Job.objects.filter(status="running").count() == claimed
    assert Job.objects.filter(status="cancelled").count() == cancelled
    assert cancelled + claimed + len(claim()) == 60


def test_a_purge_of_a_queue_and_enqueues_at_once() -> None:
    enqueue(40)

    def enqueue_on() -> int:
        for _ in range(40):
            enqueue_one()
        return 0

    cancelled, _ = run_in_threads(
        [lambda: steer.cancel_pending(at(), error="purged", queue="default"), enqueue_on]
    )

    # What was there is gone; what came meanwhile is either counted or still there, never neither.
    purged = Job.objects.filter(status="cancelled", error="purged").count()
    assert purged == cancelled >= 40
    assert Job.objects.filter(status="pending", ready_lane="default").count() == 80 - cancelled


def test_no_claim_that_begins_after_a_pause_takes_a_job() -> None:
    enqueue(100)
    is_paused = threading.Event()

    def pause() -> None:
        steer.pause(at(), "default")
        is_paused.set()

    def claim_on() -> list[ClaimedJob]:
        """What the first claim took that began after the pause, knowing nothing of it."""
        while True:
            knew = is_paused.is_set()
            found = claiming.claim(
                at(), lanes=["default"], limit=1, worker_id="w", lease_ms=LEASE_MS, gates=NO_GATES
            ).jobs
            if knew:
                return found

    _, *taken_late = run_in_threads([pause, claim_on, claim_on])

    assert taken_late == [[], []]


@pytest.mark.parametrize("end", ["complete", "dead", "cancelled"])
def test_a_parent_that_ends_while_its_child_is_enqueued(end: str) -> None:
    for _ in range(15):
        parent = running()
        job = NewJobFactory(parents=(parent.id,))

        def enqueue_child(job=job, parent=parent) -> bool:  # type: ignore[no-untyped-def]
            try:
                with transaction.atomic():
                    insert_jobs(at(), [job])
            except DependencyError:
                return False
            dependencies.recheck(at(), [parent.id])
            return True

        is_stored, _ = run_in_threads(
            [
                enqueue_child,
                lambda parent=parent: settle.settle(at(), [settlement(parent, end, error="e")]),
            ]
        )

        if end == "complete":
            assert is_stored
            assert stored(job.id).ready_lane == "default"
        elif is_stored:
            assert stored(job.id).status == "cancelled"
        else:
            assert not Job.objects.filter(id=job.id).exists()
        Job.objects.all().delete()
