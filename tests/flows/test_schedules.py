"""One firing for each run of a schedule, however many workers there are and whoever leads them."""

import signal
from datetime import datetime

import pytest

from flexiq_django import queue
from flexiq_django.models import Job
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet
from tests.processes import WorkerProcess
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

TICKING = {"FLEXIQ_TEST_TICKING": "1"}


def start_fleet(workers: Workers, count: int) -> list[WorkerProcess]:
    fleet = [workers.launch("--concurrency", "2", environment=TICKING) for _ in range(count)]
    for worker in fleet:
        worker.wait_for_log(r"worker \S+ started", 60)
    return fleet


def occurrences() -> list[int]:
    """The second for which each job was fired, in the order of the ids."""
    rows = Job.objects.filter(schedule="ticking").order_by("id")
    keys = rows.values_list("unique_key", flat=True)
    return [int(str(key).rpartition(":")[2]) // 1000 for key in keys]


@pytest.mark.slow
def test_five_workers_fire_every_second_once(workers: Workers) -> None:
    fleet = start_fleet(workers, 5)
    began = wait_until(occurrences, 20)[0]

    wait_until(lambda: len(occurrences()) >= 21, 40)

    fired = occurrences()
    assert fired == list(range(began, began + len(fired)))  # no gap, no double, in order
    assert abs(fired[-1] - datetime.now().timestamp()) < 5  # noqa: DTZ005 - a moment is a moment
    wait_until(lambda: queue.stats()["completed"] >= 21)
    assert set(Job.objects.filter(status="complete").values_list("attempt", flat=True)) == {1}
    for worker in fleet:
        worker.send_signal(signal.SIGTERM)
    assert [worker.wait() for worker in fleet] == [0] * 5
    assert_quiet(*fleet)
    assert "IntegrityError" not in "".join(worker.log for worker in fleet)


def test_a_leader_that_stops_hands_over_without_a_gap_or_a_double(workers: Workers) -> None:
    first, second = start_fleet(workers, 2)
    wait_until(lambda: len(occurrences()) >= 3, 20)
    leader, other = (first, second) if "leadership taken" in first.log else (second, first)

    assert leader.terminate() == 0
    other.wait_for_log("leadership taken", 15)
    seen = len(occurrences())
    wait_until(lambda: len(occurrences()) >= seen + 3, 20)

    fired = occurrences()
    assert fired == list(range(fired[0], fired[0] + len(fired)))
    assert_quiet(leader, other)


@pytest.mark.slow
def test_a_leader_that_is_killed_is_replaced(workers: Workers) -> None:
    first, second = start_fleet(workers, 2)
    wait_until(lambda: len(occurrences()) >= 2, 20)
    leader, other = (first, second) if "leadership taken" in first.log else (second, first)

    leader.send_signal(signal.SIGKILL)
    other.wait_for_log("leadership taken", 30)
    seen = len(occurrences())
    wait_until(lambda: len(occurrences()) >= seen + 3, 20)

    fired = occurrences()
    assert len(set(fired)) == len(fired)
    assert fired == sorted(fired)
    (row,) = queue.list_periodic()
    # What nobody could fire in time counts as missed: nothing disappears without a trace.
    assert len(fired) + row["missed"] == fired[-1] - fired[0] + 1


def test_a_schedule_is_paused_and_goes_on_beside_a_running_worker(workers: Workers) -> None:
    start_fleet(workers, 1)
    wait_until(lambda: len(occurrences()) >= 2, 20)

    assert queue.pause_periodic("ticking")
    fired = occurrences()
    tasks.quick.apply_async(delay=2).result(20)  # two ticks and more pass meanwhile
    assert occurrences() == fired

    assert queue.resume_periodic("ticking")
    wait_until(lambda: len(occurrences()) >= len(fired) + 2, 20)
    after = occurrences()[len(fired) :]
    assert after[0] - fired[-1] > 2  # what fell into the pause is not made up for
    assert queue.list_periodic()[0]["missed"] == 0


def test_a_stored_schedule_reports_its_runs(workers: Workers) -> None:
    start_fleet(workers, 1)
    wait_until(lambda: len(occurrences()) >= 2, 20)

    (row,) = queue.list_periodic()

    assert (row["name"], row["task_name"], row["enabled"]) == ("ticking", tasks.tick.name, True)
    assert row["next_run"] > row["last_run"]
    assert row["next_run"] % 1000 == 0
