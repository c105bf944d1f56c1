"""insert_jobs joins the caller's transaction: the job exists exactly when their data does."""

from collections.abc import Callable

import pytest
from django.db import connections, transaction

from flexiq_django.models import Job, JobDependency
from tests.concurrency import OtherConnection
from tests.factories import JobFactory
from tests.store.acting import claim, enqueue, enqueue_one
from tests.testapp.models import Mark


def failing(*actions: Callable[[], object]) -> None:
    """A caller's transaction that does these things and then fails."""
    with transaction.atomic():
        for act in actions:
            act()
        raise RollBack


class RollBack(Exception):  # noqa: N818 - what a caller may raise
    """The caller changed its mind."""


@pytest.mark.django_db
@pytest.mark.parametrize("fields", [{}, {"unique_key": "k"}])
def test_a_rollback_takes_the_job_with_it(fields: dict[str, str]) -> None:
    with pytest.raises(RollBack):
        failing(lambda: Mark.objects.create(key="caller"), lambda: enqueue(3, **fields))

    assert Job.objects.count() == Mark.objects.count() == 0


@pytest.mark.django_db
def test_a_savepoint_takes_only_its_own_jobs() -> None:
    with transaction.atomic():
        kept = enqueue_one()
        with pytest.raises(RollBack):
            failing(enqueue_one, lambda: enqueue_one(unique_key="k"))
        also_kept = enqueue_one(unique_key="k")

    assert set(Job.objects.values_list("id", flat=True)) == {kept, also_kept}


@pytest.mark.django_db
def test_a_rollback_takes_the_edges_too() -> None:
    parent = JobFactory()
    with pytest.raises(RollBack):
        failing(lambda: enqueue_one(parents=(parent.id,)))

    assert JobDependency.objects.count() == 0
    assert Job.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_the_job_is_there_at_once(other_connection: OtherConnection) -> None:
    connection = connections["default"]
    key = enqueue_one()
    keyed = enqueue_one(unique_key="k")

    assert not connection.in_atomic_block
    assert connection.get_autocommit()
    assert {job.id for job in other_connection.run(claim)} == {key, keyed}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fields", [{}, {"unique_key": "k"}])
def test_nobody_sees_the_job_before_the_commit(
    other_connection: OtherConnection, fields: dict[str, str], vendor: str
) -> None:
    with transaction.atomic():
        key = enqueue_one(**fields)
        if vendor != "sqlite":  # there a claim would wait for the writer
            assert other_connection.run(claim) == []
        assert other_connection.run(Job.objects.count) == 0

    assert [job.id for job in other_connection.run(claim)] == [key]


@pytest.mark.django_db(transaction=True)
def test_jobs_with_parents_are_stored_with_their_edges_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from flexiq_django.store import edges

    def fail(*_: object) -> None:
        raise RollBack

    parent = enqueue_one()
    monkeypatch.setattr(edges, "insert_edges", fail)
    with pytest.raises(RollBack):
        enqueue(2, parents=(parent,))

    assert list(Job.objects.values_list("id", flat=True)) == [parent]
