"""Listings, counts, figures and graphs read by their index, whatever else is stored."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any

import pytest
from django.db.models import Model

from flexiq_django.core.status import JobStatus
from flexiq_django.models import (
    ArchivedJob,
    DeadLetter,
    Job,
    JobDependency,
    TaskLog,
    TaskMetric,
)
from flexiq_django.store import (
    figures,
    graph,
    inspect,
    listing,
    logs,
)
from flexiq_django.store.enqueue import active_key
from flexiq_django.store.ids import new_id, new_ids
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from tests.store import plans
from tests.store.plans import Case, assert_reads_by_index

TRAPS = 2_000
WANTED = 30
SCOPE = Scope()
LANES = ["mail", "other", "third"]
#: What the questions ask about.
SEEN: dict[str, Any] = {}

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Committed rows: on MariaDB ANALYZE ends a transaction."""
    with django_db_blocker.unblock():
        try:
            _store_crowd()
            _look_around()
            plans.analyze()
            yield
        finally:
            for model in (Job, ArchivedJob, DeadLetter, JobDependency, TaskLog, TaskMetric):
                model.objects.all().delete()


def _store_crowd() -> None:
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    pending: dict[str, Any] = {"status": "pending"}
    running: dict[str, Any] = {"status": "running", "token": 1, "attempt": 1}
    ended: dict[str, Any] = {"status": "complete", "attempt": 1}
    # The namespace under test comes last: its jobs are the newest.
    for namespace, share in (("elsewhere", 5), ("default", 1)):
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
            (WANTED, {**ended, "status": "dead", "completed_at": now - hour}),
            (TRAPS, {**ended, "completed_at": now - hour}),
        ]:
            _store(Job, count // share, {**_job(namespace, now), **fields})
        keys = [{"active_key": active_key(f"key-{number}")} for number in range(TRAPS // share)]
        _store(Job, len(keys), {**_job(namespace, now), **pending}, keys)
        # PostgreSQL reads a table of a few pages whole, and is right to.
        for count, purge_at in ((WANTED, now - hour), (TRAPS, now + hour), (8 * TRAPS, None)):
            kept = {"status": "complete", "completed_at": now - hour, "archived_at": now}
            history = {"purge_at": purge_at} if purge_at else {}
            _store(ArchivedJob, count // share, {**_job(namespace, now), **kept, **history})
            _store(DeadLetter, count // share, {**_letter(namespace, now), **history})
        _store_history(namespace, now, share)


def _look_around() -> None:
    own = Job.objects.filter(namespace=SCOPE.namespace).order_by("-id")
    keys = list(own.values_list("id", flat=True))
    logged = TaskLog.objects.latest("id").job_id
    SEEN.update(jobs=len(keys), newest=keys[0], middle=keys[len(keys) // 2], logged=logged)


def _job(namespace: str, now: datetime) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "queue": "mail",
        "task_name": "app.tasks.work",
        "status": "pending",
        "priority": 0,
        "payload": "[[],{}]",
        "created_at": now,
        "scheduled_at": now,
        "updated_at": now,
        "attempt": 0,
        "retry_count": 0,
        "max_retries": 3,
        "origin": "task",
    }


def _letter(namespace: str, now: datetime) -> dict[str, Any]:
    taken = ("namespace", "queue", "task_name", "payload", "priority", "retry_count", "max_retries")
    job = _job(namespace, now)
    own = {"original_job_id": None, "failed_at": now, "dlq_retry_count": 0}
    return {**{name: job[name] for name in taken}, **own}


def _store_history(namespace: str, now: datetime, share: int) -> None:
    """Metrics, log lines and edges; the last hour is little beside the days before."""
    common = {"namespace": namespace, "task_name": "app.tasks.work"}
    for count, moment in ((WANTED, now), (4 * TRAPS, now - timedelta(hours=48))):
        keys = new_ids(count // share)
        TaskMetric.objects.bulk_create(
            TaskMetric(**common, job_id=key, duration_ms=5, succeeded=True, recorded_at=moment)
            for key in keys
        )
        TaskLog.objects.bulk_create(
            TaskLog(**common, id=key, job_id=key, level="result", extra="1", logged_at=moment)
            for key in keys
        )
        JobDependency.objects.bulk_create(
            JobDependency(namespace=namespace, job_id=key, parent_id=new_id(), is_open=True)
            for key in keys
        )


def _store(
    model: type[Model],
    count: int,
    fields: dict[str, Any],
    own: Sequence[dict[str, Any]] = (),
) -> None:
    """Rows alike but for their ids and what is their ``own``, in one statement."""
    database = open_database(SCOPE)
    columns = {"id": "id", **dict.fromkeys(own[0] if own else (), "text")}
    values = {name: f"b.{name}" for name in columns}
    values.update((name, "b.id" if name == "original_job_id" else f"%({name})s") for name in fields)
    keys = [{"id": database.id_text(key)} for key in new_ids(count)]
    batch = json.dumps([{**key, **more} for key, more in zip_longest(keys, own, fillvalue={})])
    params = {
        name: database.moment(value) if isinstance(value, datetime) else value
        for name, value in fields.items()
    }
    database.change(
        f"INSERT INTO {model._meta.db_table} ({', '.join(values)})"
        f" SELECT {', '.join(values.values())} FROM {database.rows_from_json('batch', columns)}",
        {**params, "batch": batch},
    )


# --- what is asked --------------------------------------------------------------------------------


def list_newest() -> None:
    """A page of jobs."""
    assert len(listing.list_jobs(SCOPE, listing.JobFilter(), limit=20)) == 20


def list_from_the_middle() -> None:
    """The page after a job in the middle."""
    found = listing.list_jobs(SCOPE, listing.JobFilter(), limit=20, after=SEEN["middle"])
    assert len(found) == 20


def list_every_namespace() -> None:
    """A page of jobs of whatever namespace."""
    found = listing.list_jobs(SCOPE, listing.JobFilter(), limit=20, everywhere=True)
    assert len(found) == 20


def list_dead() -> None:
    """A page of dead jobs, and the one after it."""
    wanted = listing.JobFilter(status=JobStatus.DEAD)
    first = listing.list_jobs(SCOPE, wanted, limit=20)
    assert len(listing.list_jobs(SCOPE, wanted, limit=20, after=first[-1].id)) == 10


def list_running() -> None:
    """A page of running jobs."""
    wanted = listing.JobFilter(status=JobStatus.RUNNING)
    assert len(listing.list_jobs(SCOPE, wanted, limit=20)) == 20


def list_pending() -> None:
    """A page of pending jobs."""
    wanted = listing.JobFilter(status=JobStatus.PENDING)
    assert len(listing.list_jobs(SCOPE, wanted, limit=20)) == 20


def list_archived() -> None:
    """A page of the archive, and the one after it; thousands ended at the same moment."""
    first = listing.list_archived(SCOPE, limit=20)[-1]
    assert first.completed_at is not None
    place = listing.Place(first.completed_at, first.id)
    assert len(listing.list_archived(SCOPE, limit=20, after=place)) == 20


def list_dead_letters() -> None:
    """A page of dead letters, and the one after it."""
    first = listing.dead_letters(SCOPE, limit=20)[-1]
    place = listing.Place(first["failed_at"], first["id"])
    assert len(listing.dead_letters(SCOPE, limit=20, after=place)) == 20


def count_jobs() -> None:
    """How many jobs stand where."""
    counts = figures.stats(SCOPE)
    assert counts["dead"] == WANTED
    assert sum(counts.values()) == SEEN["jobs"]


def measure_an_hour() -> None:
    """Figures of the executions of an hour."""
    (found,) = figures.by_task(SCOPE, since=_an_hour_ago(), task_name=None)
    assert found.total == WANTED


def measure_an_hour_in_buckets() -> None:
    """The same in buckets."""
    found = figures.by_bucket(SCOPE, since=_an_hour_ago(), task_name=None, bucket_ms=60_000)
    assert sum(each.total for each in found) == WANTED


def read_log_of_an_hour() -> None:
    """The last log lines."""
    found = logs.latest(SCOPE, since=_an_hour_ago(), task_name=None, level=None, limit=20)
    assert len(found) == 20


def follow_a_job() -> None:
    """What a job published."""
    assert len(logs.published(SCOPE, SEEN["logged"], after=None, since=None, limit=20)) == 1


def find_connected() -> None:
    """The jobs that others are connected to."""
    assert len(graph.component(SCOPE, SEEN["newest"], most_jobs=100).jobs) == 1


def _an_hour_ago() -> datetime:
    return inspect.read_clock(SCOPE) - timedelta(hours=1)


CASES = [
    Case(verb=list_newest, indexes=(), by_key=True, most=60),
    Case(verb=list_from_the_middle, indexes=(), by_key=True, most=60),
    Case(verb=list_every_namespace, indexes=(), by_key=True, most=60),
    Case(verb=list_dead, indexes=("flexiq_jobs_bad_end",), most=100),
    Case(
        verb=list_running,
        # Few running jobs are sorted, many are met soon on a walk by key: the database chooses.
        indexes=(),
        sorts={"sqlite": 1, "postgresql": 1},
        most=6 * TRAPS,
    ),
    Case(verb=list_pending, indexes=(), by_key=True, most=2 * TRAPS),
    Case(verb=list_archived, indexes=("flexiq_archived_ended",), most=100),
    Case(verb=list_dead_letters, indexes=("flexiq_dead_failed",), most=100),
    Case(
        verb=count_jobs,
        indexes=(
            "flexiq_jobs_idle",
            "flexiq_jobs_claim",
            "flexiq_jobs_promote",
            "flexiq_jobs_lease",
        ),
        # Groups; none of jobs.
        sorts={"sqlite": 9, "postgresql": 9},
        # Each job once.
        most=14 * TRAPS,
    ),
    Case(
        verb=measure_an_hour,
        indexes=("flexiq_metrics_recorded",),
        sorts={"sqlite": 9, "postgresql": 9},
        most=20 * WANTED,
    ),
    Case(
        verb=measure_an_hour_in_buckets,
        indexes=("flexiq_metrics_recorded",),
        sorts={"sqlite": 9, "postgresql": 9},
        most=20 * WANTED,
    ),
    Case(
        verb=read_log_of_an_hour,
        indexes=("flexiq_logs_logged",),
        # Lines of the same moment by id.
        sorts={"sqlite": 1, "postgresql": 1},
        most=100,
    ),
    Case(
        verb=follow_a_job,
        indexes=("flexiq_logs_job",),
        sorts={"sqlite": 1, "postgresql": 1},
        most=60,
    ),
    Case(
        verb=find_connected,
        # Upwards by the unique constraint, whose index is called differently everywhere.
        indexes=("flexiq_deps_parent",),
        sorts={"sqlite": 2, "postgresql": 2},
        most=60,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.verb.__name__)
def test_reads_by_its_index(vendor: str, case: Case) -> None:
    assert_reads_by_index(vendor, case)
