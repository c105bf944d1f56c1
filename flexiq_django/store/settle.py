"""End attempts: complete, retry, dead-letter, cancel, pause - each fenced by its claim's token.

Everything moves together. The job, its error row, its metric row, its dead letter and its
dependents change in one transaction, and only for attempts that still own their job.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction

from flexiq_django.core.records import AutoRetry, ClaimedJob, Settlement
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.exceptions import LeaseLost, TaskCancelledError
from flexiq_django.models import TaskMetric
from flexiq_django.store import dependencies, history, lease, sessions, verdicts
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database

METRICS = TaskMetric._meta.db_table

_ENDED = {status.value for status in TERMINAL}
_FENCE = "j.token = b.token AND j.status = 'running'"

_COLUMNS = {
    "id": "id",
    "token": "big",
    "status": "text",
    "result": "text",
    "error": "text",
    "spent": "int",
    "wait_ms": "big",
    "lane": "text",
    "reason": "text",
    "task": "text",
    "ms": "float",
    "ok": "bool",
}

_METRIC = {
    "namespace": "%(namespace)s",
    "task_name": "b.task",
    "job_id": "b.id",
    "duration_ms": "b.ms",
    "succeeded": "b.ok",
    "recorded_at": "{now}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What became of a batch: jobs settled and fenced out, dependents cancelled.

    ``released``: how many dependents and next jobs of a session may go now. ``passed_over``: how
    many dependents were left to the sweep, as somebody else has locked them; above 0 also if all
    lost jobs were left for that reason.

    ``buried``: jobs that are dead because the retry budget of their task is used up. ``stopped``:
    jobs that were to be paused, and are cancelled as somebody had asked for that.
    """

    settled: frozenset[UUID] = frozenset()
    lost: frozenset[UUID] = frozenset()
    buried: frozenset[UUID] = frozenset()
    stopped: frozenset[UUID] = frozenset()
    cancelled: list[UUID] = field(default_factory=list)
    released: int = 0
    passed_over: int = 0


def settle(
    scope: Scope, settlements: Sequence[Settlement], auto_retry: AutoRetry | None = None
) -> Settled:
    """End attempts, many in one transaction.

    A settlement whose token no longer owns the job changes nothing at all and is reported as lost.
    Repeating a settlement whose answer was lost is harmless: the job keeps its token, so the repeat
    finds its own work done and is reported as settled. ``auto_retry``: when the dead letters of
    those that die are retried by themselves.
    """
    database = open_database(scope)
    with database.transaction():
        outcome = settle_inside(database, settlements, _FENCE, auto_retry=auto_retry)
    if not outcome.lost:
        return outcome
    seen = verdicts.written_before(
        database, [each for each in settlements if each.job_id in outcome.lost]
    )
    return replace(
        outcome,
        settled=outcome.settled | seen.mine,
        lost=outcome.lost - seen.mine,
        buried=outcome.buried | seen.buried,
        stopped=outcome.stopped | seen.stopped,
    )


@contextlib.contextmanager
def together(scope: Scope, on_commit: Callable[[], None]) -> Iterator[Callable[[Settlement], None]]:
    """One transaction around a task's body and its completion, or its pause.

    Yields the function that settles inside it. That function raises ``LeaseLost`` when the attempt
    no longer owns its job, and ``TaskCancelledError`` when a job that pauses was asked to stop.
    Either rolls back what the body wrote. ``on_commit`` is called once all has committed, before
    whatever the body has left for then.
    """
    database = open_database(scope)

    def complete(settlement: Settlement) -> None:
        outcome = settle_inside(database, [settlement], _FENCE)
        if outcome.lost:
            raise LeaseLost
        if outcome.stopped:
            raise TaskCancelledError(job_id=str(settlement.job_id))

    with database.transaction():
        transaction.on_commit(on_commit, using=scope.using)
        yield complete


def reap(
    scope: Scope,
    decide: Callable[[ClaimedJob], Settlement],
    *,
    limit: int = 100,
    auto_retry: AutoRetry | None = None,
    unseen_ms: int = 0,
) -> tuple[list[Settlement], Settled]:
    """Settle running jobs whose lease is over, as ``decide`` says; what was settled.

    A heartbeat that arrives first wins: the lease is judged again by the statement that writes.
    With ``unseen_ms`` jobs stay that were written to less than so many milliseconds ago. Jobs and
    dependents that somebody else has locked are passed over.
    """
    database = open_database(scope)
    if not lease.any_expired(database):  # the usual answer, without a transaction
        return [], Settled()
    with database.transaction():
        unseen = lease.unseen(database, unseen_ms)
        held: set[str] = set()
        while True:
            lost = [decide(job) for job in lease.expired(database, limit, unseen, but=held)]
            settlements, more = verdicts.with_free_budget(database, lost)
            if settlements or not more:
                break
            held |= more  # however many they are, they hide no job of another task
        if not settlements:  # then nothing was written, and all is as before
            return [], Settled(passed_over=1)
        # Without its token the job is out of reach for the attempt that was lost.
        outcome = settle_inside(
            database,
            settlements,
            f"{_FENCE} AND j.lease_at <= {{now}}{unseen}",
            {"token": "NULL"},
            auto_retry=auto_retry,
            only_free=True,
        )
    written = verdicts.as_written(settlements, outcome.buried, outcome.stopped)
    return [each for each in written if each.job_id in outcome.settled], outcome


