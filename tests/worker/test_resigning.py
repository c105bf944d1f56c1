"""A worker that stops gives leadership back, also while another process writes."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from flexiq_django.models import Lease
from flexiq_django.store import election
from flexiq_django.worker import chores
from flexiq_django.worker.connections import Keeper
from tests.concurrency import OtherConnection
from tests.factories import NOW, at
from tests.store.acting import enqueue_one
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE = 20.0


@pytest.fixture(autouse=True)
def only_sqlite(vendor: str) -> Iterator[None]:
    """Where writers refuse each other; what a keeper does to our connection ends with the test."""
    if vendor != "sqlite":
        pytest.skip("elsewhere writers do not refuse each other")
    yield
    connections["default"].close()


def leader() -> Any:
    options: Any = SimpleNamespace(scope=at(), lock_grace=60.0)
    # The worker stops: its keeper gives up at the first conflict.
    held = chores._leader(options, Keeper(at(), lambda: True).call, "me")
    assert held.hold(0.0)
    return held


def test_leadership_is_given_back_while_another_writes(
    monkeypatch: pytest.MonkeyPatch, other_connection: OtherConnection
) -> None:
    monkeypatch.setattr(chores, "RESIGN_SECONDS", DEADLINE)
    held = other_connection.run(leader)
    refused: list[bool] = []

    def note_refusals(execute: Any, *statement: Any) -> Any:
        try:
            return execute(*statement)
        except OperationalError:
            refused.append(True)
            raise

    def resign() -> None:
        with connection.execute_wrapper(note_refusals):
            held.resign()

    with transaction.atomic():
        enqueue_one()
        resigning = other_connection.submit(resign)
        wait_until(lambda: len(refused) > 3 or resigning.done())
    resigning.result(DEADLINE)

    assert Lease.objects.get().expires_at == NOW
    assert election.acquire(at(), "leader", "you", ttl_ms=1_000)


def test_a_writer_that_does_not_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, other_connection: OtherConnection
) -> None:
    monkeypatch.setattr(chores, "RESIGN_SECONDS", 0.05)
    held = other_connection.run(leader)

    with transaction.atomic():
        enqueue_one()
        with pytest.raises(OperationalError, match="locked"):
            other_connection.submit(held.resign).result(DEADLINE)
