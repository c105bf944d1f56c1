"""What Queue says about queues and tasks as a whole: pause, limit, purge, revoke."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from flexiq_django import Queue
from flexiq_django.exceptions import (
    InvalidLimitError,
    InvalidOptionError,
    OptionTypeError,
    TaskRevokedError,
)
from flexiq_django.models import Job, QueueState, TaskState
from tests.api.conftest import row_of
from tests.factories import NOW, JobFactory
from tests.testapp.models import Mark

pytestmark = pytest.mark.django_db


def test_pause_and_resume(queue: Queue) -> None:
    queue.pause("mail")
    queue.pause("mail")
    queue.pause()
    assert queue.paused_queues() == ["default", "mail"]
    paused_at = QueueState.objects.get(name="mail").paused_at

    queue.pause("mail")
    assert QueueState.objects.get(name="mail").paused_at == paused_at
    queue.resume("mail")
    queue.resume("mail")
    queue.resume("never heard of")

    assert queue.paused_queues() == ["default"]
    assert Queue("other").paused_queues() == []


def test_a_paused_queue_takes_jobs(queue: Queue) -> None:
    queue.pause("mail")

    assert row_of(queue.enqueue("app.a", queue="mail")).status == "pending"


@pytest.mark.parametrize("name", ["", " mail", "a\nb", "x" * 101, None])
@pytest.mark.parametrize("verb", ["pause", "resume", "purge"])
def test_names_no_queue_can_have_are_refused(queue: Queue, verb: str, name: Any) -> None:
    with pytest.raises(InvalidOptionError, match="queue_name is"):
        getattr(queue, verb)(name)
    assert not QueueState.objects.exists()


def test_limits_are_stored_with_the_queue(queue: Queue) -> None:
    queue.set_queue_rate_limit("mail", "100/m")
    queue.set_queue_concurrency("mail", 4)

    row = QueueState.objects.get()
    assert (row.name, row.rate_limit, row.max_concurrent) == ("mail", "100/m", 4)

    queue.set_queue_rate_limit("mail", None)
    queue.set_queue_concurrency("mail", None)
    row.refresh_from_db()
    assert (row.rate_limit, row.max_concurrent) == (None, None)


@pytest.mark.parametrize("text", ["10", "10/d", "0/s", "", 5])
def test_a_bad_rate_changes_nothing(queue: Queue, text: Any) -> None:
    queue.set_queue_rate_limit("mail", "5/m")

    with pytest.raises(InvalidLimitError):
        queue.set_queue_rate_limit("mail", text)

    assert QueueState.objects.get().rate_limit == "5/m"


@pytest.mark.parametrize("most", [0, -1, 2.5, True, "3", 2**31])
def test_a_bad_concurrency_changes_nothing(queue: Queue, most: Any) -> None:
    with pytest.raises(InvalidLimitError, match="to stop a queue, pause it"):
        queue.set_queue_concurrency("mail", most)
    assert not QueueState.objects.exists()


@pytest.mark.parametrize(
    "options", [{"rate_limit": "10"}, {"max_concurrent": 0}, {"retry_budget": "x"}]
)
def test_bad_limits_of_a_task_are_refused_where_it_is_declared(
    queue: Queue, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidLimitError):
        queue.task(**options)(test_pause_and_resume)


def test_jobs_of_a_limited_task_wait_in_a_lane_of_their_own(queue: Queue) -> None:
    @queue.task(name="app.slow", max_concurrent=1)
    def slow() -> None: ...

    @queue.task(name="app.budget", retry_budget="5/m")
    def budget() -> None: ...

    assert row_of(slow.delay()).ready_lane == "default\x1f\x1fapp.slow"
    assert row_of(slow.apply_async(deployment_id="blue")).ready_lane == (
        "default\x1fblue\x1fapp.slow"
    )
    assert row_of(budget.delay()).ready_lane == "default"


# --- purge and revoke -----------------------------------------------------------------------------

Verb = Callable[[Queue], int]


def purge(queue: Queue) -> int:
    return queue.purge("mail")


def revoke(queue: Queue) -> int:
    return queue.revoke_task("app.a", block=False)


@pytest.mark.parametrize(("verb", "error"), [(purge, "purged"), (revoke, "revoked")])
def test_pending_jobs_are_cancelled_and_stay(queue: Queue, verb: Verb, error: str) -> None:
    ours = {"queue": "mail", "task_name": "app.a"}
    hit = [JobFactory(**ours), JobFactory(scheduled=True, **ours), JobFactory(waiting=True, **ours)]
    running = JobFactory(running=True, **ours)
    done = JobFactory(ended=True, **ours)
    JobFactory(queue="other", task_name="app.b")
    JobFactory(namespace="elsewhere", **ours)

    assert verb(queue) == 3
    assert verb(queue) == 0

    for job in hit:
        job.refresh_from_db()
        assert (job.status, job.error) == ("cancelled", error)
        assert job.completed_at is not None
    for job in (running, done):
        before = job.status
        job.refresh_from_db()
        assert job.status == before
    assert Job.objects.filter(status="pending").count() == 2


@pytest.mark.parametrize(("verb", "error"), [(purge, "purged"), (revoke, "revoked")])
def test_what_depends_on_them_is_cancelled_too(queue: Queue, verb: Verb, error: str) -> None:
    parent = queue.enqueue("app.a", queue="mail")
    child = queue.enqueue("app.b", depends_on=parent)
    brave = queue.enqueue("app.b", depends_on=parent, allow_parent_failure=True)

    assert verb(queue) == 1

    assert row_of(parent).error == error
    assert row_of(child).error == f"dependency cancelled: {parent.id}"
    assert row_of(brave).status == "pending"
    assert row_of(brave).ready_lane == "default"


def test_more_than_one_batch(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    from flexiq_django.store.vendors import open_database

    monkeypatch.setattr(type(open_database(queue.scope)), "batch_size", 4)
    queue.enqueue_many("app.a", [()] * 13, queue="mail")

    assert queue.purge("mail") == 13


def test_a_revoked_task_takes_no_jobs_until_it_may_again(queue: Queue) -> None:
    assert queue.revoke_task("app.a") == 0

    for enqueue in (
        lambda: queue.enqueue("app.a"),
        lambda: queue.enqueue("app.a", unique_key="k"),
        lambda: queue.enqueue("app.a", delay=60),
        lambda: queue.enqueue_many("app.a", [(), ()]),
        lambda: queue.enqueue_many("app.a", [(), ()], unique_keys=["a", None]),
    ):
        with pytest.raises(TaskRevokedError, match=r"app.a is revoked; queue.unrevoke_task"):
            enqueue()
    assert not Job.objects.exists()
    assert queue.revoked_tasks() == ["app.a"]
    assert Queue("other").revoked_tasks() == []
    Queue("other").enqueue("app.a")
    queue.enqueue("app.b")

    assert queue.unrevoke_task("app.a")
    assert not queue.unrevoke_task("app.a")
    assert queue.revoked_tasks() == []
    assert queue.enqueue("app.a").status == "pending"


def test_a_refusal_leaves_the_callers_transaction_alone(queue: Queue) -> None:
    queue.revoke_task("app.a")

    with transaction.atomic():
        Mark.objects.create(key="kept")
        with pytest.raises(TaskRevokedError):
            queue.enqueue("app.a")
        queue.enqueue("app.b")

    assert Mark.objects.filter(key="kept").exists()
    assert Job.objects.count() == 1


def test_each_half_of_a_revocation_alone(queue: Queue) -> None:
    job = queue.enqueue("app.a")

    assert queue.revoke_task("app.a", cancel_pending=False) == 0
    assert row_of(job).status == "pending"
    assert queue.revoked_tasks() == ["app.a"]
    queue.unrevoke_task("app.a")

    assert queue.revoke_task("app.a", block=False) == 1
    assert queue.revoked_tasks() == []
    assert queue.enqueue("app.a").status == "pending"


def test_revoking_again_keeps_the_first_time(queue: Queue) -> None:
    TaskState.objects.create(namespace="default", name="app.a", revoked_at=NOW)

    queue.revoke_task("app.a")

    assert TaskState.objects.get().revoked_at == NOW


@pytest.mark.parametrize("half", ["block", "cancel_pending"])
def test_a_half_of_a_revocation_is_a_yes_or_a_no(queue: Queue, half: str) -> None:
    with pytest.raises(OptionTypeError, match=rf"^{half} is 'no'"):
        queue.revoke_task("app.a", **{half: "no"})
    assert queue.revoked_tasks() == []
