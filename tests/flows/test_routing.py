"""Which worker runs which job, in which order, and which jobs it is too late for."""

import pytest

from flexiq_django import queue
from flexiq_django.models import Job
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import job_row, keys
from tests.flows.gates import Gate
from tests.testapp.models import Mark
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def marks_in_order() -> list[str]:
    return list(Mark.objects.order_by("id").values_list("key", flat=True))


# --- burst ----------------------------------------------------------------------------------------


def test_a_burst_with_nothing_to_do_ends(workers: Workers) -> None:
    workers.burst()
    workers.burst("--processes", "2")


def test_a_burst_ends_when_all_is_done_dependents_included(workers: Workers) -> None:
    parents = queue.enqueue_many(tasks.note, [(f"parent {number}",) for number in range(20)])
    middle = [tasks.note.apply_async((f"child of {p.id}",), depends_on=p) for p in parents]
    tasks.note.apply_async(("last",), depends_on=middle)
    failing = tasks.fail_for_good.delay()
    tasks.note.apply_async(("despite",), depends_on=failing, allow_parent_failure=True)

    workers.burst("--concurrency", "2")

    assert len(keys()) == 42
    assert set(keys().values()) == {1}
    assert queue.stats()["pending"] == queue.stats()["running"] == 0


def test_a_burst_retries_what_may_run_at_once(workers: Workers) -> None:
    job = tasks.raise_type_error.delay()
    workers.burst()
    assert job_row(job.id).status == "dead"


def test_a_burst_leaves_what_is_due_later(workers: Workers) -> None:
    later = tasks.note.apply_async(("later",), delay=3600)
    tasks.note.delay("now")
    workers.burst()
    assert keys() == {"now": 1}
    assert job_row(later.id).status == "pending"


# --- queues ---------------------------------------------------------------------------------------


def test_a_worker_serves_only_its_queues(workers: Workers) -> None:
    for name in ("mail", "Mail", "reports", "other"):
        tasks.note.apply_async((name,), queue=name)
        tasks.note.apply_async((f"{name} later",), queue=name, delay=0.01)

    workers.burst("--queues", "mail,reports")
    assert set(keys()) <= {"mail", "mail later", "reports", "reports later"}
    assert {"mail", "reports"} <= set(keys())

    workers.burst()
    workers.burst()
    assert len(keys()) == 8
    assert set(keys().values()) == {1}


def test_a_worker_serves_only_its_namespace(workers: Workers, namespace: str) -> None:
    other = type(queue)(namespace=f"{namespace}-other")
    theirs = other.enqueue(tasks.note, ("theirs",))
    tasks.note.delay("ours")

    workers.burst()
    assert keys() == {"ours": 1}
    assert theirs.status == "pending"

    workers.burst("--namespace", f"{namespace}-other")
    assert keys() == {"ours": 1, "theirs": 1}


# --- deployments ----------------------------------------------------------------------------------


def test_a_worker_without_a_deployment_runs_jobs_without_one(workers: Workers) -> None:
    tasks.note.delay("plain")
    pinned = tasks.note.apply_async(("gpu",), deployment_id="gpu-pool")
    tasks.note.apply_async(("delayed gpu",), deployment_id="gpu-pool", delay=0.01)

    workers.burst()

    assert keys() == {"plain": 1}
    assert job_row(pinned.id).status == "pending"


def test_a_worker_of_a_deployment_runs_its_own_and_plain_jobs(workers: Workers) -> None:
    tasks.note.delay("plain")
    tasks.note.apply_async(("gpu",), deployment_id="gpu-pool")
    tasks.note.apply_async(("other",), deployment_id="other-pool")
    retried = tasks.fail_until.apply_async((2,), deployment_id="gpu-pool")

    workers.start("--deployment-id", "gpu-pool")

    assert retried.result(20) == "attempt 2"
    wait_until(lambda: {"plain", "gpu"} <= set(keys()))
    assert "other" not in keys()
    assert queue.workers()[0]["deployment_id"] == "gpu-pool"


