"""claim: which jobs are handed out, in which order, and what that writes."""

from uuid import UUID

import pytest

from flexiq_django.models import Job, QueueState
from flexiq_django.store import claim as claiming
from flexiq_django.store.claim import discover_lanes
from tests.factories import NOW, JobFactory, QueueStateFactory, at, later
from tests.store.acting import LEASE_MS, claim, claim_one, enqueue, enqueue_one, stored

pytestmark = pytest.mark.django_db


def test_a_claim_hands_out_the_job_and_marks_it_taken() -> None:
    key = enqueue_one(
        queue="mail",
        task_name="app.send",
        payload='[[1],{"a":2}]',
        max_retries=5,
        timeout_ms=900,
        metadata="m",
    )

    (job,) = claim(at(5), worker_id="host-1", lease_ms=1_500)

    assert job._replace(token=0) == (
        key, "mail", "app.send", '[[1],{"a":2}]', 1, 0, 5, 900, None, "m", None, False, 0, "mail",
        False, (),
    )  # fmt: skip
    row = stored(key)
    assert (row.status, row.ready_lane, row.attempt, row.worker_id) == (
        "running", None, 1, "host-1"
    )  # fmt: skip
    assert row.token == job.token
    assert row.started_at == row.updated_at == later(5)
    assert row.lease_at == later(6.5)
    assert row.scheduled_at == row.created_at == NOW


def test_each_claim_mints_a_token_of_its_own() -> None:
    enqueue(3)

    tokens = {claim_one().token for _ in range(3)}

    assert len(tokens) == 3
    assert all(0 <= token < 2**63 for token in tokens)


def test_a_claimed_job_is_not_handed_out_again() -> None:
    enqueue(2)

    assert len(claim()) == 2
    assert claim() == []


def test_higher_priority_first_then_earlier_due_then_older() -> None:
    late_urgent = enqueue_one(priority=5, run_at=later(-1))
    oldest = enqueue_one(run_at=later(-10))
    first_of_two = enqueue_one(run_at=later(-5))
    second_of_two = enqueue_one(run_at=later(-5))
    idle = enqueue_one(priority=-1, run_at=later(-100))
    early_urgent = enqueue_one(priority=5, run_at=later(-2))
    order = [early_urgent, late_urgent, oldest, first_of_two, second_of_two, idle]

    assert [job.id for job in claim()] == order


def test_one_by_one_in_the_same_order() -> None:
    keys = {
        priority: enqueue_one(priority=priority) for priority in (0, 2**31 - 1, -(2**31) + 1, 3)
    }

    assert [claim_one().id for _ in keys] == [keys[each] for each in sorted(keys, reverse=True)]


def test_the_order_holds_across_queues() -> None:
    keys = [
        enqueue_one(queue=queue, priority=priority, run_at=later(due))
        for queue, priority, due in [
            ("b", 9, -1), ("a", 5, -3), ("c", 5, -2), ("b", 5, -1), ("a", 0, -9), ("b", 0, -9),
        ]
    ]  # fmt: skip

    assert [job.id for job in claim(limit=4)] == keys[:4]
    assert [job.id for job in claim(limit=4)] == keys[4:]


@pytest.mark.parametrize("queues", [1, 3])
def test_no_more_than_the_limit_and_the_best(queues: int) -> None:
    keys = [enqueue_one(queue=f"q{number % queues}", priority=-number) for number in range(10)]

    assert [job.id for job in claim(limit=4)] == keys[:4]
    assert Job.objects.filter(status="running").count() == 4


@pytest.mark.parametrize("limit", [0, -1])
def test_nothing_is_claimed_with_no_room(limit: int) -> None:
    enqueue_one()

    assert claim(limit=limit) == []
    assert Job.objects.get().status == "pending"


def test_nothing_is_claimed_without_lanes() -> None:
    enqueue_one()

    found = claiming.claim(at(), lanes=[], limit=5, worker_id="w", lease_ms=LEASE_MS)

    assert found.jobs == []


def test_lanes_that_are_empty_by_now_do_no_harm() -> None:
    key = enqueue_one(queue="b")

    found = claiming.claim(
        at(), lanes=["a", "b", "gone"], limit=5, worker_id="w", lease_ms=LEASE_MS
    )

    assert [job.id for job in found.jobs] == [key]


