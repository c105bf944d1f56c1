"""Where something else is written than an attempt says: no budget for a retry, a cancel asked for.

The settling transaction asks, so that the answer holds until it commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from flexiq_django.core.outcome import CANCELLED
from flexiq_django.core.records import Settlement
from flexiq_django.core.status import JobStatus
from flexiq_django.store.meter import held_budgets, return_retries, spend_retries
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.vendors.batches import json_batches

#: What a settlement says, and what is written instead.
_BURIED = (JobStatus.PENDING.value, JobStatus.DEAD.value)
_STOPPED = (JobStatus.PAUSED.value, JobStatus.CANCELLED.value)

#: The settlements as they will be written, and the jobs about which they say something else now.
Judged = tuple[Sequence[Settlement], frozenset[UUID]]


class Before(NamedTuple):
    """Jobs about which a settlement has been written before; those it said something else about."""

    mine: frozenset[UUID]
    buried: frozenset[UUID]
    stopped: frozenset[UUID]


def as_written(
    settlements: Sequence[Settlement], buried: Collection[UUID], stopped: Collection[UUID]
) -> list[Settlement]:
    """The settlements with some retries turned into deaths, and some pauses into cancels."""
    return list(_stop(_bury(settlements, buried), stopped))


def within_budget(database: Database, settlements: Sequence[Settlement]) -> Judged:
    """A retry that no retry budget pays for is a death."""
    wanted = Counter(each.task_name for each in settlements if each.is_budgeted)
    if not wanted:
        return settlements, frozenset()
    left = spend_retries(database, wanted)
    refused = set()
    for each in settlements:
        if each.is_budgeted:
            left[each.task_name] -= 1
            if left[each.task_name] < 0:
                refused.add(each.job_id)
    return _bury(settlements, refused), frozenset(refused)


def with_free_budget(
    database: Database, settlements: Sequence[Settlement]
) -> tuple[list[Settlement], set[str]]:
    """Those whose retry budget nobody else has locked, and the tasks whose budget somebody has."""
    asked = {each.task_name for each in settlements if each.is_budgeted}
    held = held_budgets(database, asked) if asked else set()
    free = [each for each in settlements if not (each.is_budgeted and each.task_name in held)]
    return free, held


def give_back(database: Database, lost: Sequence[Settlement]) -> None:
    """Put back what retries took of a budget that were not written, in the same transaction."""
    taken = Counter(
        each.task_name
        for each in lost
        if each.is_budgeted and each.status == JobStatus.PENDING.value
    )
    if taken:
        return_retries(database, taken)


def unless_stopped(database: Database, settlements: Sequence[Settlement]) -> Judged:
    """A pause of a job that somebody has asked to stop is a cancel."""
    pauses = [each.job_id for each in settlements if each.status == JobStatus.PAUSED.value]
    if not pauses:
        return settlements, frozenset()
    # Locked: a request that comes after this look finds a paused job, and says that it is late.
    rows = database.lock_rows("id, cancel_requested_at", sorted(pauses))
    asked = frozenset(database.read_id(key) for key, moment in rows if moment is not None)
    return _stop(settlements, asked), asked


def written_before(database: Database, settlements: Sequence[Settlement]) -> Before:
    """Those of the settlements whose own work is what is stored: the answer to it was lost.

    Whatever carries the token of an attempt was written by its settlement, and the verdict was
    given then: today it might be another.
    """
    columns = {"id": "id", "token": "big"}
    sql = (
        f"SELECT j.id, j.status FROM {database.rows_from_json('batch', columns)}"  # noqa: S608
        f" JOIN {JOBS} AS j ON j.id = b.id WHERE j.token = b.token"
    )
    rows = [{"id": database.id_text(each.job_id), "token": each.token} for each in settlements]
    stored = {
        database.read_id(key): status
        for batch in json_batches(rows)
        for key, status in database.fetch(sql, {"batch": batch})
    }
    found = {each.job_id: (each, stored.get(each.job_id)) for each in settlements}
    buried = frozenset(
        key
        for key, (each, status) in found.items()
        if each.is_budgeted and (each.status, status) == _BURIED
    )
    stopped = frozenset(
        key for key, (each, status) in found.items() if (each.status, status) == _STOPPED
    )
    same = frozenset(key for key, (each, status) in found.items() if each.status == status)
    return Before(same | buried | stopped, buried, stopped)


def _bury(settlements: Sequence[Settlement], ids: Collection[UUID]) -> Sequence[Settlement]:
    if not ids:
        return settlements
    return [
        each._replace(status=JobStatus.DEAD.value, error=each.attempt_error, wait_ms=0)
        if each.job_id in ids
        else each
        for each in settlements
    ]


def _stop(settlements: Sequence[Settlement], ids: Collection[UUID]) -> Sequence[Settlement]:
    if not ids:
        return settlements
    return [
        each._replace(status=JobStatus.CANCELLED.value, error=CANCELLED, pause_reason=None)
        if each.job_id in ids
        else each
        for each in settlements
    ]
