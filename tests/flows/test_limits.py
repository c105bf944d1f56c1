"""Limits and pauses in force over several worker processes, whatever becomes of them."""

import json
import random
import time
from collections.abc import Iterable

import pytest

from flexiq_django import queue
from flexiq_django.models import Job
from tests.flows import tasks
from tests.flows.conftest import SHORT_LEASE, Workers
from tests.flows.evidence import keys, witnessed
from tests.flows.gates import Gate
from tests.testapp.models import Mark
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """The largest number of spans that contain one moment."""
    steps = sorted(step for began, ended in spans for step in ((began, 1), (ended, -1)))
    most = now = 0
    for _, change in steps:
        now += change
        most = max(most, now)
    return most


def spans() -> list[tuple[float, float]]:
    """When the witnesses ran, where they got to their end."""
    runs = [run for found in witnessed().values() for run in found]
    return [(run.began, run.ended) for run in runs if run.ended is not None]


def test_a_queue_and_a_task_run_no_more_than_they_may_over_three_workers(workers: Workers) -> None:
    queue.set_queue_concurrency("tight", 3)
    for _ in range(3):
        workers.start("--concurrency", "4")
    queue.enqueue_many(tasks.witness, [(0.03,)] * 60, queue="tight")
    queue.enqueue_many(tasks.couple, [(0.03,)] * 40)
    queue.enqueue_many(tasks.note, [(f"free-{number}",) for number in range(50)], priority=-1)

    wait_until(lambda: queue.stats()["completed"] == 150, 90)

    tight = [(run.began, run.ended or run.began) for runs in witnessed().values() for run in runs]
    assert most_at_once(tight) <= 3
    couples = [json.loads(mark) for mark in Mark.objects.filter(key="couple").values_list(
        "value", flat=True)]  # fmt: skip
    assert len(couples) == 40
    assert most_at_once((began, ended) for began, ended in couples) == 2
    assert sum(count for key, count in keys().items() if key.startswith("free-")) == 50


def test_a_rate_is_kept_over_two_workers(workers: Workers) -> None:
    queue.set_queue_rate_limit("slow", "5/s")
    jobs = queue.enqueue_many(tasks.quick, [()] * 20, queue="slow")
    began = time.monotonic()
    for _ in range(2):
        workers.start()

    wait_until(lambda: queue.stats()["completed"] == 20, 60)

    assert time.monotonic() - began > 1.5  # the first five at once, fifteen more in three seconds
    starts = sorted(Job.objects.values_list("started_at", flat=True))
    assert len(starts) == len(jobs)
    for first, sixth in zip(starts, starts[10:], strict=False):
        # Of a token bucket of five, at most five and what flows in start within a second.
        assert (sixth - first).total_seconds() > 0.99


def test_a_burst_worker_waits_for_the_rate(workers: Workers) -> None:
    queue.set_queue_rate_limit("default", "2/s")
    queue.enqueue_many(tasks.quick, [()] * 5)

    workers.burst()

    assert queue.stats()["completed"] == 5


def test_killed_workers_free_their_slots_and_no_more(workers: Workers) -> None:
    queue.set_queue_concurrency("default", 3)
    fleet = [workers.start(**SHORT_LEASE) for _ in range(3)]
    queue.enqueue_many(tasks.witness, [(0.1,)] * 40)
    for number in range(3):
        wanted = 8 * (number + 1)
        wait_until(lambda wanted=wanted: queue.stats()["completed"] >= wanted, 60)
        random.choice(fleet).kill()
        fleet.append(workers.start(**SHORT_LEASE))

    wait_until(lambda: queue.stats()["completed"] == 40, 90)

    assert most_at_once(spans()) <= 3


def test_unstarted_jobs_of_a_paused_queue_are_given_back(workers: Workers, gate: Gate) -> None:
    worker = workers.start("--concurrency", "1")
    queue.enqueue_many(tasks.give, [(1,)] * 30)  # so that the worker fetches ahead
    wait_until(lambda: queue.stats()["completed"] == 30, 60)
    queue.enqueue(tasks.hold, (str(gate),))
    gate.wait_until_reached()
    queue.enqueue_many(tasks.give, [(2,)] * 30, queue="later")

    queue.pause("later")
    gate.open()
    marker = queue.enqueue(tasks.give, (3,))
    assert marker.result(30) == 3
    wait_until(lambda: queue.stats()["running"] == 0, 30)
    done = queue.stats()["completed"]
    assert queue.enqueue(tasks.give, (4,)).result(30) == 4
    assert queue.stats()["completed"] == done + 1

    queue.resume("later")
    wait_until(lambda: queue.stats()["completed"] == 63, 30)
    assert set(Job.objects.filter(queue="later").values_list("attempt", flat=True)) == {1}
    assert worker.exit_code is None


def test_another_worker_runs_what_a_pause_has_sent_back(workers: Workers, gate: Gate) -> None:
    workers.start("--concurrency", "1")
    queue.enqueue_many(tasks.quick, [()] * 300)  # so that the worker fetches ahead
    wait_until(lambda: queue.stats()["completed"] == 300, 30)
    tasks.hold.apply_async((str(gate),), priority=5, delay=0.5)
    queue.enqueue_many(tasks.note, [("later",)] * 20, queue="later", delay=0.5)
    rows = Job.objects.filter(queue="later")
    gate.wait_until_reached()
    wait_until(rows.filter(status="running").exists, 30, "jobs claimed in advance")

    queue.pause("later")
    wait_until(lambda: set(rows.values_list("status", "attempt")) == {("pending", 0)}, 30)
    workers.start("--concurrency", "1")
    queue.resume("later")

    wait_until(lambda: set(rows.values_list("status", "attempt")) == {("complete", 1)}, 30)
    assert keys()["later"] == 20
    gate.open()


def test_a_retry_budget_ends_a_storm(workers: Workers) -> None:
    jobs = queue.enqueue_many(tasks.always_fails, [()] * 12)

    workers.start()

    wait_until(lambda: queue.stats()["dead"] == 12, 60)
    attempts = sum(len(job.errors) for job in jobs)
    assert 12 + 4 <= attempts <= 12 + 5  # a bucket of four, and at most one more in the meantime
