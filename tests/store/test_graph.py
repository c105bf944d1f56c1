"""What waits for what."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from flexiq_django.exceptions import GraphTooLargeError
from flexiq_django.models import JobDependency
from flexiq_django.store import graph
from flexiq_django.store.archive import archive_batch
from flexiq_django.store.graph import Edge, Graph
from flexiq_django.store.ids import new_id
from flexiq_django.store.vendors.base import JOBS
from tests.concurrency import OtherConnection
from tests.factories import ArchivedJobFactory, JobDependencyFactory, JobFactory, at

pytestmark = pytest.mark.django_db


def job() -> UUID:
    key: UUID = JobFactory().id
    return key


def edge(parent: UUID, child: UUID, **fields: Any) -> Edge:
    JobDependencyFactory(parent_id=parent, job_id=child, **fields)
    return Edge(parent, child)


def component(key: UUID, most_jobs: int = 100) -> Graph:
    return graph.component(at(), key, most_jobs=most_jobs)


def ids(found: Graph) -> list[UUID]:
    return [each.id for each in found.jobs]


def test_relatives_up_and_down() -> None:
    middle = new_id()
    parents = [JobDependencyFactory(job_id=middle).parent_id for _ in range(2)]
    children = [JobDependencyFactory(parent_id=middle, is_open=False).job_id for _ in range(2)]
    JobDependencyFactory(parent_id=middle, namespace="other")

    assert graph.related(at(), middle, upwards=True) == parents
    assert graph.related(at(), middle, upwards=False) == children


def test_a_job_alone() -> None:
    key = job()
    edge(job(), job())

    assert component(key).edges == []
    assert ids(component(key)) == [key]


def test_unknown_and_foreign_jobs_are_connected_to_nothing() -> None:
    foreign = JobFactory(namespace="other").id
    edge(foreign, new_id(), namespace="other")

    assert component(new_id()) == component(foreign) == Graph([], [])


def test_everything_connected_is_found_once() -> None:
    grandparent, parent, aunt, me, sibling, child, stranger = (job() for _ in range(7))
    edges = [
        edge(grandparent, parent, is_open=False), edge(grandparent, aunt), edge(parent, me),
        edge(parent, sibling), edge(me, child), edge(sibling, child), edge(aunt, child),
    ]  # fmt: skip
    edge(stranger, job())

    found = component(me)

    assert ids(found)[0] == me
    assert sorted(ids(found)) == sorted((grandparent, parent, aunt, me, sibling, child))
    assert sorted(found.edges) == sorted(edges)


def test_archived_jobs_are_part_of_it() -> None:
    parent, child = ArchivedJobFactory().id, job()
    edge(parent, child, is_open=False)

    assert ids(component(child)) == [child, parent]
    assert ids(component(parent)) == [parent, child]


def test_a_job_that_is_gone_takes_its_edges_with_it() -> None:
    me, gone, beyond = job(), new_id(), job()
    edge(gone, me)
    edge(gone, beyond)

    found = component(me)

    assert ids(found) == [me, beyond]
    assert found.edges == []


def test_one_statement_for_each_level(django_assert_num_queries: Any) -> None:
    me = job()
    level = [me]
    for _ in range(3):
        below = [job() for _ in range(4)]
        JobDependency.objects.bulk_create(
            JobDependencyFactory.build(parent_id=parent, job_id=child)
            for parent in level
            for child in below
        )
        level = below

    # The job itself, three levels and one look below them, the jobs, the archive is not needed.
    with django_assert_num_queries(1 + 4 + 1):
        found = component(me)

    assert len(found.jobs) == 13
    assert len(found.edges) == 4 + 16 + 16


def test_many_jobs_are_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "CHUNK", 3)
    me = job()
    children = [job() for _ in range(5)]
    archived = [ArchivedJobFactory().id for _ in range(5)]
    for child in children + archived:
        edge(me, child)

    assert ids(component(me)) == [me, *children, *archived]


def test_too_many_jobs_are_refused_before_they_are_read() -> None:
    me = job()
    for _ in range(4):
        edge(me, job())

    assert len(component(me, most_jobs=5).jobs) == 5
    with pytest.raises(GraphTooLargeError, match=f"^job {me} is connected to more than 4 jobs"):
        component(me, most_jobs=4)


def test_too_many_edges_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "EDGES_PER_JOB", 1)
    parents, children = [job() for _ in range(3)], [job() for _ in range(3)]
    for parent in parents:
        for child in children:
            edge(parent, child)

    assert len(component(parents[0], most_jobs=9).edges) == 9
    with pytest.raises(GraphTooLargeError, match="by more than 8 edges; allow more with max_jobs"):
        component(parents[0], most_jobs=8)


@pytest.mark.django_db(transaction=True)
def test_jobs_archived_between_two_looks_are_found_once(other_connection: OtherConnection) -> None:
    me = JobFactory(ended=True).id
    children = [JobFactory(ended=True).id for _ in range(3)]
    for child in children:
        edge(me, child, is_open=False)
    moved: list[int] = []

    def archive_meanwhile(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        # A third of them before and a third after the look into the table they leave.
        is_look = str(children[0].hex) in str(params).replace("-", "") and "payload" not in sql
        before = is_look and JOBS in sql and len(moved) < 2
        if before:
            moved.append(other_connection.run(archive_batch, at(9), older_than_ms=0, limit=2))
        found = execute(sql, params, many, context)
        if before:
            moved.append(other_connection.run(archive_batch, at(9), older_than_ms=0, limit=1))
        return found

    with connection.execute_wrapper(archive_meanwhile):
        found = component(me)

    assert moved == [2, 1]
    assert sorted(ids(found)) == sorted([me, *children])
    assert len(found.edges) == 3
