"""Limits of queues and tasks: never more than they allow, and nobody else is held up."""

import threading
from functools import partial

import pytest

from flexiq_django.core.status import JobStatus
from flexiq_django.models import Job, QueueState, TaskState
from flexiq_django.store import claim as claiming
from flexiq_django.store import lease, settle, steer, verdicts
from flexiq_django.store.gates import NO_GATES, read_gates, relane
from flexiq_django.worker.connections import Keeper
from tests.concurrency import run_in_threads
from tests.factories import QueueStateFactory, TaskStateFactory, at, later
from tests.store.acting import LEASE_MS, claim, enqueue, enqueue_one, settlement

pytestmark = pytest.mark.django_db

SLOW = "app.tasks.slow"


def claimed(seconds: float = 0, **limits: int) -> claiming.Claimed:
    where = at(seconds)
    lanes = claiming.discover_lanes(where, queues=None, deployment_id=None)
    return claiming.claim(
        where, lanes=lanes, limit=limits.pop("limit", 100), worker_id="w", lease_ms=LEASE_MS,
        gates=read_gates(where), **limits,
    )  # fmt: skip


# --- concurrency ----------------------------------------------------------------------------------


def test_a_queue_runs_no_more_than_its_limit() -> None:
    QueueStateFactory(name="mail", max_concurrent=3, paused_at=None)
    enqueue(10, queue="mail")

    first = claim()

    assert len(first) == 3
    assert claim() == []
    settle.settle(at(1), [settlement(first[0])])
    assert len(claim(at(1))) == 1


def test_a_task_runs_no_more_than_its_limit_in_all_queues_together() -> None:
    TaskStateFactory(name=SLOW, max_concurrent=3)
    enqueue(5, queue="a", task_name=SLOW, is_limited=True)
    enqueue(5, queue="b", task_name=SLOW, is_limited=True)

    assert len(claim()) == 3
    assert claim() == []


def test_both_limits_hold() -> None:
    QueueStateFactory(name="a", max_concurrent=2, paused_at=None)
    TaskStateFactory(name=SLOW, max_concurrent=3)
    enqueue(5, queue="a", task_name=SLOW, is_limited=True)
    enqueue(5, queue="b", task_name=SLOW, is_limited=True)

    jobs = claim()

    assert sorted(job.queue for job in jobs).count("a") <= 2
    assert len(jobs) == 3


def test_others_pass_by() -> None:
    TaskStateFactory(name=SLOW, max_concurrent=1)
    enqueue(5, task_name=SLOW, is_limited=True, priority=9)
    others = {job.id for job in enqueue(5)}

    jobs = claim()

    assert len(jobs) == 6
    assert others < {job.id for job in jobs}


def test_a_lost_worker_frees_its_slots_with_its_leases() -> None:
    QueueStateFactory(name="mail", max_concurrent=2, paused_at=None)
    enqueue(4, queue="mail")
    assert len(claim()) == 2

    assert claim(at(59)) == []
    assert len(claim(at(61))) == 2


def test_a_limit_is_lifted_at_once() -> None:
    steer.set_queue(at(), "mail", max_concurrent=1)
    enqueue(4, queue="mail")
    known = read_gates(at())
    assert len(claim()) == 1

    steer.set_queue(at(), "mail", max_concurrent=None)
    lanes = claiming.discover_lanes(at(), queues=None, deployment_id=None)
    jobs = claiming.claim(
        at(), lanes=lanes, limit=9, worker_id="w", lease_ms=LEASE_MS, gates=known
    ).jobs

    assert len(jobs) == 3


@pytest.mark.parametrize("kind", ["queue", "task", "pause"])
def test_what_came_since_the_gates_were_read_stops_the_claim(kind: str) -> None:
    enqueue(4, queue="mail", task_name=SLOW)
    if kind == "queue":
        steer.set_queue(at(), "mail", rate_limit="1/h")
    elif kind == "task":
        steer.declare_limits(at(), {SLOW: {"max_concurrent": 1}})
    else:
        steer.pause(at(), "mail")

    found = claiming.claim(
        at(), lanes=["mail"], limit=9, worker_id="w", lease_ms=LEASE_MS, gates=NO_GATES
    )

    assert found.jobs == []
    assert not Job.objects.exclude(status=JobStatus.PENDING).exists()


def test_jobs_under_a_limit_are_taken_for_free_slots_only() -> None:
    QueueStateFactory(name="mail", max_concurrent=50, paused_at=None)
    enqueue(20, queue="mail")
    enqueue(20, queue="free")

    jobs = claimed(limited=3).jobs

    assert [job.queue for job in jobs].count("mail") == 3
    assert [job.queue for job in jobs].count("free") == 20


def test_a_limit_keeps_the_order_of_priorities() -> None:
    QueueStateFactory(name="mail", max_concurrent=2, paused_at=None)
    low = [enqueue_one(queue="mail", priority=0) for _ in range(3)]
    high = enqueue_one(queue="mail", priority=5)

    assert [job.id for job in claim()] == [high, low[0]]


# --- rates ----------------------------------------------------------------------------------------


