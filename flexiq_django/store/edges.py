"""The edges of dependencies: one row for each job and each parent it was given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from flexiq_django.core.records import NewJob
from flexiq_django.models import JobDependency
from flexiq_django.store.vendors.base import Database
from flexiq_django.store.vendors.batches import chunks

EDGES = JobDependency._meta.db_table

#: For each new job the parents that have not ended yet.
Parents = Mapping[UUID, list[UUID]]


class Edge(NamedTuple):
    """``child`` waits for ``parent``."""

    id: int
    child: UUID
    parent: UUID
    allow_failure: bool


def insert_edges(database: Database, jobs: Sequence[NewJob], parents: Parents) -> None:
    """Store the edges of jobs, open for the parents that have not ended."""
    rows = [
        {
            "job_id": database.id_text(job.id),
            "parent_id": database.id_text(parent),
            "is_open": int(parent in parents.get(job.id, ())),
            "allow_failure": int(job.allow_parent_failure),
        }
        for job in jobs
        for parent in job.parents
    ]
    columns = {"job_id": "id", "parent_id": "id", "is_open": "bool", "allow_failure": "bool"}
    values = {"namespace": "%(namespace)s", **{name: f"b.{name}" for name in columns}}
    database.insert_rows(EDGES, values, columns, rows)


def open_to(database: Database, parents: Collection[UUID]) -> list[Edge]:
    """The open edges to these parents."""
    found: list[Edge] = []
    for chunk in chunks(list(parents)):
        condition, params = database.among("parent_id", chunk)
        rows = database.fetch(
            "SELECT id, job_id, parent_id, allow_failure"  # noqa: S608 - names are our own
            f" FROM {EDGES} WHERE {condition} AND is_open = {database.true}",
            params,
        )
        found += [
            Edge(key, database.read_id(child), database.read_id(parent), bool(allow))
            for key, child, parent, allow in rows
        ]
    return found


def still_open(database: Database, children: Sequence[UUID]) -> dict[int, UUID]:
    """The edges of these jobs that are open now, whatever was committed a moment ago: id, job."""
    found: dict[int, UUID] = {}
    for chunk in chunks(children):
        condition, params = database.among("job_id", chunk)
        rows = database.fetch(
            f"SELECT id, job_id FROM {EDGES}"  # noqa: S608
            f" WHERE {condition} AND is_open = {database.true}{database.latest}",
            params,
        )
        found.update((key, database.read_id(child)) for key, child in rows)
    return found


def close(database: Database, edges: Iterable[Edge]) -> None:
    """Close exactly these edges.

    One that was committed since they were read belongs to a child that nobody has looked at, and
    its re-check finds it only while it is open.
    """
    _close(database, (edge.id for edge in edges))


def close_all_of(database: Database, job_id: UUID) -> None:
    """A job, which is locked, no longer waits for any of its parents."""
    _close(database, still_open(database, [job_id]))


def _close(database: Database, ids: Iterable[int]) -> None:
    for chunk in chunks(sorted(ids)):
        database.change(
            f"UPDATE {EDGES}{database.by_key} SET is_open = NOT {database.true}"  # noqa: S608
            f" WHERE id IN ({', '.join(map(str, chunk))}) AND is_open = {database.true}"
        )
