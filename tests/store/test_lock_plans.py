"""MariaDB and MySQL find the rows that a statement names by their id by nothing but that id.

They take another index where it seems as good, and read a small table whole. A statement then locks
the entry of that index before the row. Whoever changes the row has locked it first, and waits for
the entry: one of the two dies of the deadlock, and with it a job whose body shares its transaction.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from flexiq_django.store import (
    archive,
    dead_letters,
    journal,
    lease,
    operate,
    promote,
    purge,
    retention,
    revive,
    settle,
)
from flexiq_django.store.grant import grant
from tests.factories import (
    ArchivedJobFactory,
    DeadLetterFactory,
    JobFactory,
    QueueStateFactory,
    TaskStateFactory,
    at,
)
from tests.store.acting import claim_one, enqueue_one, running, settlement
from tests.store.plans import BIG

pytestmark = pytest.mark.django_db

LATER = 90 * 86_400

#: A statement that locks, and for each table it reads the index it takes.
Plans = list[tuple[str, list[tuple[Any, ...]]]]

#: Rows that are changed or locked by their id, or by ids that were read before.
_BY_ID = re.compile(r"\bid (?:=|IN) %|\bid IN \(\d|\bj\.id = b\.id")


@pytest.fixture(autouse=True)
def only_innodb(vendor: str) -> None:
    if vendor != "mysql":
        pytest.skip("elsewhere a row is locked before anything that leads to it")


@pytest.fixture
def plans() -> Iterator[Plans]:
    """Fills with each statement that locks rows, and what it does, as it stands."""
    found: Plans = []

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith(("UPDATE", "DELETE")) or "FOR UPDATE" in sql:
            with connection.connection.cursor() as cursor:  # the driver's own: not looked at
                cursor.execute("EXPLAIN " + sql, params)
                names = [column[0] for column in cursor.description]
                steps = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            found.append((sql, [(each["table"], each["key"]) for each in steps]))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield found


# --- the verbs, each on a table of a few rows -----------------------------------------------------


def note_progress() -> None:
    job = running()
    assert journal.set_progress(at(), job.id, job.token, 50)
    assert journal.append_log(
        at(), job.id, job.token, task_name="t", level="info", message="m", extra=None
    )


def steer_a_running_job() -> None:
    job = running()
    assert operate.request_cancel(at(), job.id)
    assert operate.set_progress(at(), job.id, 50)
    assert operate.set_priority(at(), job.id, 5, only_pending=False)
    assert operate.set_lineage(at(), job.id, attempt_id="a", trial_id="t", token=job.token)
    assert operate.cancel_even_running(at(), job.id, error="stopped") == "running"


def cancel_with_dependents() -> None:
    parent = enqueue_one()
    enqueue_one(parents=(parent,))
    assert len(operate.cancel(at(), parent)) == 2


def settle_a_batch() -> None:
    jobs = [running() for _ in range(3)]
    lease.renew(at(), [(job.id, job.token) for job in jobs], lease_ms=1_000)
    settled = settle.settle(
        at(),
        [
            settlement(jobs[0]),
            settlement(jobs[1], "pending", attempt_error="E", error="E", wait_ms=5),
            settlement(jobs[2], "dead", attempt_error="E", error="E"),
        ],
    )
    assert len(settled.settled) == 3


def give_back() -> None:
    assert len(lease.release(at(), [running()])) == 1


def promote_due() -> None:
    JobFactory(scheduled=True)
    assert promote.promote_due(at(LATER))[0] == 1


def archive_ended() -> None:
    JobFactory(ended=True)
    assert archive.archive_batch(at(LATER), older_than_ms=1, limit=10) == 1


def sweep_old() -> None:
    JobFactory(ended=True)
    ArchivedJobFactory()
    DeadLetterFactory()
    for sweep in retention.sweeps({"archived_jobs": 1_000, "dead_letter": 1_000}):
        retention.sweep_batch(at(LATER), sweep)


def purge_old() -> None:
    JobFactory(ended=True)
    DeadLetterFactory()
    assert sum(purge.purge_completed(at(LATER), older_than_ms=1)) == 1
    assert sum(purge.purge_dead(at(LATER), older_than_ms=1)) == 1


def treat_dead_letters() -> None:
    letters = [DeadLetterFactory().id for _ in range(3)]
    assert dead_letters.delete(at(), letters[0])
    assert revive.retry_dead(at(), letters[1:2], limited={}).jobs
    assert not revive.retry_due(at(), letters[2:], most=0, limited={}).jobs


def grant_an_attempt() -> None:
    job = ArchivedJobFactory(status="dead", error="E: bad")
    DeadLetterFactory(original_job_id=job.id)
    parent = enqueue_one()
    child = enqueue_one(parents=(parent,))
    operate.cancel(at(), child)
    for key in (job.id, child):
        grant(at(), key, limited={"app.tasks.work": False})


def test_limits_are_locked_by_their_names(plans: Plans) -> None:
    QueueStateFactory(name="default", paused_at=None, rate_limit="5/m")
    TaskStateFactory(name="app.tasks.work", rate_limit="5/m", retry_budget="5/m")

    lease.release(at(), [running(is_limited=True)])
    failed = settlement(claim_one(), "pending", attempt_error="E", error="E", wait_ms=5)
    settle.settle(at(), [failed])

    keys = [key for _sql, steps in plans for table, key in steps if table.endswith("_state")]
    assert len(keys) >= 8
    assert set(keys) == {"flexiq_queue_state_name", "flexiq_task_state_name"}


@pytest.mark.parametrize(
    "verb",
    [
        note_progress,
        steer_a_running_job,
        cancel_with_dependents,
        settle_a_batch,
        give_back,
        promote_due,
        archive_ended,
        sweep_old,
        purge_old,
        treat_dead_letters,
        grant_an_attempt,
    ],
    ids=lambda verb: verb.__name__,
)
def test_rows_are_locked_by_their_key(plans: Plans, verb: Callable[[], None]) -> None:
    verb()

    by_id = [(sql, steps) for sql, steps in plans if _BY_ID.search(sql)]
    assert by_id
    for sql, steps in by_id:
        keys = {key for table, key in steps if table in ("j", *BIG)}
        assert keys <= {"PRIMARY"}, f"{sql}\n{steps}"
