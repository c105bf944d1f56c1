"""Workers whose settings are not the same: what they say, and that they do each other no harm."""

import signal

import pytest
from django.core.management import call_command

from flexiq_django import queue
from flexiq_django.models import Job
from flexiq_django.scheduler.watching import find_unserved
from flexiq_django.store import inspect
from tests.flows import tasks
from tests.flows.conftest import SHORT_LEASE, Workers
from tests.flows.evidence import errors_of, job_row
from tests.flows.gates import Gate
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

LONG_LEASE = {"LOCK_GRACE_SECONDS": 60, "STOP_TIMEOUT_SECONDS": 1}


def test_a_worker_says_how_it_differs_and_what_nobody_serves(
    workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks.note.apply_async(("x",), queue="reports")
    tasks.note.apply_async(("x",), queue="mail", deployment_id="gpu-pool")
    first = workers.start("--queues", "mail", **LONG_LEASE)
    for told in (
        "jobs wait in queue reports, which no live worker serves",
        "jobs wait in queue mail for deployment gpu-pool, which no live worker there has",
    ):
        first.wait_for_log(told)

    second = workers.start("--queues", "mail", **SHORT_LEASE)

    second.wait_for_log(r"workers differ in lock_grace_seconds: 60 on \S+; 2 on \S+\n")
    assert "stop_timeout_seconds" not in second.log
    assert "jobs wait" not in second.log  # the leader says it
    call_command("flexiq_info")
    assert "WARNING: workers differ in lock_grace_seconds" in capsys.readouterr().out


def test_a_fleet_that_drains_is_not_well_and_its_worker_is(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--concurrency", "1", "--drain-timeout", "60")
    place = ("--namespace", workers.namespace)
    (row,) = queue.workers()
    tasks.hold.delay(str(gate))
    gate.wait_until_reached()
    tasks.note.delay("x")
    call_command("flexiq_health", *place)

    worker.send_signal(signal.SIGTERM)
    worker.wait_for_log("drains")

    # Long before the next heartbeat, which comes every 15 seconds.
    wait_until(lambda: queue.workers()[0]["state"] == "draining", 5)
    with pytest.raises(SystemExit):
        call_command("flexiq_health", *place)
    call_command("flexiq_health", "--worker", row["id"], *place)
    wait_until(lambda: [each.code for each in find_unserved(queue.place)] == ["no-worker"], 5)
    gate.open()
    assert worker.wait() == 0
    assert "jobs wait" not in worker.log


@pytest.mark.slow
def test_a_leader_with_a_short_grace_leaves_a_healthy_peer_its_jobs(
    workers: Workers, gate: Gate
) -> None:
    leader = workers.start("--queues", "other", **SHORT_LEASE)
    leader.wait_for_log("leadership taken")
    peer = workers.start(**LONG_LEASE)
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()
    began = job_row(job.id).started_at

    # Three times its grace, by the database's clock: the heartbeat of the peer is still to come.
    wait_until(lambda: (inspect.read_clock(queue.place) - began).total_seconds() > 6, 20)
    row = job_row(job.id)

    assert (row.status, row.attempt) == ("running", 1)
    assert peer.exit_code is None
    gate.open()
    assert job.result(20) == "attempt 1"


@pytest.mark.slow
def test_a_leader_with_a_long_grace_takes_the_jobs_of_a_dead_peer_when_its_lease_ends(
    workers: Workers, gate: Gate
) -> None:
    leader = workers.start("--queues", "other", **LONG_LEASE)
    leader.wait_for_log("leadership taken")
    peer = workers.start(**SHORT_LEASE)
    job = tasks.hold.delay(str(gate))
    gate.wait_until_reached()

    peer.kill()

    wait_until(lambda: job_row(job.id).status == "pending", 25)  # 60 would be the leader's own
    assert len(errors_of(job.id)) == 1
    assert Job.objects.get().attempt == 1
    assert queue.stats()["running"] == 0
