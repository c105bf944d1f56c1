"""The keeper of the chores: its statements wait for rows that others hold, but not for long."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from flexiq_django.core.cron import CronSchedule
from flexiq_django.models import Job
from flexiq_django.scheduler.loop import Blocked
from flexiq_django.store import link, operate, schedules
from flexiq_django.store.scope import Scope
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.parts import Parts
from tests.concurrency import OtherConnection
from tests.factories import JobFactory, at
from tests.store.acting import enqueue_one

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE = 20.0


def never() -> bool:
    return False


@pytest.fixture(autouse=True)
def own_connection() -> Iterator[None]:
    """What a keeper does to its connection ends with the test."""
    yield
    connections["default"].close()


@pytest.mark.row_locks
@pytest.mark.parametrize(
    "verb",
    [
        lambda key: operate.set_priority(at(), key, 5, only_pending=False),
        lambda key: operate.cancel(at(), key),
    ],
    ids=["one statement", "a transaction"],
)
def test_a_row_that_a_caller_holds_ends_the_call(
    verb: Callable[[Any], Any], other_connection: OtherConnection
) -> None:
    key = JobFactory().id
    impatient, patient = Keeper(at(), never, patience=0.2), Keeper(at(), never)
    with transaction.atomic():
        assert operate.set_priority(at(), key, 3, only_pending=False)
        waiting = other_connection.submit(impatient.call, lambda: verb(key))
        with pytest.raises(Blocked):
            waiting.result(DEADLINE)
    assert other_connection.run(impatient.call, lambda: verb(key))

    with transaction.atomic():
        assert operate.set_priority(at(), key, 4, only_pending=False)
        other_connection.run(impatient.close)
        # A connection without a limit waits, as ever.
        waiting = other_connection.submit(patient.call, lambda: Job.objects.update(priority=7))
    assert waiting.result(DEADLINE) == 1


def test_conflicts_that_go_on_end_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "trouble", lambda _scope, error: error.args[0])
    tries: list[bool] = []

    def fail() -> None:
        tries.append(True)
        raise OperationalError("conflict")

    with pytest.raises(Blocked, match="conflict"):
        Keeper(Scope(), never, patience=0.05).call(fail)
    assert len(tries) > 1


def test_a_limit_of_postgresql_stays_in_its_transaction(vendor: str) -> None:
    if vendor != "postgresql":
        pytest.skip("about a pooler in transaction mode")

    def limit() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            return str(cursor.fetchone()[0])

    keeper = Keeper(at(), never, patience=0.2)
    before = keeper.call(limit)
    keeper.call(enqueue_one)

    assert (before, keeper.call(limit)) == ("0", "0")


def test_the_chores_have_such_a_keeper(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Keeper] = []
    monkeypatch.setattr(
        "flexiq_django.worker.parts.build_chores",
        lambda _options, keeper, *_, **__: made.append(keeper),
    )
    parts: Any = SimpleNamespace(
        _options=SimpleNamespace(scope=at(), silence=20.0),
        catalogue=None,
        _worker_id="w",
        settler=SimpleNamespace(tell=None),
    )
    parts._make_keeper = lambda *given, **named: Parts._make_keeper(parts, *given, **named)
    Parts._make_chores(parts, never, lambda: None)

    assert made[0]._patience == (None if vendor == "sqlite" else 1.0)


def test_a_schedule_that_is_held_keeps_no_other_from_being_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared: list[str] = []

    def declare(_scope: Scope, row: dict[str, Any], _following: Any) -> None:
        if row["name"] == "a":
            raise Blocked("lock timeout")
        declared.append(row["name"])

    monkeypatch.setattr(schedules, "declare", declare)
    catalogue = Catalogue(at())
    cron = CronSchedule(expression="0 3 * * *", timezone="UTC")
    named = {
        name: SimpleNamespace(cron=cron, row=lambda name=name: {"name": name}) for name in "abc"
    }
    catalogue._queues = [SimpleNamespace(place=at(), schedules=named)]  # type: ignore[list-item]

    with pytest.raises(Blocked):  # a second was lost: the other chores go on before the next
        catalogue.declare_schedules(lambda verb: verb())
    assert declared == []
    assert catalogue.declare_schedules(lambda verb: verb()) == 60

    assert declared == ["b", "c"]
    with pytest.raises(Blocked):
        catalogue.declare_schedules(lambda verb: verb())
