"""Hot queries read by their index: no table is read whole, nothing is sorted, however many rows wait.

Beside the few rows each query is after stand two thousand of every kind that could get in its way:
ready at a lower priority, ready in another lane, due later, waiting for parents, running, ended, and
the same in another namespace.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flexiq_django.models import ArchivedJob, DeadLetter, Job
from flexiq_django.store import archive, claim, inspect, lease, promote, retention
from flexiq_django.store.enqueue import active_key
from flexiq_django.store.ids import new_id, new_ids
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from tests.store import plans

TRAPS = 2_000
WANTED = 30
SCOPE = Scope()
LANES = ["mail", "other", "third"]

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Committed rows: on MariaDB ANALYZE ends a transaction."""
    with django_db_blocker.unblock():
        try:
            _store_crowd()
            plans.analyze()
            yield
        finally:
            for model in (Job, ArchivedJob, DeadLetter):
                model.objects.all().delete()


def _store_crowd() -> None:
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    pending: dict[str, Any] = {"status": "pending"}
    running: dict[str, Any] = {"status": "running", "token": 1, "attempt": 1}
    ended: dict[str, Any] = {"status": "complete", "attempt": 1}
    for namespace in ("default", "elsewhere"):
        for count, fields in [
            (WANTED, {**pending, "ready_lane": "mail", "priority": 9}),
            (TRAPS, {**pending, "ready_lane": "mail"}),
            (TRAPS, {**pending, "ready_lane": "other"}),
            (WANTED, {**pending, "ready_lane": "third", "priority": 9}),
            (WANTED, {**pending, "promote_at": now - hour}),
            (TRAPS, {**pending, "promote_at": now + hour}),
            (TRAPS, pending),
            (WANTED, {**pending, "promote_at": now + hour, "expires_at": now - hour}),
            (TRAPS, {**pending, "promote_at": now + hour, "expires_at": now + hour}),
            (WANTED, {**running, "lease_at": now - hour}),
            (TRAPS, {**running, "lease_at": now + hour}),
            (WANTED, {**ended, "completed_at": now - 48 * hour, "purge_at": now - hour}),
            (TRAPS, {**ended, "completed_at": now - hour, "purge_at": now + hour}),
            (TRAPS, {**ended, "completed_at": now - hour}),
        ]:
            _store(count, namespace, now, fields)
        _store_keyed(namespace, now)
        _store_history(namespace, now, hour)


def _fields(namespace: str, now: datetime) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "queue": "mail",
        "task_name": "app.tasks.work",
        "payload": "[[],{}]",
        "max_retries": 3,
        "created_at": now,
        "updated_at": now,
        "scheduled_at": now,
    }


def _store(count: int, namespace: str, now: datetime, fields: dict[str, Any]) -> None:
    base = {**_fields(namespace, now), **fields, "queue": fields.get("ready_lane") or "mail"}
    Job.objects.bulk_create([Job(id=key, **base) for key in new_ids(count)], batch_size=500)


def _store_keyed(namespace: str, now: datetime) -> None:
    base = {**_fields(namespace, now), "status": "pending"}
    Job.objects.bulk_create(
        [
            Job(id=new_id(), unique_key=f"key-{n}", active_key=active_key(f"key-{n}"), **base)
            for n in range(TRAPS)
        ],
        batch_size=500,
    )


def _store_history(namespace: str, now: datetime, hour: timedelta) -> None:
    ended = {"status": "complete", "completed_at": now - hour, "archived_at": now}
    base = {**_fields(namespace, now), **ended}
    letter = {
        key: base[key] for key in ("namespace", "queue", "task_name", "payload", "max_retries")
    }
    for count, purge_at in ((WANTED, now - hour), (TRAPS, now + hour), (TRAPS, None)):
        ArchivedJob.objects.bulk_create(
            [ArchivedJob(id=key, purge_at=purge_at, **base) for key in new_ids(count)],
            batch_size=500,
        )
        DeadLetter.objects.bulk_create(
            [
                DeadLetter(
                    id=key, original_job_id=new_id(), retry_count=3, failed_at=now,
                    purge_at=purge_at, **letter,
                )
                for key in new_ids(count)
            ],
            batch_size=500,
        )  # fmt: skip


