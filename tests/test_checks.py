"""System checks: each says something when it should, and nothing else."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core import checks as django_checks
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from flexiq_django import Queue, checks
from flexiq_django.checks import (
    check_alias,
    check_auto_retry,
    check_database,
    check_router,
    check_settings,
    check_transactional_tasks,
    check_twin,
    database,
    project,
    subjects,
)
from tests.testapp import models as _user_models  # noqa: F401 - the app has a model


def ids(messages: list[django_checks.CheckMessage]) -> list[str]:
    """The ids of messages; each must say what to do."""
    assert all(each.hint for each in messages), messages
    return [str(each.id) for each in messages]


@pytest.fixture
def other_alias() -> Iterator[str]:
    """A second database, in memory, which nothing migrates."""
    name = "jobs"
    connections.settings[name] = {
        **connections.settings[DEFAULT_DB_ALIAS],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {},
    }
    yield name
    connections[name].close()
    delattr(connections._connections, name)
    del connections.settings[name]


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Queue]:
    """Declares queues; the checks see these and an empty default one, not those of other tests."""
    declared = [Queue()]
    monkeypatch.setattr(subjects, "declared_queues", lambda: declared)

    def declare_queue(**options: Any) -> Queue:
        declared.append(Queue(**options))
        return declared[-1]

    return declare_queue


class Router:
    """A project's router, as bad as the test wants it."""

    def __init__(self, *, write: str | None = None, refused: tuple[str, ...] = ()) -> None:
        self.write = write
        self.refused = refused

    def db_for_write(self, model: Any, **_: Any) -> str | None:
        return self.write

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **_: Any
    ) -> Any:
        return False if app_label == "flexiq_django" and model_name in self.refused else None


@pytest.fixture
def use_router(settings: Any) -> Callable[..., None]:
    """Install a router."""

    def use(**options: Any) -> None:
        settings.DATABASE_ROUTERS = [Router(**options)]

    return use


def test_the_test_project_has_no_problem() -> None:
    for check in (check_settings, check_alias, check_router, check_transactional_tasks, check_twin):
        assert check() == []


@pytest.mark.django_db
def test_the_test_database_has_no_problem() -> None:
    assert check_database(databases=[DEFAULT_DB_ALIAS]) == []


def test_they_are_registered() -> None:
    registered = django_checks.registry.registry.get_checks(include_deployment_checks=True)
    ours = {check.__name__ for check in registered if check.__module__.startswith(checks.__name__)}
    assert ours == {
        "check_settings", "check_alias", "check_router", "check_transactional_tasks", "check_twin",
        "check_database", "check_auto_retry",
    }  # fmt: skip


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"NO_SUCH_KEY": 1}, "NO_SUCH_KEY"),
        ({"DEFAULT_RETRY": -1}, "DEFAULT_RETRY"),
        ([], "dict"),
        (None, "dict"),
    ],
)
def test_bad_settings(settings: Any, given: Any, word: str) -> None:
    settings.FLEXIQ = given
    found = check_settings()
    assert ids(found) == ["flexiq.E001"]
    assert word in found[0].msg
    # What reads the settings stays silent: the cause has been said.
    for check in (check_alias, check_router, check_transactional_tasks):
        assert check() == []
    assert check_database(databases=[DEFAULT_DB_ALIAS]) == []


def test_every_bad_key_is_said(settings: Any) -> None:
    settings.FLEXIQ = {"DEFAULT_RETRY": -1, "LISTEN": "yes"}
    assert ids(check_settings()) == ["flexiq.E001", "flexiq.E001"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"LOCK_GRACE_SECONDS": 40, "HEARTBEAT_SECONDS": 39}, []),
        ({"LOCK_GRACE_SECONDS": 40, "HEARTBEAT_SECONDS": 40}, ["flexiq.E004"]),
        ({"LOCK_GRACE_SECONDS": 40, "STOP_TIMEOUT_SECONDS": 39.5}, []),
        ({"LOCK_GRACE_SECONDS": 40, "STOP_TIMEOUT_SECONDS": 40}, ["flexiq.E005"]),
        ({"LOCK_GRACE_SECONDS": 10, "HEARTBEAT_SECONDS": 11}, ["flexiq.E004", "flexiq.E005"]),
    ],
)
def test_times_that_do_not_fit(settings: Any, given: Any, expected: list[str]) -> None:
    settings.FLEXIQ = given
    assert ids(check_settings()) == expected


