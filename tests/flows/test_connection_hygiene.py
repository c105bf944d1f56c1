"""Whatever a body does to its connection, the next job in the same thread finds a good one."""

import pytest

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, job_row, values

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

MESSES = [
    "open atomic",
    "broken atomic",
    "nested atomic",
    "closed",
    "closed in atomic",
    "no autocommit",
    "failed statement",
    "open cursor",
]


def test_a_mess_does_not_reach_the_next_job(workers: Workers) -> None:
    pairs = {
        mess: (
            tasks.leave_behind.delay(mess),
            tasks.note.delay("next", mess),
            tasks.add_note_together.delay("together", mess),
        )
        for mess in MESSES
    }

    worker = workers.burst("--concurrency", "1")  # every body in one thread, on one connection

    for mess, (dirty, following, together) in pairs.items():
        expected = "dead" if mess == "failed statement" else "complete"
        assert job_row(dirty.id).status == expected, mess
        assert job_row(following.id).status == "complete", mess
        assert job_row(together.id).status == "complete", mess
        assert job_row(following.id).retry_count == 0, mess
        assert job_row(together.id).retry_count == 0, mess
    assert values("before the mess") == MESSES
    assert values("next") == MESSES
    assert values("together") == MESSES
    assert values("in the mess") == []  # it was never committed
    assert queue.stats()["running"] == 0
    assert_quiet(worker)
