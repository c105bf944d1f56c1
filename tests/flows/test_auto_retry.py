"""Workers that retry dead letters by themselves: each once, up to the end of the chain."""

import pytest

from flexiq_django import queue
from flexiq_django.models import DeadLetter, Job
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

SOON = {"DLQ_AUTO_RETRY_DELAY": 0.1, "DLQ_AUTO_RETRY_MAX": 2}


def test_chains_end_with_a_letter_for_a_person(workers: Workers) -> None:
    started = [workers.start(**SOON), workers.start(**SOON)]
    jobs = [tasks.fail_for_good.delay() for _ in range(5)]

    def letters() -> list[DeadLetter]:
        return list(DeadLetter.objects.filter(dlq_retry_count=2))

    wait_until(lambda: len(letters()) == 5, 60)

    assert {str(each.origin_job_id) for each in letters()} == {job.id for job in jobs}
    assert DeadLetter.objects.filter(auto_retry_at=None).count() == 5
    assert Job.objects.filter(status="dead").count() == 15
    assert queue.stats()["pending"] == 0
    for worker in started:
        assert worker.terminate() == 0
        assert_quiet(worker)