def test_tokens_need_their_package(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"KEY": "s" * 32, "ALGORITHMS": ["HS256"]}
    settings.FLEXIQ = {"OPERATOR": {"ENABLED": True, "JWT": rules}}
    assert check_settings() == []

    monkeypatch.setitem(sys.modules, "jwt", None)  # as if it were not installed
    assert ids(check_settings()) == ["flexiq.E019"]
    settings.FLEXIQ = {"OPERATOR": {"ENABLED": True}}
    assert check_settings() == []


def test_an_alias_that_is_none(settings: Any) -> None:
    settings.FLEXIQ = {"DATABASE": "nowhere"}
    found = check_alias()
    assert ids(found) == ["flexiq.E002"]
    assert "default" in str(found[0].hint)
    assert check_router() == []
    assert check_database(databases=[DEFAULT_DB_ALIAS, "nowhere"]) == []


def test_a_queue_in_the_code_with_an_alias_that_is_none(queue: Callable[..., Queue]) -> None:
    queue(using="elsewhere")
    assert ids(check_alias()) == ["flexiq.E002"]


def test_a_database_we_do_not_know(other_alias: str, settings: Any, monkeypatch: Any) -> None:
    settings.FLEXIQ = {"DATABASE": other_alias}
    assert check_alias() == []
    monkeypatch.setattr(connections[other_alias], "vendor", "oracle")
    found = check_alias()
    assert ids(found) == ["flexiq.E003"]
    assert "oracle" in found[0].msg
    assert check_database(databases=[other_alias]) == []


# --- routers, transactional tasks, the other app --------------------------------------------------


@pytest.mark.parametrize("refused", [("job",), ("job", "deadletter", "worker")])
def test_a_router_that_splits_our_tables(use_router: Any, refused: tuple[str, ...]) -> None:
    use_router(refused=refused)
    found = check_router()
    assert ids(found) == ["flexiq.E006"]
    assert "Job" in found[0].msg


def test_a_router_that_leaves_us_alone(use_router: Any) -> None:
    use_router()
    assert check_router() == []
    use_router(write=DEFAULT_DB_ALIAS)
    assert check_router() == []


def test_a_router_that_sends_our_rows_elsewhere(use_router: Any, other_alias: str) -> None:
    use_router(write=other_alias)
    found = check_router()
    assert ids(found) == ["flexiq.W007"]
    assert other_alias in found[0].msg


def test_without_a_router_an_alias_of_its_own_is_fine(settings: Any, other_alias: str) -> None:
    settings.FLEXIQ = {"DATABASE": other_alias}
    assert check_router() == []


def declare(queue: Queue, *, transactional: bool) -> None:
    """A task that looks as if the user's app had declared it."""

    def work() -> None: ...

    work.__module__ = "tests.testapp.tasks"
    queue.task(name="testapp.work", transactional=transactional)(work)


def test_a_transactional_task_in_another_database(
    queue: Callable[..., Queue], other_alias: str, use_router: Any
) -> None:
    kept = queue(using=other_alias)
    declare(kept, transactional=False)
    assert check_transactional_tasks() == []
    declare(kept, transactional=True)
    found = check_transactional_tasks()
    assert ids(found) == ["flexiq.W008"]
    for word in ("testapp.work", other_alias, "'default'"):
        assert word in found[0].msg
    use_router(write=other_alias)
    assert check_transactional_tasks() == []


def test_a_transactional_task_beside_its_rows(queue: Callable[..., Queue]) -> None:
    kept = queue()
    declare(kept, transactional=True)
    assert check_transactional_tasks() == []


def test_the_other_app_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project.apps, "is_installed", lambda name: True)
    assert ids(check_twin()) == ["flexiq.W009"]


