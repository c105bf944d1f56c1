"""Another transaction in the way, as by a deadlock, is no failure of a call."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from flexiq_django import db as jobs
from tests.db.conftest import claimed, outlive_lease

Act = Callable[[jobs.JobDatabase, jobs.Claim], Any]

ACTS: dict[str, Act] = {
    "claim": lambda place, _: jobs.claim(place, "me"),
    "heartbeat": jobs.heartbeat,
    "complete": jobs.mark_completed_owned,
    "fail": lambda place, claim: jobs.mark_failed(place, claim.id, "e"),
    "cancel": lambda place, claim: jobs.cancel_job(place, claim.id),
    "reorder": lambda place, claim: jobs.update_priority(place, claim.id, 5),
    "label": lambda place, claim: jobs.update_canonical_lineage(place, claim, trial_id="t"),
    "reclaim": lambda place, _: jobs.reclaim_stale(place),
    "requeue": lambda place, _: jobs.requeue_interrupted(place, "me"),
}


class Refusal:
    """Refuses the first statement that claims or changes jobs, in words of every database."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        if "UPDATE" in sql and not self.refused:
            self.refused.append(sql)
            cause: Any = Exception()
            cause.sqlstate = "40P01"
            raise OperationalError(1213, "database is locked") from cause
        return execute(sql, *rest)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ACTS)
def test_a_call_begins_again(name: str) -> None:
    place = jobs.open_database()
    claim, refusal = claimed(place), Refusal()
    jobs.insert_job(place, 2)
    if name == "reclaim":
        outlive_lease(claim)

    with connection.execute_wrapper(refusal):
        assert ACTS[name](place, claim)

    assert refusal.refused


def test_in_a_transaction_of_the_caller_it_does_not(place: jobs.JobDatabase) -> None:
    claim = claimed(place)

    with (
        transaction.atomic(),
        connection.execute_wrapper(Refusal()),
        pytest.raises(OperationalError),
    ):
        jobs.mark_completed_owned(place, claim)
