"""Many jobs over many processes: each once, and each at least once when processes are killed."""

import contextlib
import os
import random
import re
import signal
import threading
from collections import Counter

import pytest

from flexiq_django import queue
from flexiq_django.models import DeadLetter, Job, JobError
from tests.flows import tasks
from tests.flows.conftest import SHORT_LEASE, Workers
from tests.flows.evidence import assert_quiet, keys, overlaps, successes, witnessed
from tests.processes import WorkerProcess
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_thousand_jobs_run_once_each(workers: Workers) -> None:
    jobs = queue.enqueue_many(tasks.note, [(f"{number}",) for number in range(10_000)])

    fleet = workers.burst("--processes", "4", deadline=240)

    assert queue.stats() == {**dict.fromkeys(queue.stats(), 0), "completed": 10_000}
    assert keys() == Counter(f"{number}" for number in range(10_000))
    assert successes() == Counter(job.id for job in jobs)
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}
    assert not JobError.objects.exists()
    assert Job.objects.values("worker_id").distinct().count() == 4
    assert_quiet(fleet)


def test_a_few_hundred_jobs_run_once_each(workers: Workers) -> None:
    jobs = queue.enqueue_many(tasks.note, [(f"{number}",) for number in range(400)])

    fleet = workers.burst("--processes", "2")

    assert keys() == Counter(f"{number}" for number in range(400))
    assert successes() == Counter(job.id for job in jobs)
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}
    assert_quiet(fleet)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kill", [True, False], ids=["SIGKILL", "SIGSTOP past the lease"])
def test_no_job_is_lost_or_runs_twice_at_a_time_in_a_storm(workers: Workers, kill: bool) -> None:
    count, storm_seconds = 1500, 10
    jobs = queue.enqueue_many(tasks.witness, [(0.03,)] * count)
    fleet = workers.start("--processes", "4", "--concurrency", "2", **SHORT_LEASE)

    for _ in range(storm_seconds):
        threading.Event().wait(1.0)
        if kill:
            os.kill(random.choice(wait_until(fleet.children, 60)), signal.SIGKILL)
        else:  # the leader goes on, or nobody would notice in time that leases ran out
            child = random.choice([pid for pid in fleet.children() if pid != leader_of(fleet)])
            os.kill(child, signal.SIGSTOP)
            threading.Timer(9.0, _thaw, [child]).start()

    wait_until(lambda: queue.stats()["completed"] == count, 150, "all jobs to complete")
    fleet.terminate()
    assert queue.stats() == {**dict.fromkeys(queue.stats(), 0), "completed": count}
    runs = witnessed()
    assert set(runs) == {job.id for job in jobs}
    assert [pair for found in runs.values() for pair in overlaps(found)] == []
    assert successes() == Counter(job.id for job in jobs)
    # Every attempt but the one that completed the job left one error row, and no two the same.
    errors = Counter(JobError.objects.values_list("job_id", "attempt"))
    assert set(errors.values()) <= {1}
    for job_id, attempt in Job.objects.values_list("id", "attempt"):
        assert [run.attempt for run in runs[str(job_id)]] == sorted(
            {run.attempt for run in runs[str(job_id)]}
        )
        assert runs[str(job_id)][-1].attempt == attempt
    retried = {str(job_id) for job_id, _ in errors}
    assert retried, "the storm hit nobody"
    assert not DeadLetter.objects.exists()


def leader_of(fleet: WorkerProcess) -> int:
    """The process that took the leadership last."""
    return int(re.findall(r"(\d+) INFO \S+ leadership taken", fleet.log)[-1])


def _thaw(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
