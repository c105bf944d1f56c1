"""Leases: the time-limited right to run a job. Renew it, give it back, find those that ran out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.core.lanes import lane_name
from flexiq_django.core.records import ClaimedJob
from flexiq_django.store.gates import QUEUES, TASKS
from flexiq_django.store.meter import refund
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.vendors.batches import json_batches
from flexiq_django.store.vendors.phrases import CLAIMED_COLUMNS

_FENCE = "j.token = b.token AND j.status = 'running'"
#: Not one whose place under a limit is free again since its lease ran out, or is about to be.
_HAS_PLACE = (
    "(j.lease_at > {last_call} OR NOT EXISTS ("  # noqa: S608 - names are our own
    f"SELECT 1 FROM {QUEUES} AS g WHERE g.namespace = j.namespace AND g.name = j.queue"
    " AND g.max_concurrent IS NOT NULL) AND NOT EXISTS ("
    f"SELECT 1 FROM {TASKS} AS g WHERE g.namespace = j.namespace AND g.name = j.task_name"
    " AND g.max_concurrent IS NOT NULL))"
)


class Renewed(NamedTuple):
    """The jobs that are still owned, and those of them whose lease is longer now."""

    owned: set[UUID]
    extended: set[UUID]


def renew(scope: Scope, held: Iterable[tuple[UUID, int]], *, lease_ms: int) -> Renewed:
    """Extend the leases of jobs by (id, token) to ``lease_ms`` from now.

    A job that is missing from the answer belongs to somebody else, or has ended, or its lease ran
    out under a concurrency limit, where its place may be taken by now. A row that somebody has
    locked is not waited for, as that would let the other leases run out: it counts as owned while
    it is locked, since the reaper skips locked rows too, but its lease is no longer than it was.
    """
    database = open_database(scope)
    rows = _fences(database, held)
    columns = {"id": "id", "token": "big"}
    # A little before the lease ends: a claim that counts must not meet a renewal on its way.
    last_call = database.plus_ms("{now}", str(lease_ms // 10))
    condition = f"{_FENCE} AND {_HAS_PLACE.replace('{last_call}', last_call)}"
    with database.transaction():
        free = database.lock_free(rows)
        extended = database.update_joined(
            JOBS,
            {
                "lease_at": database.plus_ms("{now}", "%(lease_ms)s"),
                "updated_at": "{now}",
            },
            columns,
            [row for row in rows if free is None or row["id"] in free],
            condition,
            {"lease_ms": lease_ms},
        )
    if len(extended) == len(rows):
        return Renewed(extended, extended)
    source = database.rows_from_json("batch", columns)
    sql = f"SELECT j.id FROM {source} JOIN {JOBS} AS j ON j.id = b.id WHERE {condition}"  # noqa: S608
    untouched = {
        database.read_id(key)
        for batch in json_batches(rows)
        for (key,) in database.fetch(sql, {"batch": batch})
    }
    return Renewed(extended | untouched, extended)


def release(scope: Scope, jobs: Sequence[ClaimedJob]) -> set[UUID]:
    """Give back jobs whose body never began: ready again in their old place, attempt unchanged.

    What their claims took of rate limits goes back too.
    """
    database = open_database(scope)
    rows = [{"id": database.id_text(job.id), "token": job.token, "lane": job.lane} for job in jobs]
    with database.transaction():
        released = database.update_joined(
            JOBS,
            {
                "status": "'pending'",
                "ready_lane": "b.lane",
                "lease_at": "NULL",
                "started_at": "NULL",
                "worker_id": "NULL",
                "token": "NULL",
                "attempt": "j.attempt - 1",
                "updated_at": "{now}",
            },
            {"id": "id", "token": "big", "lane": "text"},
            rows,
            _FENCE,
        )
        refund(database, [job for job in jobs if job.id in released])
    return released


def unknown(
    scope: Scope,
    worker_id: str,
    known: Collection[tuple[UUID, int]],
    *,
    within_ms: int | None = None,
) -> list[ClaimedJob]:
    """Running jobs of a worker that are not among the (id, token) it knows of.

    With ``within_ms`` only those claimed so many milliseconds ago, or later. The database went away
    between the commit of a claim and the answer. Nobody runs them.
    """
    database = open_database(scope)
    since = "" if within_ms is None else database.plus_ms("{now}", str(-within_ms))
    lately = f" AND started_at >= {since}" if since else ""
    rows = database.fetch(
        f"SELECT {CLAIMED_COLUMNS}, token FROM {JOBS} WHERE lease_at IS NOT NULL"  # noqa: S608
        f" AND namespace = %(namespace)s AND worker_id = %(worker_id)s{lately}",
        {"worker_id": worker_id},
    )
    jobs = [_as_claimed(database, row) for row in rows]
    return [job for job in jobs if (job.id, job.token) not in known]


def running(database: Database, job_id: UUID) -> ClaimedJob | None:
    """The attempt that runs a job now, whoever makes it."""
    rows = database.fetch(
        f"SELECT {CLAIMED_COLUMNS}, token FROM {JOBS} WHERE id = %(id)s"  # noqa: S608
        " AND namespace = %(namespace)s AND status = 'running'",
        {"id": database.id_text(job_id)},
    )
    return _as_claimed(database, rows[0]) if rows else None


def any_expired(database: Database) -> bool:
    """Whether the lease of any running job is over."""
    return bool(
        database.fetch(
            f"SELECT 1 FROM {JOBS} WHERE lease_at <= {{now}}"  # noqa: S608 - names are our own
            " AND namespace = %(namespace)s LIMIT 1"
        )
    )


def expired(
    database: Database, limit: int, condition: str = "", *, but: Collection[str] = ()
) -> list[ClaimedJob]:
    """Running jobs whose lease is over, longest over first; locked where the database can.

    ``condition``: what else must hold, such as ``unseen``. ``but``: tasks whose jobs are left out.
    """
    left_out = {f"task{number}": name for number, name in enumerate(sorted(but))}
    if left_out:
        condition += f" AND task_name NOT IN ({', '.join(f'%({name})s' for name in left_out)})"
    rows = database.pick_expired_leases(limit, condition, left_out)
    return [_as_claimed(database, row) for row in rows]


def unseen(database: Database, unseen_ms: int) -> str:
    """SQL, to add to a condition, for jobs that nobody has written to for so long."""
    if not unseen_ms:
        return ""
    return f" AND updated_at <= {database.plus_ms('{now}', str(-unseen_ms))}"


def _as_claimed(database: Database, row: tuple[Any, ...]) -> ClaimedJob:
    lane = lane_name(row[1], row[8])
    # What its claim has paid is not stored. Better a token too few than one too many.
    return ClaimedJob._make((database.read_id(row[0]), *row[1:11], False, row[11], lane, False, ()))


def _fences(database: Database, held: Iterable[tuple[UUID, int]]) -> list[dict[str, Any]]:
    return [{"id": database.id_text(key), "token": token} for key, token in sorted(held)]
