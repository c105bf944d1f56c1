"""``queue.why_waiting()``, and the same on the page of a job in the admin."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from flexiq_django import Queue
from flexiq_django.models import TaskState
from tests.admin import rows
from tests.admin.conftest import SignIn, sign_in
from tests.factories import JobFactory

__all__ = ["sign_in"]  # a fixture

pytestmark = pytest.mark.django_db

UNKNOWN = "01890000-0000-7000-8000-000000000000"


def codes(queue: Queue, job_id: str) -> list[str]:
    return [each["code"] for each in queue.why_waiting(job_id)]


def test_a_job_that_nothing_holds() -> None:
    rows.make_worker()
    queue = Queue()
    job = queue.enqueue("app.work")

    assert queue.why_waiting(job.id) == [
        {"code": "ready", "text": "it starts when a worker has a slot for it"}
    ]


def test_jobs_that_do_not_wait() -> None:
    queue = Queue()
    for status in ("running", "complete", "dead", "cancelled"):
        assert queue.why_waiting(str(rows.make_job(status).pk)) == []
    other = Queue(namespace="elsewhere").enqueue("app.work")
    for key in (str(rows.make_archived().pk), other.id, UNKNOWN, "nonsense"):
        assert queue.why_waiting(key) == []


def test_later_and_for_others() -> None:
    rows.make_worker()
    queue = Queue()
    parent = queue.enqueue("app.work", delay=90)
    child = queue.enqueue("app.work", depends_on=parent)
    both = queue.enqueue("app.work", depends_on=[parent, child])

    (due,) = queue.why_waiting(parent.id)
    assert due["code"] == "due-later"
    assert due["text"] in {f"it is due in {seconds} seconds" for seconds in range(60, 91)}
    assert queue.why_waiting(child.id) == [
        {"code": "dependencies", "text": "it waits for another job to end"}
    ]
    assert queue.why_waiting(both.id)[0]["text"] == "it waits for 2 jobs to end"


def test_a_moment_before_it_is_let_go() -> None:
    rows.make_worker()
    job = JobFactory(ready_lane=None)  # its last edge is closed, and its row not written yet

    assert Queue().why_waiting(str(job.id)) == [
        {
            "code": "dependencies",
            "text": "the jobs it waited for have ended, and it is about to be let go",
        }
    ]


def test_behind_another_of_its_session() -> None:
    rows.make_worker()
    queue = Queue()
    slot = {"session_id": "s", "session_slot": "s"}
    line = {"session_id": "s", "session_line": "s", "ready_lane": None}
    behind = rows.make_job("pending", **line)
    rows.make_job("pending", namespace="elsewhere", **slot)
    assert queue.why_waiting(str(behind.pk)) == [
        {
            "code": "session",
            "text": "nobody holds the line of its session, and the next in it is about to go",
        }
    ]

    holder = rows.make_job("running", **slot)
    assert queue.why_waiting(str(behind.pk)) == [
        {
            "code": "session",
            "text": f"job {holder.pk} holds the line of its session, and is running",
        }
    ]
    assert codes(queue, str(holder.pk)) == []


def test_every_reason_is_named() -> None:
    queue = Queue()
    job = queue.enqueue("app.work", queue="mail", deployment_id="gpu", delay=3_600)
    assert codes(queue, job.id) == ["due-later", "no-worker"]
    rows.make_worker(queues='["reports"]', deployment_id="gpu")
    assert codes(queue, job.id) == ["due-later", "unserved-queue"]
    rows.make_worker(id="other", queues='["mail"]')
    assert codes(queue, job.id) == ["due-later", "unserved-deployment"]
    queue.pause("mail")
    rows.make_worker(id="third", deployment_id="gpu")
    assert codes(queue, job.id) == ["due-later", "paused-queue"]


def test_limits_that_are_used_up() -> None:
    rows.make_worker()
    queue = Queue()
    job = queue.enqueue("app.work", queue="mail")
    queue.set_queue_concurrency("mail", 2)
    queue.set_queue_rate_limit("mail", "6/m")
    state = TaskState.objects.create(namespace="default", name="app.work", rate_limit="1/h")
    assert codes(queue, job.id) == ["ready"]

    soon = datetime.now(UTC) + timedelta(hours=1)
    for _ in range(2):
        rows.make_job("running", queue="mail", lease_at=soon)
    rows.make_job("running", queue="mail", lease_at=soon - timedelta(hours=2))  # is lost
    state.rate_full_at = soon
    state.save()

    full, rate = queue.why_waiting(job.id)
    assert full == {
        "code": "concurrency-limit",
        "text": "2 of 2 jobs of queue mail are running",
    }
    assert rate["code"] == "rate-limit"
    assert rate["text"].startswith("the rate of task app.work allows the next in 3")


def test_the_page_of_the_job_says_it(sign_in: SignIn) -> None:
    superuser: Client = sign_in(is_superuser=True)
    queue = Queue(namespace="elsewhere")
    job = queue.enqueue("app.work", queue="mail")
    queue.pause("mail")
    done = rows.make_job("complete")
    holder = rows.make_job("running", session_id="s", session_slot="s")
    behind = rows.make_job("pending", session_id="s", session_line="s", ready_lane=None)

    def page(key: object) -> str:
        return superuser.get(reverse("admin:flexiq_django_job_change", args=[key])).text

    assert "queue mail is paused; it is in queue mail, and no worker is alive" in page(job.id)
    assert "is paused" not in page(done.pk)
    assert f"job {holder.pk} holds the line of its session" in page(behind.pk)
