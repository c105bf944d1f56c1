"""Sweeps delete what is older than its window, or past a lifetime of its own, and nothing else."""

import threading
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from flexiq_django.core.retention import TABLES
from flexiq_django.core.status import TERMINAL
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
from flexiq_django.store import dependencies
from flexiq_django.store.grant import grant
from flexiq_django.store.retention import CHILDREN, Sweep, count, sweep_batch, sweeps
from flexiq_django.store.scope import Scope
from flexiq_django.store.settle import settle
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import (
    NOW,
    ArchivedJobFactory,
    DeadLetterFactory,
    JobDependencyFactory,
    JobErrorFactory,
    JobFactory,
    ReplayHistoryFactory,
    TaskLogFactory,
    TaskMetricFactory,
    at,
    later,
)
from tests.store.acting import claim_one, enqueue_one, settlement, stored
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db

CHILD_MODELS = (JobError, TaskLog, TaskMetric, JobDependency, ReplayHistory)
OFF: dict[str, int | None] = dict.fromkeys(TABLES)
TEN = dict.fromkeys(TABLES, 10_000)

#: By window: what makes a row that stands at a moment.
AGED: list[tuple[str, Any]] = [
    ("archived_jobs", lambda moment: JobFactory(ended=True, completed_at=moment)),
    ("archived_jobs", lambda moment: ArchivedJobFactory(completed_at=moment)),
    ("dead_letter", lambda moment: DeadLetterFactory(failed_at=moment)),
    ("task_logs", lambda moment: TaskLogFactory(logged_at=moment)),
    ("task_metrics", lambda moment: TaskMetricFactory(recorded_at=moment)),
    ("job_errors", lambda moment: JobErrorFactory(failed_at=moment)),
]
IDS = ["jobs", "archive", "dead letters", "logs", "metrics", "errors"]


def sweep(
    scope: Scope, windows: Mapping[str, int | None] = OFF, limit: int | None = None
) -> dict[str, int]:
    """Sweep to the end; how many rows went, by window."""
    removed = dict.fromkeys(TABLES, 0)
    for each in sweeps(windows):
        after = None
        while True:
            swept = sweep_batch(scope, each, after=after, limit=limit)
            removed[each.name] += swept.removed
            after = swept.after
            if after is None:
                break
    return removed


def batch(scope: Scope, limit: int) -> int:
    """One batch of each table for rows past a lifetime of their own."""
    return sum(sweep_batch(scope, each, limit=limit).removed for each in sweeps(OFF))


def with_children(job_id: UUID) -> None:
    JobErrorFactory(job_id=job_id)
    TaskLogFactory(job_id=job_id)
    TaskMetricFactory(job_id=job_id)
    JobDependencyFactory(job_id=job_id, is_open=False)
    JobDependencyFactory(parent_id=job_id, is_open=False)
    ReplayHistoryFactory(original_job_id=job_id)


def child_counts() -> list[int]:
    return [model.objects.count() for model in CHILD_MODELS]


# --- windows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "make"), AGED, ids=IDS)
def test_only_what_is_older_than_its_window(window: str, make: Any) -> None:
    model = type(make(NOW))
    make(later(0.001))
    make(later(-100))

    assert count(at(10), {**OFF, window: 10_000})[1][window] == 1
    assert sweep(at(10), {**OFF, window: 10_000}) == {**dict.fromkeys(TABLES, 0), window: 1}
    assert model.objects.count() == 2  # strictly older: what is as old as the window stays
    assert sweep(at(10.0005), {**OFF, window: 10_000})[window] <= 1
    assert sweep(at(10.002), {**OFF, window: 10_000})[window] >= 1
    assert model.objects.count() == 0


@pytest.mark.parametrize(("window", "make"), AGED, ids=IDS)
def test_a_table_without_a_window_is_kept(window: str, make: Any) -> None:
    make(NOW)

    assert sweep(at(10**8), {**TEN, window: None})[window] == 0
    assert count(at(10**8), {**TEN, window: None})[1][window] == 0


def test_a_window_of_zero_deletes_whatever_has_ended() -> None:
    for _, make in AGED:
        make(NOW)

    assert sum(sweep(at(1), dict.fromkeys(TABLES, 0)).values()) == 6


@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_jobs_go_however_they_ended(factory: Any, status: str) -> None:
    factory(status=status, **({"ended": True} if factory is JobFactory else {}))

    assert sweep(at(11), TEN)["archived_jobs"] == 1


