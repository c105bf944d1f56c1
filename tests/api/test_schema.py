"""Migrating by a call, and the contract floor that keeps older builds out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.test.utils import CaptureQueriesContext

from flexiq_django import Queue
from flexiq_django.checks import check_database
from flexiq_django.core import contract
from flexiq_django.exceptions import (
    ConfigurationError,
    ContractError,
    InvalidOptionError,
    SettingConflictError,
)
from flexiq_django.models import Setting
from flexiq_django.store import schema, settings
from tests.concurrency import run_in_threads
from tests.factories import NOW

UP_TO_DATE = {"applied": [], "workflow_applied": [], "archived_jobs": 0, "schemaless": False}
ALL = ["0001_initial"]


@pytest.fixture
def no_tables(transactional_db: None) -> Iterator[None]:
    """The test's database before the first migration; afterwards as it was."""
    call_command("migrate", "flexiq_django", "zero", verbosity=0)
    yield
    call_command("migrate", "flexiq_django", verbosity=0)


@pytest.fixture
def empty_file(tmp_path: Path, django_db_blocker: Any) -> Iterator[str]:
    """The alias of an SQLite file that holds nothing."""
    alias = "fresh"
    connections.settings[alias] = {
        **connections.settings[DEFAULT_DB_ALIAS],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "fresh.sqlite3"),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
    with django_db_blocker.unblock():
        yield alias
        connections[alias].close()
    delattr(connections._connections, alias)
    del connections.settings[alias]


# --- migrate --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_database_that_is_up_to_date(queue: Queue) -> None:
    assert queue.migrate() == queue.migrate() == UP_TO_DATE


def test_migrating_an_empty_database(no_tables: None, queue: Queue) -> None:
    with pytest.raises(DatabaseError):
        queue.stats()

    assert queue.migrate() == {**UP_TO_DATE, "applied": ALL}

    assert queue.migrate() == UP_TO_DATE
    assert queue.stats()["pending"] == 0


def test_all_at_once_one_applies_and_the_others_wait(no_tables: None, queue: Queue) -> None:
    answers = run_in_threads([Queue("default").migrate for _ in range(3)])

    assert sorted(answer["applied"] for answer in answers) == [[], [], ALL]
    assert queue.stats()["pending"] == 0


