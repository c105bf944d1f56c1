"""POST jobs/{id}/requeue: the verb is tested in tests/store/test_grant.py; this is its surface."""

import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from flexiq_django.models import Job
from flexiq_django.store.keys import active_key
from tests.factories import ArchivedJobFactory, JobFactory, TaskStateFactory, later
from tests.http.conftest import Caller, detail

pytestmark = pytest.mark.django_db


def test_a_failed_job_is_queued_again(admin: Caller, caplog: pytest.LogCaptureFixture) -> None:
    job = JobFactory(ended=True, status="dead", max_retries=0)

    with caplog.at_level(logging.INFO, "flexiq_django.http"):
        response = admin.post(f"jobs/{job.id}/requeue")

    found = response.json()
    assert response.status_code == 200
    assert response["Cache-Control"] == "no-store"
    assert (found["id"], found["status"]) == (str(job.id), "queued")
    assert (found["attempt"], found["max_attempts"]) == (1, 2)
    assert f"job {job.id} requeued by token of 'ops'" in caplog.text


def test_an_archived_job_is_queued_again(admin: Caller) -> None:
    job = ArchivedJobFactory(status="dead")
    assert admin.post(f"jobs/{job.id}/requeue").json()["status"] == "queued"
    assert admin.ids(status="queued") == [str(job.id)]


@pytest.mark.parametrize(
    "state", [{}, {"running": True}, {"ended": True}, {"status": "paused", "ready_lane": None}],
    ids=str,
)  # fmt: skip
def test_any_other_job_is_refused(admin: Caller, state: dict[str, Any]) -> None:
    response = admin.post(f"jobs/{JobFactory(**state).id}/requeue")
    assert response.status_code == 400
    assert "only a job that failed or was cancelled" in detail(response)


def test_too_early_unless_forced(admin: Caller) -> None:
    job = JobFactory(ended=True, status="dead", completed_at=datetime.now(UTC))
    path = f"jobs/{job.id}/requeue"

    response = admin.post(path)
    assert response.status_code == 409
    assert "less than 60 s ago" in detail(response)
    assert admin.post(f"{path}?force=false").status_code == 409
    assert admin.post(f"{path}?force=true").json()["status"] == "queued"


def test_a_cancellation_is_cleared_only_on_demand(admin: Caller) -> None:
    kept, cleared = (JobFactory(ended=True, status="cancelled").id for _ in range(2))

    assert admin.post(f"jobs/{kept}/requeue").status_code == 200
    assert admin.post(f"jobs/{cleared}/requeue?clear_cancellation=1").status_code == 200

    found = dict(Job.objects.values_list("id", "cancel_requested_at"))
    assert found == {kept: later(0), cleared: None}


def test_conflicts_are_told(admin: Caller) -> None:
    keyed = JobFactory(ended=True, status="dead", unique_key="k")
    holder = JobFactory(unique_key="k", active_key=active_key("k"))
    response = admin.post(f"jobs/{keyed.id}/requeue")
    assert response.status_code == 409
    assert str(holder.id) in detail(response)

    TaskStateFactory(revoked_at=later(0))
    response = admin.post(f"jobs/{JobFactory(ended=True, status='dead').id}/requeue")
    assert response.status_code == 409
    assert "is revoked" in detail(response)


@pytest.mark.parametrize(
    "query",
    ["force=yes", "force=", "force=1&force=1", "clear_cancellation=2", "clear_cancelation=1"],
)
def test_a_bad_value_changes_nothing(admin: Caller, query: str) -> None:
    job = JobFactory(ended=True, status="dead")
    response = admin.post(f"jobs/{job.id}/requeue?{query}")
    assert response.status_code == 400
    assert query.partition("=")[0] in detail(response)
    assert Job.objects.get().status == "dead"