def test_a_rate_lets_a_burst_through_and_then_its_flow() -> None:
    QueueStateFactory(name="mail", rate_limit="10/m", paused_at=None)
    enqueue(30, queue="mail")

    assert len(claim()) == 10
    found = claimed(1)
    assert (found.jobs, found.opens_in) == ([], pytest.approx(5, abs=0.01))
    assert len(claim(at(6))) == 1
    assert len(claim(at(36))) == 5


def test_two_rates_hold_together() -> None:
    QueueStateFactory(name="mail", rate_limit="5/m", paused_at=None)
    TaskStateFactory(name=SLOW, rate_limit="3/m")
    enqueue(9, queue="mail", task_name=SLOW, is_limited=True)
    enqueue(9, queue="mail")

    jobs = claim()

    assert len(jobs) == 5
    assert [job.task_name for job in jobs].count(SLOW) == 3


def test_jobs_that_never_began_return_their_tokens() -> None:
    QueueStateFactory(name="mail", rate_limit="5/h", paused_at=None)
    TaskStateFactory(name=SLOW, rate_limit="4/h")
    enqueue(5, queue="mail", task_name=SLOW, is_limited=True)
    jobs = claim()
    assert len(jobs) == 4

    lease.release(at(), jobs[:2])

    assert len(claim()) == 2
    assert claim() == []


def test_a_job_that_paid_no_token_returns_none() -> None:
    QueueStateFactory(name="mail", max_concurrent=50, paused_at=None)
    enqueue(9, queue="mail", task_name=SLOW)
    free = claim(limit=4)
    steer.set_queue(at(), "mail", rate_limit="2/h", max_concurrent=None)
    steer.declare_limits(at(), {SLOW: {"rate_limit": "3/h"}})
    assert len(claim()) == 2

    lease.release(at(), free)

    assert claim() == []
    steer.set_queue(at(), "mail", rate_limit=None)
    assert len(claim()) == 1


def test_only_the_limit_that_was_paid_gets_its_token_back() -> None:
    QueueStateFactory(name="mail", rate_limit="3/h", paused_at=None)
    TaskStateFactory(name=SLOW, max_concurrent=9)
    enqueue(9, queue="mail", task_name=SLOW, is_limited=True)
    first = claim()
    assert [job.paid_to for job in first] == [("queue",)] * 3
    steer.declare_limits(at(), {SLOW: {"rate_limit": "2/h"}})
    enqueue(2, queue="other", task_name=SLOW, is_limited=True)
    assert [job.paid_to for job in claim()] == [("task",)] * 2

    lease.release(at(), first)

    assert claim() == []
    steer.declare_limits(at(), {SLOW: {}})
    assert [job.paid_to for job in claim()] == [("queue",)] * 3


def test_a_limit_set_anew_does_not_fill_the_bucket() -> None:
    steer.set_queue(at(), "mail", rate_limit="5/h")
    enqueue(9, queue="mail")
    assert len(claim()) == 5

    steer.set_queue(at(), "mail", rate_limit="5/h")

    assert claim() == []


def test_a_broken_stored_rate_starts_nothing_of_its_queue_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    QueueStateFactory(name="mail", rate_limit="many", paused_at=None)
    enqueue(2, queue="mail")
    other = enqueue_one(queue="other")

    assert [job.id for job in claim()] == [other]
    assert "queue mail: rate_limit is 'many'" in caplog.text


# --- lanes ----------------------------------------------------------------------------------------


def test_jobs_enqueued_without_knowing_of_the_limit_change_lanes_once() -> None:
    TaskStateFactory(name=SLOW, max_concurrent=1)
    enqueue(5, queue="mail", task_name=SLOW)
    others = enqueue(2, queue="mail", deployment_id="blue", task_name=SLOW)
    gates = read_gates(at())

    assert not relane(at(), ["mail", "mail\x1fblue"], gates, limit=100)

    lanes = set(Job.objects.values_list("ready_lane", flat=True))
    assert lanes == {f"mail\x1f\x1f{SLOW}", f"mail\x1fblue\x1f{SLOW}"}
    assert len(others) == 2
    assert len(claim(deployment_id="blue")) == 1


def test_a_look_that_is_full_of_limited_jobs_asks_for_another() -> None:
    TaskStateFactory(name=SLOW, max_concurrent=1)
    enqueue(5, task_name=SLOW)
    gates = read_gates(at())

    assert relane(at(), ["default"], gates, limit=3)
    assert not relane(at(), ["default"], gates, limit=3)
    assert Job.objects.filter(ready_lane="default").count() == 0


def test_a_retry_finds_its_lane_again() -> None:
    TaskStateFactory(name=SLOW, max_concurrent=2)
    enqueue_one(task_name=SLOW, is_limited=True)
    (job,) = claim()

    settle.settle(at(), [settlement(job, status="pending", attempt_error="bad")])

    assert Job.objects.get().ready_lane == job.lane == f"default\x1f\x1f{SLOW}"


# --- what the code declares -----------------------------------------------------------------------


