"""Hot queries read by their index: nothing is read whole, nothing is sorted, whatever else waits.

Beside the few rows each query is after stand two thousand of every kind that could get in its way:
ready at a lower priority, ready in another lane, due later, waiting for parents, running, ended;
and some of each in another namespace.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models import Model

from flexiq_django.core.retention import TABLES
from flexiq_django.models import (
    ArchivedJob,
    DeadLetter,
    Job,
    JobDependency,
    JobError,
    ReplayHistory,
    TaskLog,
    TaskMetric,
)
from flexiq_django.store import (
    archive,
    claim,
    dead_letters,
    dependencies,
    journal,
    lease,
    operate,
    promote,
    purge,
    retention,
    revive,
    sessions,
    settle,
)
from flexiq_django.store.dead_letters import Wanted
from flexiq_django.store.ids import new_id, new_ids
from flexiq_django.store.keys import active_key
from flexiq_django.store.vendors import open_database
from tests.store import crowd, plans
from tests.store.acting import settlement
from tests.store.crowd import HOUR, NAMESPACES, SCOPE, TRAPS, WANTED
from tests.store.plans import Case, assert_reads_by_index

LANES = ["mail", "other", "third"]
#: An age, in milliseconds, that only a few rows have.
LONG_AGO_MS = 1_000 * 3_600_000

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def stored_crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    models = (Job, ArchivedJob, DeadLetter, ReplayHistory, JobDependency, *_HISTORY)
    yield from crowd.stored(django_db_blocker, _store_crowd, *models)


def _store_crowd() -> None:
    now = datetime.now(UTC)
    for namespace, share in NAMESPACES:
        crowd.store_crowd(namespace, share, now)
        for count, retry_at in ((WANTED, now - HOUR), (TRAPS, now + HOUR)):
            due = {"auto_retry_at": retry_at, "task_name": "app.tasks.due"}
            crowd.store(DeadLetter, count // share, {**crowd.letter_fields(namespace, now), **due})
        # Those that a purge is after stand behind a crowd of others that ended even earlier.
        for ago in range(2_000, 2_040):
            ended_at = now - ago * HOUR
            row = {**crowd.job_fields(namespace, now), "status": "dead", "completed_at": ended_at}
            done = {} if ago > 2_000 else {"status": "complete"}
            crowd.store(Job, 50 // share, row | done)
            crowd.store(ArchivedJob, 50 // share, row | done | {"archived_at": now})
        crowd.store(
            DeadLetter,
            WANTED // share,
            {**crowd.letter_fields(namespace, now), "failed_at": ended_at},
        )
        crowd.store(ReplayHistory, 8 * TRAPS // share, _replay(namespace, now))
        JobDependency.objects.bulk_create(
            JobDependency(namespace=namespace, job_id=key, parent_id=new_id(), is_open=False)
            for key in new_ids(4 * TRAPS // share)
        )
        parent_id = Job.objects.filter(namespace=namespace, lease_at__isnull=False).first().id
        JobDependency.objects.bulk_create(
            JobDependency(namespace=namespace, job_id=key, parent_id=parent_id, is_open=True)
            for key in new_ids(20)
        )
        for model, fields in _HISTORY.items():
            at = {name: now - HOUR if value is None else value for name, value in fields.items()}
            crowd.store(model, 4 * TRAPS // share, {"namespace": namespace, "job_id": None, **at})


#: Columns of what is written once; the time of each is filled in.
_HISTORY: dict[type[Model], dict[str, Any]] = {
    JobError: {"attempt": 0, "error": "ValueError", "failed_at": None},
    TaskLog: {"task_name": "app.work", "level": "info", "message": "a line", "logged_at": None},
    TaskMetric: {"task_name": "app.work", "duration_ms": 5, "succeeded": True, "recorded_at": None},
}


def _replay(namespace: str, now: datetime) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "original_job_id": None,
        "replay_job_id": None,
        "replayed_at": now,
    }


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


def hand_a_line_on() -> None:
    """Cancel the holder of a long line: the next one goes."""
    (holder,) = Job.objects.filter(namespace="default", session_slot="visit").values_list("id")
    assert operate.cancel(SCOPE, holder[0]) == [holder[0]]
    assert sessions.look(SCOPE, ["visit"]) == 0


def sweep_lines() -> None:
    """The net under the looks passes over a line that is longer than a batch."""
    assert sessions.sweep(SCOPE, "session 0440", limit=50) == ("session 0490", 0)
    assert sessions.sweep(SCOPE, "session 0490", limit=50) == ("visit", 0)
    assert sessions.sweep(SCOPE, "visit", limit=50) == ("", 0)


def sweep_edges() -> None:
    """Open edges of a namespace, behind many that are closed."""
    assert dependencies.sweep_ended(SCOPE, 0, limit=WANTED) == (0, ([], 0, 0))


def find_lost() -> None:
    """The reaper's pick."""
    assert len(lease.expired(open_database(SCOPE), 10)) == 10