def test_the_deployment_setting_pins_what_is_enqueued_there(workers: Workers) -> None:
    workers.start(DEPLOYMENT_ID="gpu-pool")

    inner_id = tasks.enqueue_note.delay("inner").result(20)

    wait_until(lambda: keys()["inner"])
    assert job_row(inner_id).deployment_id == "gpu-pool"


def test_what_stands_in_for_a_job_keeps_its_deployment(workers: Workers) -> None:
    dead = tasks.write_together_and_fail.apply_async(deployment_id="gpu-pool")
    done = tasks.give.apply_async((1,), deployment_id="gpu-pool")
    workers.burst("--deployment-id", "gpu-pool")
    (letter,) = queue.dead_letters()
    assert letter["original_job_id"] == dead.id

    retried = queue.retry_dead(letter["id"])
    replayed = queue.replay(done.id)

    for key in (retried, replayed.id):
        assert job_row(key).deployment_id == "gpu-pool"
    workers.burst()
    assert {job_row(key).status for key in (retried, replayed.id)} == {"pending"}
    workers.burst("--deployment-id", "gpu-pool")
    assert job_row(retried).status == "dead"
    assert job_row(replayed.id).status == "complete"


def test_any_worker_reaps_a_job_of_a_deployment_that_is_gone(workers: Workers, gate: Gate) -> None:
    lost = workers.start(
        "--deployment-id", "gpu-pool", LOCK_GRACE_SECONDS=2, STOP_TIMEOUT_SECONDS=1
    )
    job = tasks.hold.apply_async((str(gate),), deployment_id="gpu-pool")
    gate.wait_until_reached()
    lost.kill()

    workers.start(LOCK_GRACE_SECONDS=2, STOP_TIMEOUT_SECONDS=1)

    wait_until(lambda: job_row(job.id).status == "pending", 40)
    assert job_row(job.id).retry_count == 1
    assert Job.objects.get().attempt == 1  # nobody here may run it


# --- time and order -------------------------------------------------------------------------------


def test_expired_jobs_do_not_run(workers: Workers) -> None:
    expired = tasks.note.apply_async(("expired",), expires=0.001)
    child = tasks.note.apply_async(("child",), depends_on=expired)
    scheduled = tasks.note.apply_async(("expires while waiting",), delay=3600, expires=0.001)
    fine = tasks.note.apply_async(("fine",), expires=3600)

    workers.start()

    for job in (expired, child, scheduled):
        wait_until(lambda job=job: job_row(job.id).status == "cancelled", 20)
    wait_until(lambda: job_row(fine.id).status == "complete")
    assert keys() == {"fine": 1}
    assert "expired" in str(job_row(expired.id).error)
    assert job_row(scheduled.id).attempt == 0


def test_no_delayed_job_starts_early(workers: Workers) -> None:
    workers.start("--processes", "2")
    delays = [number / 10 for number in range(30)]

    queue.enqueue_many(tasks.quick, [()] * len(delays), delay_list=delays)

    wait_until(lambda: queue.stats()["completed"] == len(delays), 30)
    rows = Job.objects.order_by("id").values_list("created_at", "scheduled_at", "started_at")
    waits = [(due - made).total_seconds() for made, due, _ in rows]
    assert waits == pytest.approx(delays, abs=0.002)
    assert [(due, began) for _, due, began in rows if began < due] == []


def test_priority_goes_before_age_across_queues(workers: Workers) -> None:
    for number, (name, priority) in enumerate(
        [("a", 0), ("b", 5), ("a", -5), ("b", 0), ("a", 5), ("b", 100), ("c", 1), ("a", 0)]
    ):
        tasks.note.apply_async((f"{priority} {number}",), queue=name, priority=priority)

    workers.burst("--concurrency", "1")

    assert marks_in_order() == ["100 5", "5 1", "5 4", "1 6", "0 0", "0 3", "0 7", "-5 2"]


def test_equal_priorities_run_in_the_order_they_were_enqueued(workers: Workers) -> None:
    names = [f"{number}" for number in range(120)]
    queue.enqueue_many(tasks.note, [(name,) for name in names])

    workers.burst("--concurrency", "1")

    assert marks_in_order() == names
