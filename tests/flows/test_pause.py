"""A task that asks a person, and goes on when it was told to."""

import pytest

from flexiq_django import JobStatus, current_job, queue
from flexiq_django.exceptions import TaskCancelledError
from flexiq_django.models import TaskMetric
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, keys
from tests.testapp.models import Mark
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

TASKS = (tasks.ask, tasks.ask_together, tasks.ask_async)


def test_tasks_pause_and_go_on(workers: Workers) -> None:
    jobs = {task.function.__name__: task.delay(task.function.__name__) for task in TASKS}
    released = tasks.ask.delay("released")
    worker = workers.start()

    for job in (*jobs.values(), released):
        wait_until(lambda job=job: job_row(job.id).status == JobStatus.PAUSED, 20)
        job.refresh()
        assert (job.status, job.pause_reason) == ("paused", "approve this")
        with pytest.raises(TimeoutError):
            job.result(0.01)
        assert errors_of(job.id) == []
    assert {each.id for each in queue.list_jobs(status="paused")} == {
        released.id, *(job.id for job in jobs.values())
    }  # fmt: skip
    assert keys() == dict.fromkeys([*(f"{name} asked" for name in jobs), "released asked"], 1)
    assert not TaskMetric.objects.exists()

    assert queue.cancel_job(released.id)
    for name, job in jobs.items():
        Mark.objects.create(key=f"{name} approved")
        assert queue.continue_job(job.id)
        assert not queue.continue_job(job.id)
        assert job.result(20) == "attempt 2, 0 failed"
    with pytest.raises(TaskCancelledError):
        released.result(1)
    assert_quiet(worker)


def test_a_pause_outside_a_task_is_refused() -> None:
    with pytest.raises(RuntimeError, match="inside a running task"):
        current_job.pause("why")
