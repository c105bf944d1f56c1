"""Stats, listings and single jobs: what they say, and what they refuse."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from flexiq_django.models import Job
from flexiq_django.store import browse
from flexiq_django.store.ids import new_ids
from tests.factories import NOW, ArchivedJobFactory, DeadLetterFactory, JobFactory, later
from tests.http.conftest import Caller, detail

pytestmark = pytest.mark.django_db

BASE = NOW.timestamp()
#: A job of each status.
STATES: dict[str, dict[str, Any]] = {
    "queued": {},
    "running": {"running": True},
    "completed": {"ended": True},
    "failed": {"ended": True, "status": "dead"},
    "cancelled": {"ended": True, "status": "cancelled"},
    "paused": {"status": "paused", "ready_lane": None},
}


@pytest.fixture
def one_of_each() -> dict[str, str]:
    """The ids of jobs by status, and jobs elsewhere that nobody should see."""
    found = {word: str(JobFactory(**fields).id) for word, fields in STATES.items()}
    DeadLetterFactory(original_job_id=found["failed"])
    JobFactory(namespace="other")
    ArchivedJobFactory()
    return found


# --- stats ----------------------------------------------------------------------------------------


def test_stats_count_every_status(admin: Caller, one_of_each: dict[str, str]) -> None:
    JobFactory(scheduled=True, scheduled_at=later(10**9))
    JobFactory(waiting=True)
    found = admin.get("stats").json()

    assert found["counts"] == {**dict.fromkeys(STATES, 1), "queued": 3}
    assert found["oldest_queued_age_seconds"] > 0


def test_stats_of_an_empty_queue(admin: Caller) -> None:
    assert admin.get("stats").json() == {
        "counts": dict.fromkeys(STATES, 0),
        "oldest_queued_age_seconds": None,
    }


# --- one job --------------------------------------------------------------------------------------


def test_a_job_has_these_fields(admin: Caller) -> None:
    job = JobFactory(
        running=True, session_id="s", session_slot="s", user_id="u", attempt=2, max_retries=4,
        unique_key="k", active_key="k", updated_at=later(1.5), error=None,
    )  # fmt: skip

    assert admin.get(f"jobs/{job.id}").json() == {
        "id": str(job.id),
        "component_type": "task",
        "component_id": "app.tasks.work",
        "session_id": "s",
        "user_id": "u",
        "status": "running",
        "attempt": 2,
        "max_attempts": 5,
        "error": None,
        "locked_by": "worker-1",
        "locked_at": BASE + 1.5,
        "idempotency_key": "k",
        "payload": None,
        "created_at": BASE,
        "updated_at": BASE + 1.5,
        "completed_at": None,
    }


def test_a_job_that_has_ended_is_locked_by_nobody(admin: Caller) -> None:
    stored = '{"errtype": "ValueError", "message": "bad", "traceback": ["line"]}'
    job = JobFactory(ended=True, status="dead", worker_id="worker-1", error=stored)

    found = admin.get(f"jobs/{job.id}").json()

    assert (found["locked_by"], found["locked_at"]) == (None, None)
    assert (found["status"], found["error"]) == ("failed", "ValueError: bad")
    assert found["completed_at"] == BASE


@pytest.mark.parametrize(
    ("fields", "component"),
    [
        ({"origin": "django_task"}, ("django_task", "app.tasks.work")),
        ({"origin": "periodic", "schedule": "nightly"}, ("periodic", "nightly")),
        ({"origin": "periodic"}, ("periodic", "app.tasks.work")),
    ],
    ids=str,
)
def test_a_component_is_a_schedule_or_a_task(
    admin: Caller, fields: dict[str, Any], component: tuple[str, str]
) -> None:
    found = admin.get(f"jobs/{JobFactory(**fields).id}").json()
    assert (found["component_type"], found["component_id"]) == component


def test_an_archived_job_is_found_by_its_id(admin: Caller) -> None:
    job = ArchivedJobFactory(status="cancelled")
    assert admin.get(f"jobs/{job.id}").json()["status"] == "cancelled"


@pytest.mark.parametrize(
    "job_id", ["01900000-0000-7000-8000-000000000000", "x", "5", "%00", "a" * 300]
)
def test_an_unknown_job_is_not_found(admin: Caller, job_id: str) -> None:
    JobFactory(namespace="other")
    for response in (admin.get(f"jobs/{job_id}"), admin.post(f"jobs/{job_id}/requeue")):
        assert response.status_code == 404
        assert "there is no job" in detail(response)


# --- listings -------------------------------------------------------------------------------------


def test_all_jobs_that_are_not_archived_newest_first(
    admin: Caller, one_of_each: dict[str, str]
) -> None:
    found = admin.get("jobs").json()

    assert [each["id"] for each in found["data"]] == list(one_of_each.values())[::-1]
    assert found["meta"] == {"page": 1, "limit": 20, "total_pages": 1, "total_count": 6}


def test_a_status_can_be_repeated(admin: Caller, one_of_each: dict[str, str]) -> None:
    for word, job_id in one_of_each.items():
        found = admin.get("jobs", {"status": word}).json()
        assert [each["id"] for each in found["data"]] == [job_id]
        assert found["data"][0]["status"] == word
        assert found["meta"]["total_count"] == 1
    some = ["cancelled", "queued", "failed", "queued"]
    assert admin.ids(status=some) == [
        one_of_each[word] for word in ("cancelled", "failed", "queued")
    ]
    assert admin.ids(status=some, sort_order="asc", limit=1, page=2) == [one_of_each["failed"]]
    assert admin.ids(status=list(STATES), limit=2, page=3) == list(one_of_each.values())[1::-1]


def test_pages_follow_each_other(admin: Caller) -> None:
    ids = [str(JobFactory().id) for _ in range(7)]
    for sort_by in ("created_at", "user_id", "nonsense"):  # all alike: by age
        for sort_order, expected in (("asc", ids), ("desc", ids[::-1])):
            query = {"limit": 3, "sort_by": sort_by, "sort_order": sort_order}
            pages = [admin.ids(page=number, **query) for number in (1, 2, 3, 4)]
            assert pages == [expected[:3], expected[3:6], expected[6:], []]
    assert admin.get("jobs", {"limit": 3}).json()["meta"]["total_pages"] == 3


SORTS: list[tuple[str, list[dict[str, Any]]]] = [
    ("updated_at", [{"updated_at": later(number)} for number in (1, 2, 3)]),
    ("completed_at", [{"ended": True, "completed_at": later(number)} for number in (1, 2, 3)]),
    (
        "status",
        [STATES["cancelled"], STATES["completed"], STATES["failed"], STATES["queued"]],
    ),
    ("attempt", [{"attempt": number} for number in (0, 2, 10)]),
    ("component_type", [{"origin": "django_task"}, {"origin": "periodic"}, {"origin": "task"}]),
    (
        "component_id",
        [{"task_name": "A"}, {"origin": "periodic", "schedule": "B"}, {"task_name": "a"}],
    ),
    ("user_id", [{"user_id": "10"}, {"user_id": "9"}, {"user_id": "Z"}, {"user_id": "z"}]),
]  # fmt: skip


@pytest.mark.parametrize(("sort_by", "fields"), SORTS, ids=[name for name, _ in SORTS])
def test_a_listing_is_sorted_by_what_was_asked_for(
    admin: Caller, sort_by: str, fields: list[dict[str, Any]]
) -> None:
    ids = dict(zip(new_ids(len(fields)), fields, strict=True))
    for key in sorted(ids, key=lambda key: key.int % 7):  # stored in no order
        JobFactory(id=key, **ids[key])
    expected = [str(key) for key in ids]

    assert admin.ids(sort_by=sort_by, sort_order="asc") == expected
    assert admin.ids(sort_by=sort_by) == expected[::-1]
    assert admin.ids(sort_by=sort_by, limit=1, page=2) == [expected[-2]]


def test_jobs_without_a_value_come_last(admin: Caller) -> None:
    old, new = (str(JobFactory().id) for _ in range(2))
    has = str(JobFactory(user_id="u").id)

    assert admin.ids(sort_by="user_id", sort_order="asc") == [has, old, new]
    assert admin.ids(sort_by="user_id") == [has, new, old]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("statuss=failed", "there is no parameter 'statuss'; allowed: status, limit, page"),
        ("status=dead", "status is 'dead'; allowed is queued, running, completed, failed"),
        ("status=queued&status=", "status is ''"),
        ("limit=0", "limit is '0'; allowed is a whole number from 1 to 1000"),
        ("limit=1001", "from 1 to 1000"),
        ("limit=-1", "from 1 to 1000"),
        ("limit=1.5", "from 1 to 1000"),
        ("limit=", "from 1 to 1000"),
        ("limit=٣", "from 1 to 1000"),
        ("limit=5&limit=6", "limit is given 2 times; once is allowed"),
        ("page=0", "page is '0'; allowed is a whole number from 1 to"),
        ("page=99999999999999999999999", "page is"),
        ("page=501", "page 501 with limit 20 lies beyond the first 10,000 jobs"),
        ("sort_order=up", "sort_order is 'up'; allowed is asc, desc"),
        ("sort_order=" + "x" * 500, "..."),
    ],
)
def test_a_bad_value_is_refused_with_a_reason(admin: Caller, query: str, said: str) -> None:
    response = admin.get(f"jobs?{query}")
    assert response.status_code == 400
    assert said in detail(response)
    assert len(detail(response)) < 300


def test_pages_reach_so_far_and_no_further(admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browse, "REACH", 5)
    ids = [str(JobFactory(attempt=number).id) for number in range(7)]

    assert admin.ids(limit=4, page=2) == [ids[2]]
    assert admin.ids(limit=4, page=2, sort_order="asc") == [ids[4]]
    assert admin.get("jobs", {"limit": 4, "page": 3}).status_code == 400
    # By anything but age: of the newest so many.
    assert admin.ids(sort_by="attempt", sort_order="asc") == ids[2:]
    assert admin.ids(sort_by="attempt", sort_order="asc", status=["queued", "failed"]) == ids[2:]


def test_a_job_that_is_archived_meanwhile_is_left_out(admin: Caller) -> None:
    job = JobFactory(created_at=NOW - timedelta(days=2))
    Job.objects.filter(id=job.id).delete()
    assert admin.ids() == []


# --- methods and paths ----------------------------------------------------------------------------


def test_other_methods_and_paths(admin: Caller, surface: Any) -> None:
    client = Client()
    for path, method, allowed in (
        ("stats", "POST", "GET, HEAD, OPTIONS"),
        ("jobs", "DELETE", "GET, HEAD, OPTIONS"),
        ("jobs/x/requeue", "GET", "POST, OPTIONS"),
        ("jobs/x", "TRACE", "GET, HEAD, OPTIONS"),
    ):
        response = client.generic(method, f"/queue/{path}")
        assert (response.status_code, response["Allow"]) == (405, allowed)
        assert method in detail(response)
        response = client.options(f"/queue/{path}")
        assert (response.status_code, response["Allow"]) == (204, allowed)
    for path in ("", "nothing", "stats/", "jobs/x/y", "jobs/x/requeue/"):
        response = admin.get(path)
        assert (response.status_code, detail(response)) == (404, "there is nothing at this path")


def test_head_is_get_without_a_body(admin: Caller) -> None:
    response = admin.head("stats")
    assert (response.status_code, response.content) == (200, b"")