def test_processes_at_once(no_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoLock:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(schema, "_one_at_a_time", NoLock())

    answers = run_in_threads([Queue("default").migrate for _ in range(3)])

    assert sorted(answer["applied"] for answer in answers) == [[], [], ALL]


def test_a_database_of_its_own(empty_file: str) -> None:
    assert Queue(using=empty_file).migrate()["applied"] == ALL
    assert Queue(using=empty_file).migrate() == UP_TO_DATE


def test_not_inside_a_transaction(empty_file: str) -> None:
    queue = Queue(using=empty_file)

    with transaction.atomic(using=empty_file), pytest.raises(ConfigurationError, match="'fresh'"):
        queue.migrate()

    assert queue.migrate()["applied"] == ALL


def test_a_migration_that_fails_says_why(empty_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseError("read-only")

    monkeypatch.setattr(schema, "call_command", fail)
    monkeypatch.setattr(schema, "_PATIENCE", 0)

    with pytest.raises(DatabaseError, match="read-only"):
        Queue(using=empty_file).migrate()


def test_the_first_use_migrates_if_it_may(empty_file: str) -> None:
    with pytest.raises(DatabaseError):
        Queue(using=empty_file).stats()

    assert Queue(using=empty_file, auto_migrate=True).stats()["pending"] == 0

    assert Queue(using=empty_file).migrate() == UP_TO_DATE


def test_the_first_use_inside_a_transaction_does_not_migrate(empty_file: str) -> None:
    queue = Queue(using=empty_file, auto_migrate=True)

    with transaction.atomic(using=empty_file), pytest.raises(ConfigurationError):
        queue.enqueue("app.work")

    assert queue.enqueue("app.work").status == "pending"


# --- the floor ------------------------------------------------------------------------------------


def store_floor(text: str) -> None:
    Setting.objects.create(key="contract:min_sdk", value=text, updated_at=NOW)


@pytest.mark.django_db
def test_the_floor_of_a_new_database_can_be_set_again(queue: Queue) -> None:
    floor = queue.min_contract()

    assert (floor, type(floor)) == (2, int)
    queue.set_min_contract(floor)
    assert queue.min_contract() == floor
    assert queue.get_setting("contract:min_sdk") == "2"


@pytest.mark.django_db
@pytest.mark.parametrize("level", [0, 1, 3, -1, True, "2", 2.0, None])
def test_levels_that_this_build_cannot_set(queue: Queue, level: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^level is"):
        queue.set_min_contract(level)
    assert queue.list_settings() == {}


@pytest.mark.django_db
def test_every_level_that_this_build_can_read(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "LEVEL", 4)
    for level in (4, 2, 3):
        queue.set_min_contract(level)
        assert queue.min_contract() == level


@pytest.mark.django_db
@pytest.mark.parametrize(("text", "words"), [("3", "upgrade flexiq_django"), ("x", "no contract")])
def test_a_build_below_the_floor_refuses_every_call(text: str, words: str) -> None:
    handle = Queue("default").enqueue("app.work")
    store_floor(text)
    queue = Queue("default")

    for call in (
        queue.stats,
        queue.list_jobs,
        queue.migrate,
        queue.min_contract,
        queue.list_settings,
        lambda: queue.set_setting("a", "b"),
        lambda: queue.delete_setting("a"),
        lambda: queue.enqueue("app.work"),
        lambda: queue.get_job(handle.id),
        lambda: queue.cancel_job(handle.id),
    ):
        with pytest.raises(ContractError, match=words):
            call()


@pytest.mark.django_db
def test_a_floor_that_is_mended_lets_the_queue_in() -> None:
    store_floor("3")
    queue = Queue("default")
    with pytest.raises(ContractError):
        queue.stats()

    Setting.objects.update(value="2")

    assert queue.stats()["pending"] == 0


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["x", "", "-1", "2.0", "9" * 10])
def test_a_floor_that_cannot_be_read_is_set_anew(text: str) -> None:
    store_floor(text)
    queue = Queue("default")

    queue.set_min_contract(2)

    assert queue.min_contract() == 2


@pytest.mark.django_db
@pytest.mark.parametrize("is_open", [True, False])
def test_a_build_below_the_floor_does_not_lower_it(queue: Queue, is_open: bool) -> None:
    if is_open:
        queue.stats()
    store_floor("3")

    with pytest.raises(ContractError, match="contract level 3 or newer"):
        queue.set_min_contract(2)

    assert Setting.objects.get().value == "3"


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["3", "x"])
def test_any_build_can_take_the_floor_away(text: str) -> None:
    store_floor(text)
    queue = Queue("default")

    assert queue.delete_setting("contract:min_sdk")

    assert not queue.delete_setting("contract:min_sdk")
    assert queue.min_contract() == 2


@pytest.mark.django_db
def test_a_floor_that_is_raised_in_this_moment_stays(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.set_min_contract(2)
    put_if = settings.put_if

    def raised_before(*arguments: Any) -> bool:
        Setting.objects.update(value="3")
        return put_if(*arguments)

    monkeypatch.setattr(settings, "put_if", raised_before)

    with pytest.raises(ContractError, match="contract level 3 or newer"):
        queue.set_min_contract(2)

    assert Setting.objects.get().value == "3"


@pytest.mark.django_db
def test_a_floor_that_others_keep_changing(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "put_if", lambda *_: False)

    with pytest.raises(SettingConflictError, match="keep changing it"):
        queue.set_min_contract(2)


def test_the_first_use_migrates_also_to_set_the_floor(empty_file: str) -> None:
    Queue(using=empty_file, auto_migrate=True).set_min_contract(2)

    assert Queue(using=empty_file).list_settings() == {"contract:min_sdk": "2"}


@pytest.mark.django_db
def test_the_floor_is_looked_at_once(queue: Queue) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connections[DEFAULT_DB_ALIAS]) as captured:
            queue.get_setting("a")
        return len(captured)

    assert [queries(), queries(), queries()] == [2, 1, 1]


def test_declaring_and_naming_a_queue_asks_no_database() -> None:
    queue = Queue("default")

    @queue.task
    def work() -> None: ...

    assert repr(queue) == "<Queue 'default' on 'default'>"
    assert queue.place.namespace == "default"
    assert queue.retention_policy.defaulted


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["3", "x"])
def test_the_system_check_says_it(text: str) -> None:
    store_floor(text)

    (found,) = check_database(databases=[DEFAULT_DB_ALIAS])

    assert found.id == "flexiq.E018"
    assert found.is_serious()
    assert found.hint


@pytest.mark.django_db
def test_a_floor_we_reach_is_no_problem() -> None:
    store_floor("2")

    assert check_database(databases=[DEFAULT_DB_ALIAS]) == []