def archive_ended() -> None:
    """Pick, copy and delete what ended long ago."""
    assert archive.archive_batch(SCOPE, older_than_ms=86_400_000, limit=WANTED) == WANTED


def look_up_key() -> None:
    """Who holds a unique key."""
    assert open_database(SCOPE).active_holder(active_key("key-77")) is not None


def cancel_expired() -> None:
    """Pending jobs that are too late to start."""
    assert len(promote.cancel_expired(SCOPE, limit=10).cancelled) == 10


def sweep_outlived() -> None:
    """Jobs, archived jobs and dead letters whose own time is over."""
    assert _sweep(retention.sweeps({})) == 3 * WANTED


def sweep_aged() -> None:
    """A batch of what is older than its window, beside rows with a time of their own."""
    windows = dict.fromkeys(TABLES, 0)
    aged = [each for each in retention.sweeps(windows) if each.window_ms is not None]
    assert _sweep(aged, limit=WANTED) == 6 * WANTED


def _sweep(sweeps: list[retention.Sweep], limit: int | None = None) -> int:
    return sum(retention.sweep_batch(SCOPE, each, limit=limit).removed for each in sweeps)


def purge_completed() -> None:
    """Completed jobs, live and archived, behind many that are older and stay."""
    assert sum(purge.purge_completed(SCOPE, older_than_ms=LONG_AGO_MS, limit=100)) == 100


def purge_dead() -> None:
    """Old dead letters and their jobs."""
    assert sum(purge.purge_dead(SCOPE, older_than_ms=LONG_AGO_MS)) == WANTED


def list_dead() -> None:
    """A page of dead letters, and the next."""
    assert len(list(dead_letters.newest(SCOPE, Wanted(), limit=20, size=10))) == 20


def walk_dead() -> None:
    """The two oldest lists of dead letters."""
    walk = dead_letters.oldest_ids(SCOPE, Wanted(), size=10)
    assert [len(next(walk)), len(next(walk))] == [10, 10]


def retry_due() -> None:
    """Dead letters that are to be retried by themselves."""
    due = revive.due_letters(SCOPE, limit=10)
    assert len(revive.retry_due(SCOPE, due, most=3, limited={}).jobs) == 10


def replay_and_cancel() -> None:
    """A copy of a job, and its bad end."""
    job_id = open_database(SCOPE).active_holder(active_key("key-77"))
    copy = job_id and revive.replay(SCOPE, job_id, limited={})
    assert copy
    assert operate.cancel(SCOPE, copy.id) == [copy.id]


def look_after_claimed() -> None:
    """Renew the leases of ten jobs, look whether they are to stop, give five back, settle five."""
    jobs = _claim(["mail"])
    held = [(job.id, job.token) for job in jobs]
    assert len(lease.renew(SCOPE, held, lease_ms=60_000).owned) == 10
    assert len(journal.look(SCOPE, held)) == 10
    assert len(lease.release(SCOPE, jobs[:5])) == 5
    assert len(settle.settle(SCOPE, [settlement(job) for job in jobs[5:]]).settled) == 5