# --- what is asked --------------------------------------------------------------------------------


def take_one_lane() -> None:
    """Claim from one lane."""
    assert len(_claim(["mail"])) == 10


def take_many_lanes() -> None:
    """Claim the best of several lanes."""
    assert len(_claim(LANES)) == 10


def find_lanes() -> None:
    """Which lanes have jobs."""
    assert claim.discover_lanes(SCOPE, queues=None, deployment_id=None) == LANES


def promote_due() -> None:
    """Probe for due jobs, make them ready, probe again."""
    assert promote.promote_due(SCOPE)[0] == WANTED


def find_lost() -> None:
    """The reaper's pick."""
    assert len(lease.expired(open_database(SCOPE), 10)) == 10


def archive_ended() -> None:
    """Pick, copy and delete what ended long ago."""
    assert archive.archive_batch(SCOPE, older_than_ms=86_400_000) == WANTED


def look_up_key() -> None:
    """Who holds a unique key."""
    holder = open_database(SCOPE).active_holder(active_key("key-77"))
    assert holder == Job.objects.get(namespace="default", unique_key="key-77").pk


def cancel_expired() -> None:
    """Pending jobs that are too late to start."""
    assert len(promote.cancel_expired(SCOPE, limit=10)) == 10


def list_newest() -> None:
    """A page of jobs."""
    found = inspect.list_jobs(
        SCOPE, status=None, queue=None, task_name=None, limit=20, offset=0, everywhere=False
    )
    assert len(found) == 20


def purge_outlived() -> None:
    """Jobs, archived jobs and dead letters whose own time is over."""
    assert retention.purge_outlived(SCOPE) == 3 * WANTED


def _claim(lanes: list[str]) -> list[Any]:
    return claim.claim(SCOPE, lanes=lanes, limit=10, worker_id="plan", lease_ms=60_000)


# For each: the index (SQLite's and PostgreSQL's word for the primary key differ), the sorts that are
# allowed by database, and the most rows MariaDB may read.
CASES: list[tuple[Callable[[], None], set[str], dict[str, int], int]] = [
    (take_one_lane, {"flexiq_jobs_claim"}, {}, 120),
    # SQLite merges an IN list; PostgreSQL sorts the heads of the lanes, ten of each.
    (take_many_lanes, {"flexiq_jobs_claim"}, {"sqlite": 1, "postgresql": 1}, 300),
    (find_lanes, {"flexiq_jobs_claim"}, {}, 40),
    (promote_due, {"flexiq_jobs_promote"}, {}, 400),
    (find_lost, {"flexiq_jobs_lease"}, {}, 200),
    (archive_ended, {"flexiq_jobs_ended"}, {}, 900),
    (look_up_key, {"flexiq_jobs_active_key"}, {}, 20),
    (cancel_expired, {"flexiq_jobs_expires"}, {}, 300),
    (list_newest, set(), {}, 120),
    (
        purge_outlived,
        {"flexiq_jobs_purge", "flexiq_archived_purge", "flexiq_dead_purge"},
        {},
        1_200,
    ),
]
NAMES = [case[0].__name__ for case in CASES]


@pytest.mark.parametrize(("verb", "indexes", "sorts", "most"), CASES, ids=NAMES)
def test_reads_by_its_index(
    vendor: str,
    verb: Callable[[], None],
    indexes: set[str],
    sorts: dict[str, int],
    most: int,
) -> None:
    statements = plans.record(verb)
    assert statements
    if vendor == "mysql":
        read = sum(statement.rows_read for statement in statements)
        assert read <= most, [(each.sql, each.rows_read) for each in statements]
        return
    used: set[str] = set()
    for statement in statements:
        plan = plans.explain(statement)
        assert not plan.scans, f"{statement.sql}\n{plan.text}"
        assert plan.sorts <= sorts.get(vendor, 0), f"{statement.sql}\n{plan.text}"
        used |= plan.indexes
    assert indexes <= used, used
