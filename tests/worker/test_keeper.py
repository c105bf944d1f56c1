"""Keeper: conflicts at once again, outages on a new connection, real errors to the caller."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import DataError, OperationalError, ProgrammingError, connections, transaction

from flexiq_django.models import Job
from flexiq_django.store import link
from flexiq_django.store.scope import Scope
from flexiq_django.worker import connections as worker_connections
from flexiq_django.worker.connections import (
    GaveUp,
    Keeper,
    clean_after_job,
    clean_before_job,
)
from tests.conftest import END_OTHER_CLIENTS
from tests.factories import JobFactory
from tests.store.acting import enqueue_one
from tests.testapp.models import Mark

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_connection() -> Iterator[None]:
    """What a keeper does to its connection ends with the test."""
    yield
    connections["default"].close()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which is waited for."""
    pauses: list[float] = []
    monkeypatch.setattr(Keeper, "_pause", lambda _self, seconds: pauses.append(seconds))
    return pauses


@pytest.fixture
def troubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors say themselves what kind of trouble they are."""
    monkeypatch.setattr(link, "trouble", lambda _scope, error: error.args[0])


def keeper(must_give_up: Callable[[], bool] = lambda: False, **options: Any) -> Keeper:
    return Keeper(Scope(), must_give_up, **options)


def failing(*errors: Exception, answer: str = "done") -> Callable[[], str]:
    """A verb that fails with each of these once, and then succeeds."""
    left = list(errors)

    def verb() -> str:
        if left:
            raise left.pop(0)
        return answer

    return verb


def test_an_answer_is_passed_on() -> None:
    assert keeper().call(lambda: 5) == 5


def test_a_conflict_is_tried_again_on_the_same_connection(
    troubles: None, patience: list[float]
) -> None:
    held = keeper()
    held.call(Job.objects.count)
    before = connections["default"].connection

    assert held.call(failing(*[OperationalError("conflict")] * 5)) == "done"

    assert connections["default"].connection is before
    assert patience == []


def test_an_outage_is_waited_for_with_growing_pauses_on_new_connections(
    troubles: None, patience: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    held = keeper()
    held.call(Job.objects.count)
    before = connections["default"].connection

    with caplog.at_level(logging.WARNING):
        assert held.call(failing(*[OperationalError("outage")] * 8)) == "done"

    assert connections["default"].connection is not before
    assert patience == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert caplog.text.count("database 'default' is away (outage)") == 8


@pytest.mark.parametrize("error", [DataError(None), ProgrammingError(None), ValueError("mine")])
def test_any_other_error_is_the_callers(troubles: None, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        keeper().call(failing(error))

    assert caught.value is error


@pytest.mark.parametrize("trouble", ["conflict", "outage"])
def test_who_must_leave_gives_up(troubles: None, trouble: str) -> None:
    error = OperationalError(trouble)

    with pytest.raises(GaveUp) as caught:
        keeper(lambda: True).call(failing(error))

    assert caught.value.__cause__ is error


def test_who_must_leave_still_gets_an_answer_that_is_there() -> None:
    assert keeper(lambda: True).call(lambda: 5) == 5


def test_a_real_conflict_is_survived(vendor: str) -> None:
    """A row that another client has locked, with no patience for it."""
    if vendor == "sqlite":
        pytest.skip("SQLite has no row locks; its conflicts are told by their text")
    job = JobFactory()
    attempts: list[int] = []

    def verb() -> int:
        attempts.append(1)
        if len(attempts) == 1:
            raise_lock_error(vendor)
        return Job.objects.filter(id=job.id).count()

    assert keeper().call(verb) == 1
    assert len(attempts) == 2


def raise_lock_error(vendor: str) -> None:
    states = {
        "postgresql": "DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$",
        "mysql": "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'deadlock'",
    }
    with connections["default"].cursor() as cursor:
        cursor.execute(states[vendor])


def test_a_connection_that_the_server_ended_is_replaced(vendor: str) -> None:
    if vendor == "sqlite":
        connections["default"].ensure_connection()
        connections["default"].connection.close()  # as good as ended: every use fails from now on
    else:
        held = keeper()
        held.call(Job.objects.count)
        end_this_connection(vendor)

    key = keeper().call(enqueue_one)

    assert Job.objects.get().id == key


def end_this_connection(vendor: str) -> None:
    mine = connections["default"]
    with mine.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()" if vendor == "mysql" else "SELECT pg_backend_pid()")
        (number,) = cursor.fetchone()
    other = mine.copy()
    kill = "KILL %s" if vendor == "mysql" else "SELECT pg_terminate_backend(%s)"
    assert vendor in END_OTHER_CLIENTS
    try:
        with other.cursor() as cursor:
            cursor.execute(kill, [number])
    finally:
        other.close()


def test_a_connection_of_its_own_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Scope] = []
    monkeypatch.setattr(link, "set_up", lambda scope, _silence: prepared.append(scope))
    connections["default"].ensure_connection()  # somebody else has used it before
    held = keeper()

    held.call(Job.objects.count)
    held.call(Job.objects.count)
    assert len(prepared) == 1

    held.close()
    held.call(Job.objects.count)
    assert len(prepared) == 2


def test_a_connection_of_a_job_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "set_up", pytest.fail)
    connections["default"].close()

    assert keeper(is_own=False).call(Job.objects.count) == 0


def test_a_worker_on_mariadb_reads_what_is_committed(vendor: str) -> None:
    if vendor != "mysql":
        pytest.skip("only MariaDB and MySQL are set up with an isolation level")
    connections["default"].close()

    def level() -> str:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT @@tx_isolation")
            return str(cursor.fetchone()[0])

    assert keeper().call(level) == "READ-COMMITTED"


# --- around a job ---------------------------------------------------------------------------------


def test_a_transaction_that_a_body_left_open_is_rolled_back() -> None:
    connection = connections["default"]
    transaction.set_autocommit(False)
    Mark.objects.create(key="left open")

    clean_after_job()

    assert connection.connection is None
    assert not connection.in_atomic_block
    assert connection.get_autocommit()
    assert Mark.objects.count() == 0


def test_an_atomic_block_that_was_never_left_is_forgotten() -> None:
    connection = connections["default"]
    transaction.atomic().__enter__()
    Mark.objects.create(key="left open")
    transaction.on_commit(pytest.fail)

    clean_after_job()

    assert (connection.in_atomic_block, connection.savepoint_ids) == (False, [])
    assert Mark.objects.count() == 0
    Mark.objects.create(key="next job")  # would run on_commit of the one before
    assert Mark.objects.count() == 1


def test_a_healthy_connection_is_kept_as_long_as_the_project_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = connections["default"]
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
    Mark.objects.count()
    before = connection.connection

    clean_after_job()
    clean_before_job()

    assert connection.connection is before
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    Mark.objects.count()
    clean_after_job()
    assert connection.connection is None


def test_a_connection_that_broke_while_idle_is_dropped(
    vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if vendor == "sqlite":
        pytest.skip("a file does not break while nobody uses it")
    connections["default"].close()
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", None)
    Mark.objects.count()
    clean_after_job()
    end_this_connection(vendor)
    monkeypatch.setattr(worker_connections, "_FRESH_SECONDS", -1.0)

    clean_before_job()

    assert Mark.objects.count() == 0


def test_statements_are_not_remembered_from_job_to_job(settings: Any) -> None:
    settings.DEBUG = True
    connection = connections["default"]
    connection.force_debug_cursor = True
    try:
        Mark.objects.count()
        assert connection.queries_log
        clean_after_job()
        assert not connection.queries_log
    finally:
        connection.force_debug_cursor = False


def test_a_thread_without_a_connection_is_not_looked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clean_after_job()  # whatever was open: CONN_MAX_AGE is 0 in these tests
    assert connections["default"].connection is None

    with monkeypatch.context() as patched:
        patched.setattr(type(connections), "all", pytest.fail)
        clean_before_job()
        clean_after_job(is_good=True)

    transaction.atomic().__enter__()  # it has one now
    Mark.objects.create(key="left open")
    clean_after_job()
    assert not connections["default"].in_atomic_block
    assert Mark.objects.count() == 0


def test_a_connection_that_broke_while_it_was_opened_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clean_after_job()
    connection = connections["default"]
    with monkeypatch.context() as patched:
        patched.setattr(connection, "init_connection_state", _lose(connection))
        with pytest.raises(OperationalError):
            Mark.objects.count()  # the driver has connected; Django has told nobody
    assert connection.connection is not None

    clean_after_job(is_good=True)

    assert connection.connection is None
    assert Mark.objects.count() == 0


def _lose(connection: Any) -> Callable[[], None]:
    def lose() -> None:
        connection.connection.close()
        raise OperationalError("the server has gone away")

    return lose