# --- the database ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_only_databases_that_are_asked_about() -> None:
    assert check_database() == []
    assert check_database(databases=[]) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "version", "is_old"),
    [
        ("SQLite", (3, 36, 0), True),
        ("SQLite", (3, 37, 0), False),
        ("PostgreSQL", (13, 9), True),
        ("PostgreSQL", (14, 0), False),
        ("MariaDB", (10, 5, 29), True),
        ("MariaDB", (10, 6, 0), False),
        ("MySQL", (8, 0, 4), True),
        ("MySQL", (8, 0, 11), False),
    ],
)
def test_versions(
    monkeypatch: pytest.MonkeyPatch, name: str, version: tuple[int, ...], is_old: bool
) -> None:
    class Server:
        alias = DEFAULT_DB_ALIAS
        display_name = name

        def get_database_version(self) -> tuple[int, ...]:
            return version

    found = list(database._version(Server()))  # type: ignore[arg-type]
    assert ids(found) == (["flexiq.E011"] if is_old else [])


@pytest.mark.django_db
def test_an_old_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connections[DEFAULT_DB_ALIAS]
    monkeypatch.setattr(connection, "get_database_version", lambda: (1, 2))
    found = check_database(databases=[DEFAULT_DB_ALIAS])
    assert ids(found) == ["flexiq.E011"]
    assert "1.2" in found[0].msg


@pytest.mark.django_db
def test_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "get_database_version", refuse)
    found = check_database(databases=[DEFAULT_DB_ALIAS])
    assert ids(found) == ["flexiq.E010"]
    assert "connection refused" in found[0].msg


def test_sqlite_as_django_makes_it(
    settings: Any, other_alias: str, tmp_path: Any, django_db_blocker: Any
) -> None:
    settings.FLEXIQ = {"DATABASE": other_alias}
    connections.settings[other_alias]["NAME"] = str(tmp_path / "plain.sqlite3")
    with django_db_blocker.unblock():
        found = check_database(databases=[other_alias])
        connections[other_alias].close()
    assert ids(found) == ["flexiq.W013", "flexiq.W014", "flexiq.W012"]
    assert "'transaction_mode': 'IMMEDIATE'" in str(found[0].hint)
    assert "journal_mode=WAL" in str(found[1].hint)
    assert "0001_initial" in found[2].msg
    assert "migrate flexiq_django --database jobs" in str(found[2].hint)


def test_sqlite_with_the_options_that_the_hint_says(
    settings: Any, other_alias: str, tmp_path: Any, django_db_blocker: Any
) -> None:
    settings.FLEXIQ = {"DATABASE": other_alias}
    connections.settings[other_alias]["NAME"] = str(tmp_path / "good.sqlite3")
    connections.settings[other_alias]["OPTIONS"] = dict(database._SQLITE_OPTIONS)
    with django_db_blocker.unblock():
        found = check_database(databases=[other_alias])
        connections[other_alias].close()
    assert ids(found) == ["flexiq.W012"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("command", "said"), [("check", ["flexiq.W012"]), ("migrate", [])], ids=["check", "migrate"]
)
def test_what_migrate_is_about_to_cure_it_does_not_say(
    monkeypatch: pytest.MonkeyPatch, command: str, said: list[str]
) -> None:
    real = database.MigrationLoader.build_graph

    def without_applied(self: Any) -> None:
        real(self)
        self.applied_migrations = {}

    monkeypatch.setattr(database.MigrationLoader, "build_graph", without_applied)
    monkeypatch.setattr(sys, "argv", ["manage.py", command])
    found = check_database(databases=[DEFAULT_DB_ALIAS])
    assert ids(found) == said
    assert not any(each.is_serious() for each in found)