def _claim(lanes: list[str]) -> list[Any]:
    return claim.claim(SCOPE, lanes=lanes, limit=10, worker_id="plan", lease_ms=60_000).jobs


CASES = [
    Case(verb=take_one_lane, indexes=("flexiq_jobs_claim",), most=60),
    Case(
        verb=take_many_lanes,
        indexes=("flexiq_jobs_claim",),
        # SQLite merges an IN list; PostgreSQL sorts the heads of the lanes, ten of each.
        sorts={"sqlite": 1, "postgresql": 1},
        most=200,
    ),
    Case(verb=find_lanes, indexes=("flexiq_jobs_claim",), most=40),
    Case(verb=promote_due, indexes=("flexiq_jobs_promote",), most=200),
    Case(
        verb=hand_a_line_on,
        indexes=("flexiq_jobs_line", "flexiq_jobs_session_slot"),
        most=60,
    ),
    Case(
        verb=sweep_lines,
        indexes=("flexiq_jobs_line", "flexiq_jobs_session_slot"),
        sorts={"sqlite": 1},  # of the batch
        most=600,
    ),
    Case(verb=sweep_edges, indexes=("flexiq_deps_open",), most=200),
    Case(verb=find_lost, indexes=("flexiq_jobs_lease",), most=100),
    Case(
        verb=archive_ended,
        indexes=("flexiq_jobs_ended",),
        # Within one moment the ids are sorted where the index does not hold them.
        sorts={"sqlite": 1, "postgresql": 1},
        most=500,
    ),
    Case(verb=look_up_key, indexes=("flexiq_jobs_active_key",), most=10),
    Case(verb=cancel_expired, indexes=("flexiq_jobs_expires",), most=200),
    Case(verb=look_after_claimed, indexes=("flexiq_jobs_claim",), most=500),
    Case(
        verb=sweep_outlived,
        indexes=("flexiq_jobs_purge", "flexiq_archived_purge", "flexiq_dead_purge"),
        most=1_000,
    ),
    Case(
        verb=purge_completed,
        indexes=("flexiq_jobs_ended", "flexiq_archived_ended"),
        sorts={"sqlite": 1, "postgresql": 1},  # as above
        most=20_000,
    ),
    Case(verb=purge_dead, indexes=("flexiq_dead_failed",), most=1_000),
    Case(verb=list_dead, indexes=("flexiq_dead_failed",), most=60),
    Case(verb=walk_dead, indexes=("flexiq_dead_failed",), most=100),
    Case(verb=retry_due, indexes=("flexiq_dead_auto_retry",), most=200),
    Case(verb=replay_and_cancel, indexes=("flexiq_replays_replay",), most=60),
    Case(
        verb=sweep_aged,
        indexes=(
            "flexiq_jobs_ended",
            "flexiq_archived_purge",
            "flexiq_dead_failed",
            "flexiq_errors_failed",
            "flexiq_logs_logged",
            "flexiq_metrics_recorded",
        ),
        # Within one moment the ids of jobs are sorted.
        sorts={"sqlite": 1, "postgresql": 1},
        # Jobs and dead letters with a time of their own lie in between, and are passed over.
        most=7_000,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.verb.__name__)
def test_reads_by_its_index(vendor: str, case: Case) -> None:
    assert_reads_by_index(vendor, case)


@pytest.mark.parametrize("verb", [take_one_lane, take_many_lanes], ids=lambda verb: verb.__name__)
def test_a_prepared_claim_reads_by_its_index(vendor: str, verb: Callable[[], None]) -> None:
    if vendor != "postgresql":
        pytest.skip("only PostgreSQL plans a prepared statement without its parameters")
    for statement in plans.record(verb):
        plan = plans.explain(statement, generic=True)
        assert not plan.scans, plan.text
        assert "flexiq_jobs_claim" in plan.indexes, plan.text