def test_the_code_of_the_latest_worker_decides() -> None:
    steer.declare_limits(at(), {SLOW: {"rate_limit": "5/m"}, "app.tasks.free": {}})
    assert list(TaskState.objects.values_list("name", "rate_limit")) == [(SLOW, "5/m")]

    steer.declare_limits(at(), {SLOW: {"max_concurrent": 2}})
    row = TaskState.objects.get()
    assert (row.rate_limit, row.max_concurrent) == (None, 2)

    steer.declare_limits(at(), {SLOW: {}, "app.tasks.other": {}})
    row = TaskState.objects.get()
    assert (row.rate_limit, row.max_concurrent) == (None, None)
    assert read_gates(at()) == NO_GATES


def test_limits_of_another_namespace_do_not_count() -> None:
    QueueStateFactory(name="mail", namespace="other", max_concurrent=1, paused_at=None)
    enqueue(3, queue="mail")

    assert len(claim()) == 3


# --- the retry budget -----------------------------------------------------------------------------


def test_a_retry_budget_bounds_the_retries_of_all_jobs_together() -> None:
    steer.declare_limits(at(), {SLOW: {"retry_budget": "2/h"}})
    enqueue(4, task_name=SLOW)
    jobs = claim()
    failed = [
        settlement(job, status="pending", attempt_error="bad", is_budgeted=True) for job in jobs
    ]

    outcome = settle.settle(at(), failed)

    assert outcome.buried == {job.id for job in jobs[2:]}
    statuses = [Job.objects.get(id=job.id).status for job in jobs]
    assert statuses == ["pending", "pending", "dead", "dead"]
    assert Job.objects.get(id=jobs[3].id).error == "bad"
    written = verdicts.as_written(failed, outcome.buried, outcome.stopped)
    assert [each.status for each in written] == statuses


def test_the_retry_budget_fills_up_again() -> None:
    steer.declare_limits(at(), {SLOW: {"retry_budget": "1/m"}})
    enqueue(2, task_name=SLOW)
    first, second = claim()
    for job, seconds in ((first, 0), (second, 59)):
        fate = settlement(job, status="pending", attempt_error="bad", is_budgeted=True)
        settle.settle(at(seconds), [fate])

    assert Job.objects.get(id=first.id).status == "pending"
    assert Job.objects.get(id=second.id).status == "dead"


def test_a_retry_that_is_not_written_costs_no_token() -> None:
    steer.declare_limits(at(), {SLOW: {"retry_budget": "2/h"}})
    enqueue(3, task_name=SLOW)
    first, second, late = (
        settlement(job, status="pending", attempt_error="bad", is_budgeted=True) for job in claim()
    )

    for _ in range(3):
        outcome = settle.settle(at(), [late._replace(token=late.token ^ 1)])
        assert outcome.lost == {late.job_id}
    outcome = settle.settle(at(), [late._replace(token=late.token ^ 1), first])
    assert (outcome.lost, outcome.buried) == ({late.job_id}, frozenset())

    assert settle.settle(at(), [second]).buried == frozenset()
    assert settle.settle(at(), [late]).buried == {late.job_id}


@pytest.mark.parametrize("seconds", [0, 3_600])
def test_a_repeat_of_a_retry_that_no_budget_paid_for_is_told_as_it_was_written(
    seconds: float,
) -> None:
    steer.declare_limits(at(), {SLOW: {"retry_budget": "1/h"}})
    enqueue(2, task_name=SLOW)
    retries = [
        settlement(job, status="pending", attempt_error="bad", is_budgeted=True) for job in claim()
    ]
    first = settle.settle(at(), retries)

    again = settle.settle(at(seconds), retries)

    assert (again.settled, again.buried) == (first.settled, first.buried)
    assert (again.lost, len(again.buried)) == (frozenset(), 1)
    assert TaskState.objects.get().retry_full_at == later(3_600)


# --- at the same time -----------------------------------------------------------------------------


@pytest.mark.row_locks
@pytest.mark.django_db(transaction=True)
def test_connections_that_claim_at_once_stay_within_the_limits() -> None:
    QueueState.objects.create(namespace="default", name="mail", max_concurrent=7)
    QueueState.objects.create(namespace="default", name="slow", rate_limit="9/h")
    enqueue(40, queue="mail")
    enqueue(40, queue="slow")
    most, lock = 0, threading.Lock()

    def work() -> list[str]:
        nonlocal most
        # InnoDB may end one of two transactions by a deadlock; a worker tries again, and so do we.
        keeper = Keeper(at(), lambda: False, is_own=False)
        seen: list[str] = []
        while True:
            jobs = keeper.call(lambda: claim(limit=3))
            seen += [job.queue for job in jobs]
            with lock:
                running = Job.objects.filter(status="running", queue="mail").count()
                most = max(most, running)
            if not jobs:
                return seen
            mail = [settlement(job) for job in jobs if job.queue == "mail"]
            keeper.call(partial(settle.settle, at(), mail))

    started = [queue for part in run_in_threads([work] * 4) for queue in part]

    assert started.count("slow") == 9
    assert most <= 7