def settle_inside(
    database: Database,
    settlements: Sequence[Settlement],
    where: str,
    extra: Mapping[str, str] | None = None,
    *,
    auto_retry: AutoRetry | None = None,
    only_free: bool = False,
) -> Settled:
    """Settle in the transaction at hand those attempts that meet ``where``, which is SQL.

    ``extra`` are assignments beside those that every end of an attempt makes. ``only_free`` is that
    of ``dependencies.resolve``.
    """
    settlements, buried = verdicts.within_budget(database, settlements)
    settlements, stopped = verdicts.unless_stopped(database, settlements)
    done = _move(database, settlements, where, extra)
    lost: frozenset[UUID] = frozenset()
    survivors = settlements
    if len(done) < len(settlements):
        survivors = [each for each in settlements if each.job_id in done]
        lost = frozenset(each.job_id for each in settlements) - done
        verdicts.give_back(database, [each for each in settlements if each.job_id in lost])
    failed = [each for each in survivors if each.attempt_error is not None]
    if failed:
        history.append_errors(database, failed)
    ended = {each.job_id: each.status for each in survivors if each.status in _ENDED}
    bad = {key: status for key, status in ended.items() if status != JobStatus.COMPLETE.value}
    if bad:
        history.append_dead_letters(database, bad, auto_retry)
        history.note_replay_errors(database, bad)
    named = {each.session_id for each in survivors if each.session_id and each.status in _ENDED}
    handed_on = sessions.hand_on(database, named) if named else 0
    moved = dependencies.resolve(database, ended, only_free=only_free)
    return Settled(
        settled=frozenset(done),
        lost=lost,
        buried=buried & done,
        stopped=stopped & done,
        cancelled=moved.cancelled,
        released=moved.released + handed_on,
        passed_over=moved.passed_over,
    )


def _move(
    database: Database,
    settlements: Sequence[Settlement],
    where: str,
    extra: Mapping[str, str] | None = None,
) -> set[UUID]:
    """Write the jobs and their metric rows; the ids of those that matched."""
    # In id order, so that two batches with the same jobs cannot deadlock.
    rows = [_row(database, each) for each in sorted(settlements, key=lambda each: each.job_id.int)]
    return database.update_and_record(
        JOBS,
        {**_assignments(database), **(extra or {})},
        _COLUMNS,
        rows,
        where,
        into=METRICS,
        values=_METRIC,
        recorded="ms",
    )


def _assignments(database: Database) -> dict[str, str]:
    retry = "b.status = 'pending'"
    stays = "b.status IN ('pending', 'paused')"
    # Cancelled without an execution: claimed too late, so its body never began.
    unstarted = "(b.status = 'cancelled' AND b.ms IS NULL)"
    due = database.plus_ms("{now}", "COALESCE(b.wait_ms, 0)")
    return {
        "status": "b.status",
        "result": "b.result",
        "error": "b.error",
        "retry_count": "j.retry_count + COALESCE(b.spent, 0)",
        "ready_lane": f"CASE WHEN {retry} AND b.wait_ms IS NULL THEN b.lane END",
        "promote_at": f"CASE WHEN {retry} AND b.wait_ms IS NOT NULL THEN {due} END",
        "scheduled_at": f"CASE WHEN {retry} THEN {due} ELSE j.scheduled_at END",
        "started_at": f"CASE WHEN {retry} OR {unstarted} THEN NULL ELSE j.started_at END",
        "completed_at": f"CASE WHEN {stays} THEN NULL ELSE {{now}} END",
        "purge_at": (
            f"CASE WHEN {stays} THEN NULL ELSE {database.plus_ms('{now}', 'j.result_ttl_ms')} END"
        ),
        "lease_at": "NULL",
        "active_key": f"CASE WHEN {stays} THEN j.active_key END",
        "session_slot": f"CASE WHEN {stays} THEN j.session_slot END",
        # A job that pauses has started in time.
        "expires_at": f"CASE WHEN {retry} THEN j.expires_at END",
        "pause_reason": "b.reason",
        "updated_at": "{now}",
    }


def _row(database: Database, each: Settlement) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": database.id_text(each.job_id),
        "token": each.token,
        "status": each.status,
    }
    if each.result is not None:
        row["result"] = each.result
    if each.error is not None:
        row["error"] = each.error
    if each.status == JobStatus.PAUSED.value:
        row["reason"] = each.pause_reason
    elif each.duration_ms is not None:
        row["task"], row["ms"], row["ok"] = each.task_name, each.duration_ms, int(each.succeeded)
    if each.status == JobStatus.PENDING.value:
        row["spent"] = 1
        row["lane"] = each.lane
        if each.wait_ms:
            row["wait_ms"] = each.wait_ms
    return row
