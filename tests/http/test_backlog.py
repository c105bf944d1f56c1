"""What failed and was not dealt with: the dead letters, wherever their jobs are."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from flexiq_django import queue
from flexiq_django.models import ArchivedJob, Job
from flexiq_django.store import browse
from flexiq_django.store.ids import minted_at, new_id
from flexiq_django.testing import run_pending
from tests.factories import NOW, ArchivedJobFactory, DeadLetterFactory, JobFactory, later
from tests.http.conftest import Caller, token

pytestmark = pytest.mark.django_db

DEAD: dict[str, Any] = {"status": "dead", "completed_at": NOW}


def dead_job(place: str, **fields: Any) -> str:
    """The id of a job with a dead letter: in the hot table, in the archive, or purged."""
    job_id: UUID = new_id()
    if place == "live":
        JobFactory(id=job_id, ended=True, status="dead", **fields)
    elif place == "archived":
        ArchivedJobFactory(id=job_id, **DEAD, **fields)
    shared = {name: fields[name] for name in ("user_id", "payload") if name in fields}
    DeadLetterFactory(original_job_id=job_id, **shared)
    return str(job_id)


def failed_count(admin: Caller) -> int:
    return int(admin.get("stats").json()["counts"]["failed"])


def test_a_failed_job_is_listed_and_counted_until_somebody_acts(admin: Caller) -> None:
    requeued, dropped = (queue.enqueue("nowhere.task", max_retries=0).id for _ in range(2))
    run_pending()
    before = admin.get("jobs", {"status": "failed"}).json()
    assert [each["id"] for each in before["data"]] == [dropped, requeued]

    queue.archive(-1)
    assert (Job.objects.count(), ArchivedJob.objects.count()) == (0, 2)
    after = admin.get("jobs", {"status": "failed"}).json()
    assert after["meta"]["total_count"] == failed_count(admin) == 2
    for one, same in zip(before["data"], after["data"], strict=True):
        assert same == {**one, "updated_at": same["updated_at"]}

    assert admin.post(f"jobs/{requeued}/requeue?force=true").status_code == 200
    assert (admin.ids(status="failed"), failed_count(admin)) == ([dropped], 1)
    (letter,) = queue.dead_letters()
    assert queue.delete_dead(letter["id"])
    assert (admin.ids(status="failed"), failed_count(admin)) == ([], 0)
    assert admin.get(f"jobs/{dropped}").json()["status"] == "failed"  # the job stays as it is


def test_pages_go_over_all_of_them_by_age(admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    places = ("archived", "live", "purged", "live", "archived")
    users = ("b", "a", None, "c", "a")
    ids = [dead_job(place, user_id=user) for place, user in zip(places, users, strict=True)]
    JobFactory()
    JobFactory(ended=True, status="dead")  # its letter was dropped
    DeadLetterFactory(namespace="other")

    assert admin.ids(status="failed") == ids[::-1]
    assert admin.ids(status=["failed", "failed"], sort_order="asc", limit=2, page=2) == ids[2:4]
    by_user = [ids[index] for index in (1, 4, 0, 3, 2)]
    assert admin.ids(status="failed", sort_by="user_id", sort_order="asc") == by_user
    assert (
        admin.ids(status="failed", sort_by="user_id", sort_order="asc", limit=2, page=2)
        == (by_user[2:4])
    )
    assert admin.get("jobs", {"status": "failed", "limit": 2}).json()["meta"] == {
        "page": 1, "limit": 2, "total_pages": 3, "total_count": 5,
    }  # fmt: skip
    # With another status it is jobs that are not archived, as ever.
    assert len(admin.ids(status=["failed", "queued"])) == 4

    monkeypatch.setattr(browse, "REACH", 3)
    assert admin.ids(status="failed", sort_by="user_id", sort_order="asc") == [
        ids[4],
        ids[3],
        ids[2],
    ]


def test_a_purged_job_shows_what_its_letter_knows(surface: Any) -> None:
    key = new_id()
    DeadLetterFactory(
        original_job_id=key, payload='[["x"], {}]', session_id="s", user_id="u", retry_count=2,
        max_retries=4, origin="periodic", schedule="nightly", failed_at=later(5),
        error='{"errtype": "ValueError", "message": "bad", "traceback": ["line"]}',
    )  # fmt: skip
    made = minted_at(key)
    assert made is not None
    failed = later(5).timestamp()
    expected = {
        "id": str(key),
        "component_type": "periodic",
        "component_id": "nightly",
        "session_id": "s",
        "user_id": "u",
        "status": "failed",
        "attempt": 3,
        "max_attempts": 5,
        "error": "ValueError: bad",
        "locked_by": None,
        "locked_at": None,
        "idempotency_key": None,
        "payload": None,
        "created_at": made.timestamp(),
        "updated_at": failed,
        "completed_at": failed,
    }

    for scopes, payload in ((("admin",), None), (("admin", "view_payload"), [["x"], {}])):
        caller = Caller(Client(), Authorization=f"Bearer {token(*scopes)}")
        (found,) = caller.get("jobs", {"status": "failed"}).json()["data"]
        assert found == {**expected, "payload": payload}
        assert caller.get("jobs", {"status": "failed", "sort_by": "completed_at"}).json()[
            "data"
        ] == [found]


def test_an_id_tells_when_it_was_made() -> None:
    made = minted_at(UUID("01920000-0000-7000-8000-000000000000"))
    assert made is not None
    assert made.timestamp() == pytest.approx(0x01920000_0000 / 1000)
    assert minted_at(UUID("01920000-0000-4000-8000-000000000000")) is None
