"""After the commit, and only then: workers are woken and receivers told."""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from flexiq_django import Queue, signals
from flexiq_django.api import announce
from flexiq_django.models import Job
from flexiq_django.store import dependencies, link
from flexiq_django.store.scope import Scope
from tests.api.conftest import Ender, row_of
from tests.concurrency import OtherConnection

pytestmark = pytest.mark.django_db(transaction=True)


class RollBack(Exception):  # noqa: N818 - what a caller may raise
    """The caller changed its mind."""


@pytest.fixture(autouse=True)
def unthrottled() -> Iterator[None]:
    announce._last_notify.clear()
    yield
    announce._last_notify.clear()


@pytest.fixture
def told() -> Iterator[list[dict[str, Any]]]:
    """What receivers of job_enqueued were told."""
    found: list[dict[str, Any]] = []

    def receive(sender: object, signal: object, **told: Any) -> None:
        found.append(told)

    signals.job_enqueued.connect(receive)
    yield found
    signals.job_enqueued.disconnect(receive)


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers listen, and are notified by a statement of its own."""
    monkeypatch.setattr(link, "sign_of_work", lambda _scope: "notification")
    monkeypatch.setattr(link, "can_notify_with_insert", lambda _scope: False)


@pytest.fixture
def notified(listening: None, monkeypatch: pytest.MonkeyPatch) -> list[Scope]:
    """The scopes whose workers were woken."""
    found: list[Scope] = []
    monkeypatch.setattr(link, "notify", found.append)
    return found


def test_receivers_are_told_after_the_commit(queue: Queue, told: list[Any]) -> None:
    with transaction.atomic():
        first, *rest = queue.enqueue("app.a"), *queue.enqueue_many("app.b", [(), ()])
        assert told == []

    assert told == [
        {"job_ids": [first.id], "namespace": "default", "using": "default"},
        {"job_ids": [job.id for job in rest], "namespace": "default", "using": "default"},
    ]


def test_outside_a_transaction_they_are_told_at_once(queue: Queue, told: list[Any]) -> None:
    handle = queue.enqueue("app.work")

    assert [each["job_ids"] for each in told] == [[handle.id]]


def enqueue_and_fail(queue: Queue) -> None:
    with transaction.atomic():
        queue.enqueue("app.work", unique_key="k")
        raise RollBack


def test_a_rollback_tells_nobody(queue: Queue, told: list[Any], notified: list[Scope]) -> None:
    with pytest.raises(RollBack):
        enqueue_and_fail(queue)
    with transaction.atomic():
        with pytest.raises(RollBack):
            enqueue_and_fail(queue)
        kept = queue.enqueue("app.kept")

    assert [each["job_ids"] for each in told] == [[kept.id]]
    assert len(notified) == 1
    assert Job.objects.count() == 1


def test_only_jobs_that_were_stored_are_announced(
    queue: Queue, told: list[Any], notified: list[Scope]
) -> None:
    held = queue.enqueue("app.work", unique_key="k")
    told.clear()
    notified.clear()
    announce._last_notify.clear()

    queue.enqueue("app.work", unique_key="k")
    assert (told, notified) == ([], [])
    handles = queue.enqueue_many("app.work", [(), ()], unique_keys=["k", "new"])

    assert handles[0] == held
    assert [each["job_ids"] for each in told] == [[handles[1].id]]


def test_a_receiver_that_raises_hurts_nobody(
    queue: Queue, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: Any) -> None:
        raise ValueError("receiver")

    signals.job_enqueued.connect(fail)
    try:
        handle = queue.enqueue("app.work")
    finally:
        signals.job_enqueued.disconnect(fail)

    assert row_of(handle).status == "pending"
    assert len(told) == 1
    assert "signal receiver" in caplog.text


def test_workers_are_woken_once_in_a_while(
    queue: Queue, notified: list[Scope], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announce, "NOTIFY_SECONDS", 3_600.0)
    for _ in range(3):
        queue.enqueue("app.work")
    Queue("other").enqueue("app.work")

    assert notified == [queue.scope, Scope(namespace="other")]

    monkeypatch.setattr(announce, "NOTIFY_SECONDS", 0.0)
    queue.enqueue("app.work")
    assert len(notified) == 3


def test_nobody_is_woken_where_nobody_listens(
    queue: Queue, notified: list[Scope], settings: Any
) -> None:
    settings.FLEXIQ = {"LISTEN": False}

    queue.enqueue("app.work")

    assert notified == []


def test_a_wake_up_that_fails_loses_no_job(
    queue: Queue, told: list[Any], listening: None, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def fail(_: Scope) -> None:
        raise DatabaseError("pooler")

    monkeypatch.setattr(link, "notify", fail)
    with caplog.at_level(logging.WARNING):
        handle = queue.enqueue("app.work")

    assert row_of(handle).status == "pending"
    assert len(told) == 1
    assert "they will find the job by polling" in caplog.text


@pytest.fixture
def wake_fd() -> Iterator[int]:
    """A descriptor that never becomes readable."""
    reader, writer = socket.socketpair()
    yield reader.fileno()
    reader.close()
    writer.close()


@pytest.mark.parametrize("options", [{}, {"unique_key": "k"}])
@pytest.mark.parametrize("block", [nullcontext, transaction.atomic])
def test_a_listener_hears_of_it(
    queue: Queue,
    vendor: str,
    other_connection: OtherConnection,
    wake_fd: int,
    block: Any,
    options: Any,
) -> None:
    if vendor != "postgresql":
        pytest.skip("only PostgreSQL has NOTIFY")

    listen = partial(link.wait_for_notify, queue.scope, wake_fd)

    other_connection.run(listen, 0)  # the first call subscribes
    with block():
        queue.enqueue("app.work", **options)
    Queue("other").enqueue("app.work")

    assert other_connection.run(listen, 10.0)
    assert not other_connection.run(listen, 0.0)


def test_a_notification_that_comes_with_the_answer_to_a_statement_is_heard(
    queue: Queue, vendor: str, other_connection: OtherConnection, wake_fd: int
) -> None:
    if vendor != "postgresql":
        pytest.skip("only PostgreSQL has NOTIFY")
    listen = partial(link.wait_for_notify, queue.scope, wake_fd)

    def look() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    other_connection.run(listen, 0)  # the first call subscribes
    queue.enqueue("app.work")
    other_connection.run(look)

    assert other_connection.run(listen, 10.0)
    assert not other_connection.run(listen, 0.0)


def test_parents_that_end_between_enqueue_and_commit_release_their_child(
    queue: Queue, end: Ender, other_connection: OtherConnection, vendor: str
) -> None:
    if vendor == "sqlite":
        pytest.skip("SQLite has one writer: nobody ends a job while we are in a transaction")
    parent = queue.enqueue("app.parent")
    with transaction.atomic():
        child = queue.enqueue("app.child", depends_on=parent)
        other_connection.run(end, parent)

    assert row_of(child).ready_lane == "default"


@pytest.mark.parametrize("depends", [True, False])
def test_a_recheck_is_made_for_parents_only(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, depends: bool
) -> None:
    asked: list[list[str]] = []
    recheck: Callable[..., Any] = dependencies.recheck

    def note(scope: Scope, parents: Any) -> Any:
        asked.append([str(key) for key in parents])
        return recheck(scope, parents)

    parent = queue.enqueue("app.parent")
    monkeypatch.setattr(dependencies, "recheck", note)
    queue.enqueue("app.child", depends_on=parent if depends else None)

    assert asked == ([[parent.id]] if depends else [])
