"""What waits for what: the neighbours of a job, and everything connected to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flexiq_django.core.records import JobRecord
from flexiq_django.exceptions import GraphTooLargeError
from flexiq_django.models import ArchivedJob, Job, JobDependency
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Database

EDGES = JobDependency._meta.db_table

#: Jobs read by one statement.
CHUNK = 500
#: Edges that a graph may have for each job it may have.
EDGES_PER_JOB = 10


def related(scope: Scope, job_id: UUID, *, upwards: bool) -> list[UUID]:
    """The jobs that a job depends on (``upwards``), or that depend on it."""
    ours, theirs = ("job_id", "parent_id") if upwards else ("parent_id", "job_id")
    rows: Iterable[UUID] = (
        JobDependency.objects.using(scope.using)
        .filter(namespace=scope.namespace, **{ours: job_id})
        .order_by("id")
        .values_list(theirs, flat=True)
    )
    return list(rows)


class Edge(NamedTuple):
    """``child`` waits or waited for ``parent``."""

    parent: UUID
    child: UUID


class Graph(NamedTuple):
    """Jobs, the one asked about first, and the edges between them, each once."""

    jobs: list[JobRecord]
    edges: list[Edge]


def component(scope: Scope, job_id: UUID, *, most_jobs: int) -> Graph:
    """Everything connected to a job over edges in either direction, live or archived.

    One statement for each level. While it walks, only ids are held. Raises ``GraphTooLargeError``
    as soon as there are more than ``most_jobs`` jobs or ``EDGES_PER_JOB`` times as many edges.
    """
    if not _read_jobs(scope, [job_id]):
        return Graph([], [])
    database = open_database(scope)
    most_edges = most_jobs * EDGES_PER_JOB
    found: dict[UUID, None] = {job_id: None}  # a dict keeps the order of discovery
    edges: dict[Edge, None] = {}
    level = [job_id]
    while level:
        fresh = _edges_at(database, level, limit=most_edges + 1)
        edges.update(dict.fromkeys(fresh))
        level = list(dict.fromkeys(key for edge in fresh for key in edge if key not in found))
        found.update(dict.fromkeys(level))
        if len(found) > most_jobs or len(edges) > most_edges:
            raise GraphTooLargeError(
                f"job {job_id} is connected to more than {most_jobs} jobs or by more than"
                f" {most_edges} edges; allow more with max_jobs, or look at its dependencies and"
                " dependents step by step"
            )
    jobs = {job.id: job for job in _read_jobs(scope, list(found))}
    return Graph(
        [jobs[key] for key in found if key in jobs],
        # A job may have been purged in between; an edge into nothing helps nobody.
        [edge for edge in edges if edge.parent in jobs and edge.child in jobs],
    )


def _edges_at(database: Database, level: Sequence[UUID], *, limit: int) -> list[Edge]:
    """Up to ``limit`` edges from and to the jobs of one level, each once, by one statement."""
    arms: list[str] = []
    params: dict[str, Any] = {}
    for end in ("parent_id", "job_id"):
        condition, params = database.among(end, level)
        arms.append(
            f"SELECT id, parent_id, job_id FROM {EDGES}"  # noqa: S608
            f" WHERE {condition} AND namespace = %(namespace)s"
        )
    rows = database.fetch(
        f"SELECT parent_id, job_id FROM ({' UNION '.join(arms)}) AS found"  # noqa: S608
        " ORDER BY id LIMIT %(limit)s",
        {**params, "limit": limit},
    )
    return [Edge(database.read_id(parent), database.read_id(child)) for parent, child in rows]


def _read_jobs(scope: Scope, ids: Sequence[UUID]) -> list[JobRecord]:
    """The jobs with these ids that are there."""
    found: list[JobRecord] = []
    for start in range(0, len(ids), CHUNK):
        missing = set(ids[start : start + CHUNK])
        # In this order: a job that is being archived between the two looks is seen by the second.
        for model in (Job, ArchivedJob):
            rows = model.objects.using(scope.using).filter(
                namespace=scope.namespace, id__in=sorted(missing)
            )
            records = [JobRecord._make(row) for row in rows.values_list(*JobRecord._fields)]
            found += records
            missing -= {record.id for record in records}
            if not missing:
                break
    return found