def test_jobs_that_have_not_ended_stay() -> None:
    for state in ({}, {"scheduled": True}, {"waiting": True}, {"running": True}):
        JobFactory(**state)
    JobFactory(waiting=True, status="paused")
    JobFactory(waiting=True, status="paused", purge_at=NOW)

    assert sum(sweep(at(10**8), dict.fromkeys(TABLES, 0)).values()) == 0
    assert sum(count(at(10**8), dict.fromkeys(TABLES, 0))[1].values()) == 0


@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_by_its_window_a_job_takes_only_its_edges_and_replays(factory: Any) -> None:
    old = factory(**({"ended": True} if factory is JobFactory else {}))
    with_children(old.id)

    assert sweep(at(11), {**OFF, "archived_jobs": 10_000})["archived_jobs"] == 1
    assert child_counts() == [1, 1, 1, 0, 0]


def test_a_dead_letter_outlives_its_job() -> None:
    job = JobFactory(ended=True, status="dead")
    DeadLetterFactory(original_job_id=job.id)

    sweep(at(11), {**OFF, "archived_jobs": 10_000})

    assert (Job.objects.count(), DeadLetter.objects.count()) == (0, 1)


@pytest.mark.parametrize(
    ("window", "make"),
    [
        ("archived_jobs", lambda **own: JobFactory(ended=True, **own)),
        ("archived_jobs", ArchivedJobFactory),
        ("dead_letter", DeadLetterFactory),
    ],
    ids=["jobs", "archive", "dead letters"],
)
def test_a_lifetime_of_its_own_counts_instead_of_the_window(window: str, make: Any) -> None:
    longer = make(purge_at=later(1_000))
    make(purge_at=later(2))
    model = type(longer)

    assert count(at(3), {**OFF, window: 500_000})[1][window] == 1
    assert sweep(at(3), {**OFF, window: 500_000})[window] == 1  # earlier than the window
    assert count(at(999), TEN)[1][window] == 0
    assert sweep(at(999), TEN)[window] == 0  # later than the window
    assert model.objects.get().pk == longer.pk
    assert sweep(at(1_001), OFF)[window] == 1


def test_sweeps_and_counts_stay_in_their_namespace() -> None:
    for _, make in AGED:
        row = make(NOW)
        type(row).objects.filter(pk=row.pk).update(namespace="other")

    assert sum(sweep(at(10**8), TEN).values()) == sum(count(at(10**8), TEN)[1].values()) == 0
    assert sum(count(at(10**8, namespace="other"), TEN)[1].values()) == 6
    assert sum(sweep(at(10**8, namespace="other"), TEN).values()) == 6


def test_counting_deletes_nothing_and_says_when() -> None:
    for _, make in AGED:
        make(NOW)
    ArchivedJobFactory(purge_at=later(1))

    now, counts = count(at(11), TEN)

    assert now == later(11)
    assert counts == {**dict.fromkeys(TABLES, 1), "archived_jobs": 3}
    assert count(at(11), TEN)[1] == counts
    assert sweep(at(11), TEN) == counts


# --- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "make"), AGED, ids=IDS)
def test_the_oldest_go_first_batch_by_batch(window: str, make: Any) -> None:
    rows = [make(later(-number)) for number in range(5)]
    model = type(rows[0])
    (each,) = [
        one
        for one in sweeps({**OFF, window: 10_000})
        if one.window_ms and one.table == model._meta.db_table
    ]

    first = sweep_batch(at(11), each, limit=2)
    assert first.removed == 2
    assert first.after is not None
    assert set(model.objects.values_list("pk", flat=True)) == {row.pk for row in rows[:3]}
    second = sweep_batch(at(11), each, after=first.after, limit=2)
    third = sweep_batch(at(11), each, after=second.after, limit=2)
    assert (second.removed, third.removed) == (2, 1)
    assert sweep_batch(at(11), each, after=third.after, limit=2) == (0, None)


def test_jobs_with_a_lifetime_of_their_own_are_walked_past_batch_by_batch() -> None:
    lasting = [JobFactory(ended=True, purge_at=later(99)) for _ in range(5)]
    JobFactory(ended=True)  # of the same moment, with the largest id
    each = Sweep("archived_jobs", Job._meta.db_table, "completed_at", 10_000)

    batches = [sweep_batch(at(11), each, limit=2)]
    while batches[-1].after is not None:
        batches.append(sweep_batch(at(11), each, after=batches[-1].after, limit=2))

    assert [batch.removed for batch in batches] == [0, 0, 1, 0]
    assert set(Job.objects.values_list("id", flat=True)) == {job.id for job in lasting}


