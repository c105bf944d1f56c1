"""enqueue_many and map: one job for each entry, all at once."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connections

from flexiq_django import Queue
from flexiq_django.exceptions import (
    DependencyError,
    InvalidOptionError,
    NotesValidationError,
    SerializationError,
)
from flexiq_django.models import Job, JobDependency
from tests.api.conftest import call_of, open_first, row_counts, row_of

pytestmark = pytest.mark.django_db


def test_a_job_for_each_entry_in_order(queue: Queue) -> None:
    handles = queue.enqueue_many("app.work", [(1,), [2, 3], ()], [{}, {"a": 4}, {}])

    assert [call_of(handle) for handle in handles] == [[[1], {}], [[2, 3], {"a": 4}], [[], {}]]
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)


def test_no_entries_are_no_jobs(queue: Queue, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert queue.enqueue_many("app.work", []) == []
        assert queue.enqueue_many("app.work", [], unique_keys=[]) == []


def test_options_hold_for_all_and_lists_for_each(queue: Queue) -> None:
    handles = queue.enqueue_many(
        "app.work",
        [(), (), ()],
        priority=7,
        queue="mail",
        metadata="all",
        unique_keys=["a", None, "b"],
        metadata_list=["one", None, ""],
        notes_list=[{"n": 1}, None, {}],
        expires_list=[10, None, 0],
        result_ttl_list=[0, None, 2.5],
        delay_list=[None, 0, 60],
    )

    rows = [row_of(handle) for handle in handles]
    assert {(row.priority, row.queue) for row in rows} == {(7, "mail")}
    assert [row.unique_key for row in rows] == ["a", None, "b"]
    assert [row.metadata for row in rows] == ["one", "all", ""]
    assert [row.notes for row in rows] == ['{"n":1}', None, "{}"]
    assert [row.expires_at is None for row in rows] == [False, True, False]
    assert [row.result_ttl_ms for row in rows] == [0, None, 2_500]
    assert [row.ready_lane for row in rows] == ["mail", "mail", None]


def test_a_value_of_the_row_outranks_that_of_the_call(queue: Queue) -> None:
    handles = queue.enqueue_many(
        "app.work",
        [(), ()],
        delay=60,
        delay_list=[0, None],
        result_ttl=9,
        result_ttl_list=[None, 0],
    )

    rows = [row_of(handle) for handle in handles]
    assert [row.ready_lane for row in rows] == ["default", None]
    assert [row.result_ttl_ms for row in rows] == [9_000, 0]


def test_keys_that_are_held_or_repeated_give_their_holder(queue: Queue) -> None:
    held = queue.enqueue("app.work", unique_key="held")

    handles = queue.enqueue_many(
        "app.work", [(n,) for n in range(5)], unique_keys=["new", "held", "new", None, None]
    )

    assert handles[0] == handles[2]
    assert handles[1] == held
    assert len({handle.id for handle in handles}) == 4
    assert call_of(handles[2]) == [[0], {}]
    assert Job.objects.count() == 4


def test_all_depend_on_the_same_parents(queue: Queue) -> None:
    parent = queue.enqueue("app.parent")

    handles = queue.enqueue_many("app.work", [(1,), (2,)], depends_on=parent)

    assert set(parent.dependents) == {handle.id for handle in handles}
    assert JobDependency.objects.count() == 2


def test_map_takes_tuples_of_arguments(queue: Queue) -> None:
    @queue.task(priority=3)
    def work(a: int, b: int) -> None: ...

    handles = work.map((n, n + 1) for n in range(3))

    assert [call_of(handle) for handle in handles] == [[[0, 1], {}], [[1, 2], {}], [[2, 3], {}]]
    assert {row_of(handle).priority for handle in handles} == {3}


def test_many_jobs_take_few_statements(queue: Queue, django_assert_max_num_queries: Any) -> None:
    open_first(queue)
    with django_assert_max_num_queries(1):
        queue.enqueue_many("app.work", [(n,) for n in range(500)])

    assert Job.objects.count() == 500


@pytest.mark.parametrize(
    ("lists", "name"),
    [
        ({"kwargs_list": [{}]}, "kwargs"),
        ({"delay_list": [1, 2, 3]}, "delay"),
        ({"unique_keys": []}, "unique_key"),
        ({"metadata_list": ["a"]}, "metadata"),
        ({"notes_list": [{}]}, "notes"),
        ({"expires_list": [1]}, "expires"),
        ({"result_ttl_list": [1]}, "result_ttl"),
    ],
)
def test_a_list_of_another_length_is_refused(
    queue: Queue, lists: dict[str, Any], name: str
) -> None:
    with pytest.raises(InvalidOptionError, match=rf"^the list of {name} has \d entries.* have 2$"):
        queue.enqueue_many("app.work", [(), ()], **lists)

    assert row_counts() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("lists", "error"),
    [
        ({"delay_list": [None, -1]}, InvalidOptionError),
        ({"expires_list": [None, "x"]}, InvalidOptionError),
        ({"result_ttl_list": [0, float("inf")]}, InvalidOptionError),
        ({"unique_keys": ["a", ""]}, InvalidOptionError),
        ({"metadata_list": [None, 5]}, InvalidOptionError),
        ({"notes_list": [None, [1]]}, NotesValidationError),
        ({"kwargs_list": [{}, {"a": object()}]}, SerializationError),
        ({"kwargs_list": [{}, None]}, SerializationError),
        ({"depends_on": "unknown"}, DependencyError),
        ({"delay_list": [None, 5], "run_at": datetime(2090, 1, 1, tzinfo=UTC)}, InvalidOptionError),
    ],
)
def test_one_bad_row_refuses_all(queue: Queue, lists: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        queue.enqueue_many("app.work", [(), ()], **lists)

    assert row_counts() == [0, 0, 0, 0]


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_left_open(queue: Queue) -> None:
    queue.enqueue_many("app.work", [(1,), (2,)], unique_keys=["a", "b"])

    assert not connections["default"].in_atomic_block
    assert Job.objects.count() == 2