@pytest.mark.parametrize(
    "state",
    [{"scheduled": True, "scheduled_at": later(-1)}, {"waiting": True}, {"running": True},
     {"ended": True}, {"waiting": True, "status": "paused"}],
)  # fmt: skip
def test_only_ready_jobs_are_claimed(state: dict[str, object]) -> None:
    JobFactory(**state)

    assert discover_lanes(at(), queues=None, deployment_id=None) == []
    assert claim() == []


def test_a_claim_stays_in_its_namespace() -> None:
    ours = enqueue_one(at(namespace="ours"))
    theirs = enqueue_one(at(namespace="theirs"))

    assert [job.id for job in claim(at(namespace="ours"))] == [ours]
    assert claim(at(namespace="ours")) == []
    assert stored(theirs).status == "pending"


def test_an_expired_job_says_so() -> None:
    keys = [enqueue_one(expires_ms=ms) for ms in (9_999, 10_000, 10_001)]

    assert {job.id: job.is_expired for job in claim(at(10))} == dict(
        zip(keys, [True, True, False], strict=True)
    )


# --- which lanes ----------------------------------------------------------------------------------


def lanes_of(queues: list[str] | None, deployment_id: str | None = None) -> list[str]:
    return discover_lanes(at(), queues=queues, deployment_id=deployment_id)


def test_lanes_are_those_in_which_jobs_wait() -> None:
    for queue in ("b", "a", "b", "ü"):
        enqueue_one(queue=queue)
    enqueue_one(queue="later", delay_ms=1)
    enqueue_one(at(namespace="other"), queue="theirs")

    assert lanes_of(None) == ["a", "b", "ü"]
    assert lanes_of(["b", "a", "unknown"]) == ["a", "b"]
    assert lanes_of([]) == []


def test_a_job_of_a_deployment_is_served_there_only() -> None:
    free = enqueue_one()
    blue = enqueue_one(deployment_id="blue")
    green = enqueue_one(deployment_id="green")

    assert [job.id for job in claim()] == [free]
    assert {job.id: job.deployment_id for job in claim(deployment_id="blue")} == {blue: "blue"}
    assert claim(queues=["other"], deployment_id="green") == []
    assert [job.id for job in claim(deployment_id="green")] == [green]


def test_a_worker_of_a_deployment_serves_free_jobs_too_in_order() -> None:
    keys = [
        enqueue_one(deployment_id=deployment, priority=priority)
        for deployment, priority in [("blue", 3), (None, 2), ("blue", 1), (None, 0)]
    ]

    assert [job.id for job in claim(deployment_id="blue")] == keys


def test_the_lane_comes_with_the_job() -> None:
    enqueue_one(deployment_id="blue", queue="mail")

    assert claim_one(deployment_id="blue").lane == "mail\x1fblue"


def test_many_lanes() -> None:
    keys = [enqueue_one(queue=f"tenant-{number:03}") for number in range(120)]

    assert [job.id for job in claim(limit=200)] == keys


# --- pause ----------------------------------------------------------------------------------------


def claimed_from(lanes: list[str]) -> list[UUID]:
    found = claiming.claim(at(), lanes=lanes, limit=9, worker_id="w", lease_ms=LEASE_MS)
    return [job.id for job in found.jobs]


def test_a_paused_queue_is_left_alone_at_the_next_claim() -> None:
    paused, open_ = enqueue_one(queue="paused"), enqueue_one(queue="open")
    pinned = enqueue_one(queue="paused", deployment_id="blue")
    QueueStateFactory(name="paused")
    lanes = sorted(lanes_of(None, "blue"))
    assert lanes == ["open", "paused", "paused\x1fblue"]

    assert claimed_from(["paused"]) == []
    assert claimed_from(["paused\x1fblue"]) == []
    assert claimed_from(lanes) == [open_]

    QueueState.objects.update(paused_at=None)
    assert claimed_from(lanes) == [paused, pinned]


def test_a_pause_elsewhere_pauses_nothing_here() -> None:
    keys = [enqueue_one(queue="a"), enqueue_one(queue="b")]
    QueueStateFactory(name="a", namespace="other")
    QueueStateFactory(name="b", paused_at=None)
    QueueStateFactory(name="c")

    assert claimed_from(["a"]) == keys[:1]
    assert claimed_from(["a", "b", "c"]) == keys[1:]
