"""What may be done to a job from outside: cancel, ask to stop, set its progress."""

import pytest

from flexiq_django.models import Job
from flexiq_django.store import operate
from flexiq_django.store.ids import new_id
from tests.factories import NOW, ArchivedJobFactory, JobFactory, at, later
from tests.store.acting import enqueue_one, running, stored

pytestmark = pytest.mark.django_db

PENDING = [{}, {"scheduled": True}, {"waiting": True}]
PAUSED = {"waiting": True, "status": "paused", "pause_reason": "why"}
ENDED = [{"ended": True}, {"ended": True, "status": "dead"}, {"ended": True, "status": "cancelled"}]


def state_of(state: dict[str, object]) -> str:
    return "-".join(map(str, state)) + str(state.get("status", "")) or "ready"


@pytest.mark.parametrize("state", [*PENDING, PAUSED], ids=state_of)
def test_a_pending_or_paused_job_is_cancelled(state: dict[str, object]) -> None:
    job = JobFactory(**state, active_key="k", result_ttl_ms=5_000, expires_at=later(99))

    assert operate.cancel(at(1), job.id) == [job.id]

    row = stored(job.id)
    assert (row.status, row.error, row.completed_at) == ("cancelled", None, later(1))
    assert (row.ready_lane, row.promote_at, row.active_key, row.expires_at) == (None,) * 4
    assert row.purge_at == later(6)
    assert operate.cancel(at(2), job.id) == []


@pytest.mark.parametrize("state", [{"running": True}, *ENDED], ids=state_of)
def test_no_other_job_is_cancelled(state: dict[str, object]) -> None:
    job = JobFactory(**state)
    before = Job.objects.values().get()

    assert operate.cancel(at(1), job.id) == []
    assert Job.objects.values().get() == before


def test_a_running_job_is_asked_to_stop_once() -> None:
    job = running()

    assert operate.request_cancel(at(), job.id)
    assert operate.request_cancel(at(5), job.id)

    row = stored(job.id)
    assert (row.status, row.cancel_requested_at) == ("running", NOW)


@pytest.mark.parametrize(
    "state", [*PENDING, *ENDED, {"waiting": True, "status": "paused"}], ids=state_of
)
def test_no_other_job_is_asked(state: dict[str, object]) -> None:
    job = JobFactory(**state)

    assert not operate.request_cancel(at(), job.id)
    assert stored(job.id).cancel_requested_at is None


@pytest.mark.parametrize(
    "state", [*PENDING, {"running": True}, {"waiting": True, "status": "paused"}], ids=state_of
)
def test_progress_of_a_job_that_has_not_ended(state: dict[str, object]) -> None:
    job = JobFactory(**state)

    assert operate.set_progress(at(3), job.id, 40)
    assert stored(job.id).progress == 40
    # Of a ready job it says since when it has been ready.
    assert stored(job.id).updated_at == (NOW if job.ready_lane else later(3))


@pytest.mark.parametrize("state", ENDED, ids=state_of)
def test_no_progress_after_the_end(state: dict[str, object]) -> None:
    job = JobFactory(**state)

    assert not operate.set_progress(at(), job.id, 40)
    assert stored(job.id).progress is None


def test_unknown_foreign_and_archived_jobs_are_out_of_reach() -> None:
    foreign = JobFactory(namespace="other").id
    for key in (new_id(), foreign, ArchivedJobFactory().id):
        assert operate.cancel(at(), key) == []
        assert not operate.request_cancel(at(), key)
        assert not operate.set_progress(at(), key, 1)
    assert stored(foreign).status == "pending"


def test_a_cancelled_child_leaves_its_parent_alone() -> None:
    parent = running()
    child = enqueue_one(parents=(parent.id,))

    assert operate.cancel(at(), child) == [child]
    assert stored(parent.id).status == "running"
