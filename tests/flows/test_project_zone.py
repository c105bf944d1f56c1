"""A project with USE_TZ = False and a zone far from UTC: everything fires at local wall time."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, job_row, values
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

LIMA = ZoneInfo("America/Lima")
ENVIRONMENT = {"DJANGO_SETTINGS_MODULE": "tests.flows.lima_settings"}


def test_delays_retries_and_naive_times_work(workers: Workers) -> None:
    worker = workers.start(environment=ENVIRONMENT)
    before = datetime.now(UTC)

    answer = tasks.enqueue_naive.delay(1.0).result(20)
    retried = tasks.fail_until.delay(2)
    delayed = tasks.quick.apply_async(delay=0.5)

    assert retried.result(20) == "attempt 2"
    first, second = (float(value) for value in values(retried.id))
    assert 0.4 <= second - first < 10
    delayed.result(20)
    assert job_row(delayed.id).started_at >= job_row(delayed.id).scheduled_at
    row = wait_until(lambda: _ended(answer["id"]), 20)
    meant = datetime.fromisoformat(answer["run_at"]).replace(tzinfo=LIMA)
    assert row.scheduled_at == meant
    assert answer["scheduled_at"] == int(meant.timestamp() * 1000)
    assert before < row.scheduled_at <= row.started_at < before + timedelta(seconds=40)
    assert before < row.created_at < row.scheduled_at
    assert_quiet(worker)


def test_a_schedule_fires_at_local_time(workers: Workers) -> None:
    # A minute and an hour that only Lima's clock shows now: the next two minutes there.
    now = datetime.now(LIMA)
    hours = ",".join(str((now + timedelta(minutes=more)).hour) for more in (0, 2))
    environment = {**ENVIRONMENT, "FLEXIQ_TEST_LOCAL_SCHEDULE": f"* * {hours} * * *"}
    worker = workers.start(environment=environment)

    wait_until(lambda: queue.list_jobs(task_name=tasks.local_hour.name), 20)

    (row,) = queue.list_periodic()
    assert row["timezone"] == "America/Lima"
    assert abs(row["next_run"] / 1000 - datetime.now(UTC).timestamp()) < 10
    assert_quiet(worker)


def test_times_are_reported_alike_by_both_projects(workers: Workers) -> None:
    workers.start(environment=ENVIRONMENT)
    job = tasks.quick.delay()
    job.result(20)

    theirs = tasks.report_times.delay(job.id).result(20)

    ours = queue.get_job(job.id).to_dict()
    assert theirs == {name: ours[name] for name in theirs}
    assert abs(ours["created_at"] / 1000 - datetime.now(UTC).timestamp()) < 60
    (worker,) = queue.workers()
    assert abs(worker["started_at"] / 1000 - datetime.now(UTC).timestamp()) < 60


def _ended(job_id: str) -> object:
    row = job_row(job_id)
    return row if row.completed_at else None