@pytest.mark.django_db
def test_the_command_runs_them(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check", databases=[DEFAULT_DB_ALIAS], fail_level="WARNING")


def postgresql_only() -> None:
    """Skip, aloud, where the options of PostgreSQL cannot be looked at."""
    if "postgresql" not in django_settings.DATABASES[DEFAULT_DB_ALIAS]["ENGINE"]:
        pytest.skip("about PostgreSQL")


@pytest.mark.django_db
def test_postgresql_through_psycopg_2(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    postgresql_only()
    from django.db.backends.postgresql import psycopg_any

    monkeypatch.setattr(psycopg_any, "is_psycopg3", False)
    assert ids(check_database(databases=[DEFAULT_DB_ALIAS])) == ["flexiq.W015"]
    settings.FLEXIQ = {"LISTEN": False}
    assert check_database(databases=[DEFAULT_DB_ALIAS]) == []


@pytest.mark.django_db
@pytest.mark.parametrize("sign", [{"PORT": "6432"}, {"DISABLE_SERVER_SIDE_CURSORS": True}], ids=str)
def test_postgresql_behind_a_pooler(
    settings: Any, monkeypatch: pytest.MonkeyPatch, sign: dict[str, Any]
) -> None:
    postgresql_only()
    connection = connections[DEFAULT_DB_ALIAS]
    assert list(database._postgresql(connection)) == []
    for name, value in sign.items():
        monkeypatch.setitem(connection.settings_dict, name, value)
    assert ids(list(database._postgresql(connection))) == ["flexiq.W023"]
    settings.FLEXIQ = {"LISTEN": False}
    assert list(database._postgresql(connection)) == []


@pytest.mark.django_db
@pytest.mark.parametrize(("pool", "size"), [(True, "4"), ({"max_size": 9}, "9"), ({}, None)])
def test_postgresql_with_a_pool(monkeypatch: pytest.MonkeyPatch, pool: Any, size: str) -> None:
    postgresql_only()
    monkeypatch.setitem(connections[DEFAULT_DB_ALIAS].settings_dict["OPTIONS"], "pool", pool)
    found = list(database._postgresql(connections[DEFAULT_DB_ALIAS]))
    if size is None:
        assert found == []
    else:
        assert ids(found) == ["flexiq.W016"]
        assert f"pool of {size};" in found[0].msg
        assert f"plus {database.WORKER_CONNECTIONS}," in str(found[0].hint)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ({}, []),
        ({"isolation_level": "READ COMMITTED"}, []),
        ({"isolation_level": "repeatable read"}, ["flexiq.I017"]),
        ({"isolation_level": None}, ["flexiq.I017"]),
    ],
)
def test_mysql_isolation(level: dict[str, Any], expected: list[str]) -> None:
    class Server:
        alias = DEFAULT_DB_ALIAS
        settings_dict = {"OPTIONS": level}

    found = list(database._mysql(Server()))  # type: ignore[arg-type]
    assert ids(found) == expected
    assert all(not each.is_serious() for each in found)


# --- dead letters that are retried by themselves --------------------------------------------------


@pytest.mark.parametrize(
    ("flexiq", "words"),
    [
        ({}, None),
        ({"DLQ_AUTO_RETRY_MAX": 10**6}, None),
        ({"DLQ_AUTO_RETRY_DELAY": 600, "DLQ_AUTO_RETRY_MAX": 100, "RESULT_TTL": 601}, None),
        ({"DLQ_AUTO_RETRY_DELAY": 600, "DLQ_AUTO_RETRY_MAX": 101}, "101 times"),
        ({"DLQ_AUTO_RETRY_DELAY": 600, "RESULT_TTL": 600}, "deleted after 600 s"),
    ],
)
def test_automatic_retries_that_make_no_sense(
    settings: Any, flexiq: dict[str, Any], words: str | None
) -> None:
    settings.FLEXIQ = flexiq
    found = check_auto_retry()
    assert ids(found) == ([] if words is None else ["flexiq.W018"])
    assert all(words in each.msg for each in found)


def test_queues_of_a_namespace_that_differ_in_their_automatic_retries(
    queue: Callable[..., Queue],
) -> None:
    queue(namespace="a", dlq_auto_retry_delay=60)
    queue(namespace="a")
    queue(namespace="a", dlq_auto_retry_delay=60, dlq_auto_retry_max=3)
    queue(namespace="b", dlq_auto_retry_delay=90)
    assert check_auto_retry() == []
    queue(namespace="a", dlq_auto_retry_delay=90)
    (found,) = check_auto_retry()
    assert "namespace 'a'" in found.msg
    assert "3 times after 90 s and 3 times after 60 s" in found.msg


def test_wrong_settings_are_told_by_one_check_alone(settings: Any) -> None:
    settings.FLEXIQ = {"DLQ_AUTO_RETRY_DELAY": "soon"}
    assert check_auto_retry() == []
    assert ids(check_settings()) == ["flexiq.E001"]
