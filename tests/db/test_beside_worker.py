"""The jobs of this module and a flexiq_worker that serves the same queue."""

import pytest

from flexiq_django import Queue
from flexiq_django import db as jobs
from tests.docs.running import run_worker

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def test_a_worker_runs_what_it_knows_and_fails_what_it_does_not() -> None:
    queue = Queue()

    @queue.task(name="low.double", max_retries=0)
    def double(data: dict[str, int]) -> int:
        return 2 * data["n"]

    place = jobs.open_database()
    known = jobs.insert_job(place, {"n": 21}, task_name="low.double")
    unknown = jobs.insert_job(place, {"n": 1}, max_retries=0)

    run_worker()

    done, failed = jobs.get_job_details(place, known), jobs.get_job(place, unknown)
    assert done is not None
    assert (done.status, done.result) == ("completed", 42)
    assert failed is not None
    assert failed.status == "failed"
    assert "unknown task 'flexiq_django.db'" in str(failed.error_message)