@pytest.mark.parametrize("own", [True, False], ids=["lifetime", "window"])
@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_jobs_that_somebody_holds_are_left_to_a_later_sweep(
    other_connection: OtherConnection, own: bool
) -> None:
    held, free = (JobFactory(ended=True, purge_at=NOW if own else None) for _ in range(2))

    def hold() -> None:
        transaction.set_autocommit(False)
        Job.objects.filter(id=held.id).update(progress=50)

    other_connection.run(hold)
    table = Job._meta.db_table
    each = (
        Sweep("archived_jobs", table, "purge_at")
        if own
        else Sweep("archived_jobs", table, "completed_at", 10_000)
    )

    assert sweep_batch(at(11), each, only_free=True).removed == 1
    assert not Job.objects.filter(id=free.id).exists()
    other_connection.run(transaction.rollback)
    assert sweep_batch(at(11), each, only_free=True).removed == 1


@pytest.mark.parametrize(("window", "make"), AGED, ids=IDS)
def test_any_number_of_rows_of_the_same_moment(window: str, make: Any) -> None:
    for _ in range(7):
        make(NOW)

    assert sweep(at(11), {**OFF, window: 10_000}, limit=2)[window] == 7


def test_no_more_than_the_limit_of_each_table() -> None:
    for factory, fields in [(JobFactory, {"ended": True}), (ArchivedJobFactory, {}),
                            (DeadLetterFactory, {})]:  # fmt: skip
        for number in range(3):
            factory(purge_at=later(-number), **fields)

    assert batch(at(), 2) == 6
    assert [model.objects.get().purge_at for model in (Job, ArchivedJob)] == [NOW, NOW]
    assert batch(at(), 2) == 3
    assert batch(at(), 2) == 0


# --- lifetimes of single rows ---------------------------------------------------------------------


@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_past_its_lifetime_a_job_goes_with_all_that_belongs_to_it(factory: Any) -> None:
    ended = {"ended": True} if factory is JobFactory else {}
    old = factory(purge_at=NOW, **ended)
    young = factory(purge_at=later(0.001), **ended)
    with_children(old.id)
    with_children(young.id)

    assert sweep(at())["archived_jobs"] == 1

    model = type(old)
    assert model.objects.get().id == young.id
    assert child_counts() == [1, 1, 1, 2, 1]
    assert JobError.objects.get().job_id == young.id
    assert sweep(at())["archived_jobs"] == 0


def test_the_history_of_a_replay_goes_with_its_original_only() -> None:
    copy = JobFactory(ended=True, purge_at=NOW)
    ReplayHistoryFactory(replay_job_id=copy.id)

    sweep(at())

    assert ReplayHistory.objects.count() == 1


def test_every_table_that_names_a_job_is_known() -> None:
    tables = {table for table, _ in CHILDREN}

    assert tables == {model._meta.db_table for model in CHILD_MODELS}


def test_without_a_lifetime_nothing_goes() -> None:
    JobFactory(ended=True)
    ArchivedJobFactory()
    DeadLetterFactory()

    assert sum(sweep(at(10**9)).values()) == 0


def test_dead_letters_have_their_own_lifetime() -> None:
    DeadLetterFactory(purge_at=NOW)
    young = DeadLetterFactory(purge_at=later(1))

    assert sweep(at())["dead_letter"] == 1
    assert DeadLetter.objects.get().id == young.id


def test_lifetimes_stay_in_their_namespace() -> None:
    JobFactory(ended=True, purge_at=NOW, namespace="other")
    ArchivedJobFactory(purge_at=NOW, namespace="other")
    DeadLetterFactory(purge_at=NOW, namespace="other")

    assert batch(at(), 100) == 0
    assert batch(at(namespace="other"), 100) == 3


