"""The dead letters as the jobs they stand for: pages of them by number, and how many there are.

A dead letter outlives its job in the hot table: the job is archived after a while, and may be
purged, while the letter waits for a person. So what failed and was not dealt with is read from the
letters, and each job from wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from flexiq_django.core.status import JobStatus
from flexiq_django.models import ArchivedJob, DeadLetter, Job
from flexiq_django.store import browse
from flexiq_django.store.ids import minted_at
from flexiq_django.store.scope import Scope

#: Jobs in one list of a statement.
_CHUNK = 1_000


def count(scope: Scope) -> int:
    """How many dead letters there are, counted in an index."""
    return _letters(scope).count()


def pages(
    scope: Scope,
    *,
    order: browse.Order | None = None,
    descending: bool = True,
    limit: int,
    offset: int = 0,
    with_payload: bool = False,
) -> list[browse.Row]:
    """One page of the jobs that have a dead letter, archived or not; like ``browse.browse``.

    A job that was purged has the fields that its letter knows.
    """
    if order is None:
        sign = "-" if descending else ""
        pairs = _pairs(scope, sign)[offset : offset + limit]
    else:
        newest = list(_pairs(scope, "-")[: browse.REACH])
        values = _standing(scope, newest, order.columns)
        rows = [
            (job_id, *(values[job_id][name] for name in order.columns))
            for job_id, _ in newest
            if job_id in values
        ]
        chosen = browse.arrange(rows, order, descending=descending)[offset : offset + limit]
        letters = dict(newest)
        pairs = [(job_id, letters[job_id]) for job_id in chosen]
    wanted = list(pairs)
    columns = (*browse.COLUMNS, "payload") if with_payload else browse.COLUMNS
    found = _standing(scope, wanted, columns)
    jobs = [found[job_id] for job_id, _ in wanted if job_id in found]
    # One may have been requeued just now.
    return [job for job in jobs if job["status"] == JobStatus.DEAD.value]


def _letters(scope: Scope) -> QuerySet[DeadLetter]:
    return DeadLetter.objects.using(scope.using).filter(namespace=scope.namespace)


def _pairs(scope: Scope, sign: str) -> Any:
    """The jobs by age, each with its letter: a job has one at most."""
    ordered = _letters(scope).order_by(f"{sign}original_job_id")
    return ordered.values_list("original_job_id", "id")


def _standing(
    scope: Scope, pairs: Sequence[tuple[UUID, UUID]], columns: Sequence[str]
) -> dict[UUID, browse.Row]:
    """These columns of the jobs, by id. Without those whose letter has gone, too."""
    found: dict[UUID, browse.Row] = {}
    for start in range(0, len(pairs), _CHUNK):
        letters = dict(pairs[start : start + _CHUNK])
        # In this order: a job that is being archived between two looks is seen by the second.
        for model in (Job, ArchivedJob):
            if missing := letters.keys() - found.keys():
                jobs = model.objects.using(scope.using).filter(
                    namespace=scope.namespace, id__in=missing
                )
                found |= {row["id"]: dict(row) for row in jobs.values("id", *columns)}
        if missing := letters.keys() - found.keys():
            ids = [letters[job_id] for job_id in missing]
            for letter in _letters(scope).filter(id__in=ids).values(*_known(columns)):
                found[letter["original_job_id"]] = _from_letter(letter, columns)
    return found


#: What a letter has under the name it has in its job.
_SHARED = frozenset(
    {
        "task_name",
        "max_retries",
        "error",
        "session_id",
        "user_id",
        "origin",
        "schedule",
        "payload",
    }
)


def _known(columns: Sequence[str]) -> set[str]:
    return {"original_job_id", "failed_at", "retry_count", *_SHARED.intersection(columns)}


def _from_letter(letter: Mapping[str, Any], columns: Sequence[str]) -> browse.Row:
    """A job that is gone; ``None`` for what its letter does not tell."""
    job_id, failed = letter["original_job_id"], letter["failed_at"]
    told = {
        **letter,
        "id": job_id,
        "status": JobStatus.DEAD.value,
        "attempt": letter["retry_count"] + 1,  # those that failed
        "created_at": minted_at(job_id) or failed,
        "updated_at": failed,
        "completed_at": failed,
    }
    return {name: told.get(name) for name in ("id", *columns)}
