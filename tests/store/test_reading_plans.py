"""Listings, counts, figures and graphs read by their index, whatever else is stored."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

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
    backlog,
    browse,
    figures,
    graph,
    inspect,
    listing,
    logs,
)
from flexiq_django.store.ids import new_id, new_ids
from tests.store import crowd
from tests.store.crowd import HOUR, NAMESPACES, SCOPE, TRAPS, WANTED
from tests.store.plans import Case, assert_reads_by_index

LANES = ["mail", "other", "third"]
#: What the questions ask about.
SEEN: dict[str, Any] = {}

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def stored_crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    models = (Job, ArchivedJob, DeadLetter, JobDependency, TaskLog, TaskMetric)
    yield from crowd.stored(django_db_blocker, _store_crowd, *models)


def _store_crowd() -> None:
    now = datetime.now(UTC)
    for namespace, share in NAMESPACES:
        crowd.store_crowd(namespace, share, now)
        ended = {**crowd.job_fields(namespace, now), "attempt": 1, "completed_at": now - HOUR}
        crowd.store(Job, WANTED // share, {**ended, "status": "dead"})
        crowd.store(Job, TRAPS // share, {**ended, "status": "complete"})
        _store_history(namespace, now, share)
    _look_around()


def _look_around() -> None:
    own = Job.objects.filter(namespace=SCOPE.namespace).order_by("-id")
    keys = list(own.values_list("id", flat=True))
    logged = TaskLog.objects.latest("id").job_id
    SEEN.update(jobs=len(keys), newest=keys[0], middle=keys[len(keys) // 2], logged=logged)


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


FAILED = frozenset({JobStatus.DEAD, JobStatus.FAILED})
BY_ATTEMPT = browse.Order(("attempt",), lambda attempt: attempt)


def browse_newest() -> None:
    """A page by number, far from the first."""
    assert len(browse.browse(SCOPE, None, limit=20, offset=100)) == 20


def browse_failed() -> None:
    """A page of those that failed, in the words of the HTTP surface."""
    assert len(browse.browse(SCOPE, FAILED, limit=20)) == 20


def browse_failed_by_attempt() -> None:
    """The same in an order that has no index."""
    assert len(browse.browse(SCOPE, FAILED, order=BY_ATTEMPT, limit=20)) == 20


def browse_backlog() -> None:
    """A page of the dead letters as jobs, newest job first."""
    assert len(backlog.pages(SCOPE, limit=20, offset=20)) == 20


def browse_by_attempt() -> None:
    """All jobs in such an order: the newest are read, and no others."""
    with patch.object(browse, "REACH", 100):
        assert len(browse.browse(SCOPE, None, order=BY_ATTEMPT, limit=20)) == 20


def count_failed() -> None:
    """How many failed."""
    assert sum(figures.by_status(SCOPE, FAILED).values()) == WANTED


def count_queued() -> None:
    """How many wait, in whatever way."""
    found = figures.by_status(SCOPE, [JobStatus.PENDING, JobStatus.PAUSED])
    assert sum(found.values()) == figures.stats(SCOPE)["pending"]


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


def count_live() -> None:
    """Jobs that have not ended, by queue."""
    counts = figures.live_by_queue(SCOPE).values()
    assert sum(each.running for each in counts) == figures.by_status(
        SCOPE, [JobStatus.RUNNING]
    ).get("running")


def find_span() -> None:
    """How far back some executions reach."""
    since = figures.since_when(SCOPE, longest=timedelta(days=1), most=10)
    assert since > inspect.read_clock(SCOPE) - timedelta(hours=1)


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
    """What a job published, and what it published since."""
    first = logs.published(SCOPE, SEEN["logged"], after=None, since=None, limit=20)
    assert len(first) == 1
    assert not logs.published(SCOPE, SEEN["logged"], after=first[0], since=None, limit=20)


def find_connected() -> None:
    """The jobs that others are connected to."""
    assert len(graph.component(SCOPE, SEEN["newest"], most_jobs=100).jobs) == 1


def find_the_longest_ready() -> None:
    """How many wait in each lane, and since when."""
    with patch.object(inspect, "LATE", -HOUR):
        found = inspect.ready_lanes(SCOPE)
    assert [each.name for each in found] == LANES
    assert sum(each.jobs for each in found) == 2 * (TRAPS + WANTED)


def _an_hour_ago() -> datetime:
    return inspect.read_clock(SCOPE) - timedelta(hours=1)


#: One sort where a database counts them: of what was found, which is little.
ONE = {"sqlite": 1, "postgresql": 1}

CASES = [
    Case(verb=list_newest, indexes=(), by_key=True, most=60),
    Case(verb=list_from_the_middle, indexes=(), by_key=True, most=60),
    Case(verb=list_every_namespace, indexes=(), by_key=True, most=60),
    Case(verb=list_dead, indexes=("flexiq_jobs_bad_end",), most=100),
    # Few running jobs are sorted, many are met soon on a walk by key: the database chooses.
    Case(verb=list_running, indexes=(), sorts=ONE, most=6 * TRAPS),
    Case(verb=list_pending, indexes=(), by_key=True, most=2 * TRAPS),
    Case(verb=browse_newest, indexes=(), by_key=True, most=200),
    Case(verb=browse_failed, indexes=("flexiq_jobs_bad_end",), most=150),
    Case(verb=browse_failed_by_attempt, indexes=("flexiq_jobs_bad_end",), most=150),
    # By flexiq_dead_age, or where few letters are those of others by flexiq_dead_job; unsorted.
    Case(verb=browse_backlog, indexes=(), most=150),
    Case(verb=browse_by_attempt, indexes=(), by_key=True, most=300),
    Case(verb=count_failed, indexes=("flexiq_jobs_idle",), sorts=ONE, most=100),
    Case(
        verb=count_queued,
        indexes=("flexiq_jobs_idle", "flexiq_jobs_claim", "flexiq_jobs_promote"),
        sorts={"sqlite": 9, "postgresql": 9},
        most=25 * TRAPS,
    ),
    Case(verb=list_archived, indexes=("flexiq_archived_ended",), most=100),
    Case(verb=list_dead_letters, indexes=("flexiq_dead_failed",), most=100),
    Case(
        verb=count_live,
        indexes=(
            "flexiq_jobs_idle",
            "flexiq_jobs_claim",
            "flexiq_jobs_promote",
            "flexiq_jobs_lease",
        ),
        sorts={"sqlite": 9, "postgresql": 9},
        most=16 * TRAPS,
    ),
    Case(verb=find_span, indexes=("flexiq_metrics_recorded",), most=30),
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
        most=16 * TRAPS,
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
    # Lines of the same moment by id.
    Case(verb=read_log_of_an_hour, indexes=("flexiq_logs_logged",), sorts=ONE, most=100),
    Case(verb=follow_a_job, indexes=("flexiq_logs_job",), most=60),
    # Each ready job twice, in the index alone, and the first hundreds of each lane by their key.
    Case(verb=find_the_longest_ready, indexes=("flexiq_jobs_claim",), sorts=ONE, most=6 * TRAPS),
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