# --- dependents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [OFF, TEN], ids=["lifetime", "window"])
@pytest.mark.parametrize("factory", [JobFactory, ArchivedJobFactory])
def test_a_dependent_that_still_waits_for_a_purged_job_moves_first(
    factory: Any, windows: Any
) -> None:
    ended: dict[str, Any] = {"ended": True} if factory is JobFactory else {}
    if windows is OFF:
        ended["purge_at"] = NOW
    fine = factory(**ended)
    dead = factory(status="dead", **ended)
    released, doomed = JobFactory(waiting=True), JobFactory(waiting=True)
    JobDependencyFactory(job_id=released.id, parent_id=fine.id)
    JobDependencyFactory(job_id=doomed.id, parent_id=dead.id)

    assert sweep(at(11), windows)["archived_jobs"] == 2

    assert stored(released.id).ready_lane == "default"
    assert stored(doomed.id).error == f"dependency failed: {dead.id}"
    assert JobDependency.objects.count() == 0


# --- two at once ----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_two_that_sweep_at_once_delete_each_row_once() -> None:
    for _ in range(40):
        JobFactory(ended=True)
        DeadLetterFactory()
        TaskMetricFactory()
    work = [each for each in sweeps(TEN) if each.window_ms]

    def act() -> int:
        return sum(sweep_batch(at(11), each).removed for each in work)

    removed = run_in_threads([act] * 2)

    assert sum(removed) == 120
    assert Job.objects.count() + DeadLetter.objects.count() + TaskMetric.objects.count() == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_dependent_that_is_committed_while_its_parent_is_purged_moves(
    other_connection: OtherConnection,
) -> None:
    parent = enqueue_one()

    def enqueue_child() -> UUID:
        transaction.set_autocommit(False)
        with transaction.atomic():
            return enqueue_one(parents=(parent,))

    def commit() -> None:
        transaction.commit()
        transaction.set_autocommit(True)
        dependencies.recheck(at(11), [parent])

    child = other_connection.run(enqueue_child)
    settle(at(), [settlement(claim_one())])
    looking: list[Any] = []

    def commit_first(execute: Any, sql: str, *rest: Any) -> Any:
        if not looking and sql.startswith("DELETE FROM") and "parent_id" in sql:
            looking.append(other_connection.submit(commit))
            wait_until(lambda: JobDependency.objects.filter(job_id=child).exists())
        return execute(sql, *rest)

    with connection.execute_wrapper(commit_first):
        assert sweep(at(11), {**OFF, "archived_jobs": 10_000})["archived_jobs"] == 1
    looking[0].result(30)

    assert stored(child).ready_lane == "default"
    assert not JobDependency.objects.filter(is_open=True).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_job_that_comes_back_from_the_archive_meanwhile_keeps_its_children(
    other_connection: OtherConnection,
) -> None:
    revived = ArchivedJobFactory(status="dead", purge_at=NOW)
    gone = ArchivedJobFactory(status="dead", purge_at=NOW)
    with_children(revived.id)
    waiting = JobFactory(waiting=True)
    JobDependencyFactory(job_id=waiting.id, parent_id=revived.id)
    before, picked = child_counts(), threading.Event()
    each = Sweep("archived_jobs", ArchivedJob._meta.db_table, "purge_at")

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if each.table in sql:
            picked.set()
        return answer

    def sweep_once() -> int:
        with connection.execute_wrapper(note):
            return sweep_batch(at(1), each).removed

    with transaction.atomic():
        grant(at(1), revived.id, limited={})
        sweeping = other_connection.submit(sweep_once)
        assert picked.wait(30)

    assert sweeping.result(30) == 1
    assert not ArchivedJob.objects.filter(id__in=[revived.id, gone.id]).exists()
    assert (stored(revived.id).status, stored(waiting.id).status) == ("pending", "pending")
    assert child_counts() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
def test_a_job_that_comes_back_to_life_meanwhile_stays_with_its_children(
    other_connection: OtherConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    revived, ended = JobFactory(ended=True, purge_at=NOW), JobFactory(ended=True, purge_at=NOW)
    with_children(revived.id)

    def revive() -> None:
        transaction.set_autocommit(False)
        Job.objects.filter(id=revived.id).update(
            status="pending", completed_at=None, purge_at=None, ready_lane="default"
        )

    other_connection.run(revive)
    each = Sweep("archived_jobs", Job._meta.db_table, "purge_at")
    commit = other_connection.submit(transaction.commit)

    assert sweep_batch(at(1), each).removed == 1
    commit.result(10)
    assert Job.objects.get().id == revived.id
    assert child_counts() == [1, 1, 1, 2, 1]
    assert not Job.objects.filter(id=ended.id).exists()
