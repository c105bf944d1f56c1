"""Jobs of a session through two workers: one at a time, in order, none forgotten."""

import json
import threading
from itertools import pairwise

import pytest
from django.db import connections

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet
from tests.testapp.models import Mark
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def test_a_hundred_jobs_of_five_sessions_through_two_workers(workers: Workers) -> None:
    both = [workers.start("--concurrency", "4") for _ in range(2)]

    def enqueue(session: str) -> None:
        try:
            for number in range(20):
                tasks.in_session.apply_async((session, number), session_id=session)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=enqueue, args=(f"session {each}",)) for each in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wait_until(lambda: queue.stats()["completed"] == 100, 25)

    for each in range(5):
        values = Mark.objects.filter(key=f"session {each}").values_list("value", flat=True)
        runs = sorted(map(json.loads, values), key=lambda run: run[1])
        assert list(dict.fromkeys(number for number, _, _ in runs)) == list(range(20))
        assert len(runs) == 23  # three of them ran twice, before anything behind them
        assert all(ended <= began for (_, _, ended), (_, began, _) in pairwise(runs))
    assert queue.stats()["pending"] == 0
    assert_quiet(*both)
