"""The parts of a dialect: batches of JSON, arithmetic with moments, kinds of trouble."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connections,
)

from flexiq_django.store.ids import new_id
from flexiq_django.store.vendors import batches, dialect, open_database
from flexiq_django.store.vendors.batches import json_batches
from tests.factories import NOW, at, later
from tests.store.acting import claim, enqueue

KINDS = {
    "id": "id", "text": "text", "number": "int", "large": "big", "ratio": "float",
    "yes": "bool", "moment": "moment",
}  # fmt: skip


def test_no_rows_are_no_batch() -> None:
    assert list(json_batches([])) == []


def test_a_batch_is_as_long_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_CHARS", 40)
    rows = [{"a": "x" * 10}] * 5 + [{"a": "y" * 100}, {"a": "z"}]

    found = [json.loads(batch) for batch in json_batches(rows)]

    assert found == [rows[:2], rows[2:4], rows[4:5], rows[5:6], rows[6:]]


def test_a_database_we_do_not_speak_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="not on oracle"):
        dialect("oracle")


@pytest.mark.django_db
def test_a_batch_is_read_back_as_it_was_written() -> None:
    database = open_database(at())
    key = new_id()
    text = 'ü"\\\n\U0001f4e7%s{now}'
    moment = "2026-03-02 12:00:00.123456" + database.zone_suffix
    full: dict[str, Any] = {
        "id": database.id_text(key), "text": text, "number": -7, "large": 2**63 - 1,
        "ratio": 0.1, "yes": 1, "moment": moment,
    }  # fmt: skip
    source = database.rows_from_json("batch", KINDS)

    rows = database.fetch(
        f"SELECT {', '.join(f'b.{name}' for name in KINDS)} FROM {source}",
        {"batch": json.dumps([full, {}])},
    )

    assert len(rows) == 2
    (first,) = [row for row in rows if row[0] is not None]
    (second,) = [row for row in rows if row[0] is None]
    assert (database.read_id(first[0]), first[1:5]) == (key, (text, -7, 2**63 - 1, 0.1))
    assert bool(first[5])
    assert database.read(first[6]) == datetime(2026, 3, 2, 12, 0, 0, 123456, UTC)
    assert second == (None,) * 7


@pytest.mark.django_db
@pytest.mark.parametrize("ms", [0, 1, 1_500, -250, 86_400_000, 100 * 365 * 86_400_000])
def test_moments_and_milliseconds_add_up(ms: int) -> None:
    database = open_database(at())

    ((found,),) = database.fetch(f"SELECT {database.plus_ms('{now}', '%(ms)s')}", {"ms": ms})

    assert database.read(found) == later(ms / 1000)


@pytest.mark.django_db
def test_a_moment_plus_nothing_is_nothing() -> None:
    database = open_database(at())

    assert database.fetch(f"SELECT {database.plus_ms('{now}', 'NULL')}") == [(None,)]


@pytest.mark.django_db
def test_ids_are_spelled_as_the_column_spells_them() -> None:
    database = open_database(at())
    key = new_id()

    assert database.read_id(database.id_text(key)) == key
    assert isinstance(database.read_id(str(key)), UUID)


@pytest.mark.django_db
def test_the_clock_stands_still_in_a_scope_with_a_time() -> None:
    database = open_database(at())

    assert [database.read(moment) for moment in database.fetch("SELECT {now}, {now}")[0]] == [
        NOW, NOW
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_transaction_within_itself_is_one() -> None:
    database, connection = open_database(at()), connections["default"]

    with database.transaction():
        with database.transaction():
            assert connection.in_atomic_block
            assert connection.savepoint_ids == []
        assert connection.in_atomic_block
    assert not connection.in_atomic_block


def caused(error: Exception, state: str | None) -> Exception:
    cause = Exception()
    cause.sqlstate = state  # type: ignore[attr-defined]
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("vendor", "error", "trouble"),
    [
        ("postgresql", caused(OperationalError(), "40001"), "conflict"),
        ("postgresql", caused(OperationalError(), "40P01"), "conflict"),
        ("postgresql", caused(OperationalError(), "55P03"), "conflict"),
        ("postgresql", caused(OperationalError(), "57P01"), "outage"),
        ("postgresql", caused(OperationalError(), "53300"), "outage"),
        ("postgresql", caused(OperationalError(), "08006"), "outage"),
        ("postgresql", caused(OperationalError(), None), "outage"),
        ("postgresql", InterfaceError("connection already closed"), "outage"),
        ("postgresql", caused(IntegrityError(), "23505"), None),
        ("postgresql", caused(ProgrammingError(), "42P01"), None),
        ("postgresql", caused(DataError(), "22003"), None),
        ("mysql", OperationalError(1205, "Lock wait timeout exceeded"), "conflict"),
        ("mysql", OperationalError(1213, "Deadlock found"), "conflict"),
        ("mysql", OperationalError(2006, "Server has gone away"), "outage"),
        ("mysql", OperationalError(2013, "Lost connection"), "outage"),
        ("mysql", OperationalError(2002, "Can't connect"), "outage"),
        ("mysql", OperationalError(1040, "Too many connections"), "outage"),
        ("mysql", InterfaceError(0, ""), "outage"),
        ("mysql", OperationalError(1054, "Unknown column"), None),
        ("mysql", IntegrityError(1062, "Duplicate entry"), None),
        ("mysql", DatabaseError(), None),
        ("sqlite", OperationalError("database is locked"), "conflict"),
        ("sqlite", OperationalError("database table is locked: x"), "conflict"),
        ("sqlite", OperationalError("database or disk is full"), "outage"),
        ("sqlite", OperationalError("unable to open database file"), "outage"),
        ("sqlite", OperationalError("disk I/O error"), "outage"),
        ("sqlite", ProgrammingError("Cannot operate on a closed database."), "outage"),
        ("sqlite", OperationalError("no such table: flexiq_jobs"), None),
        ("sqlite", IntegrityError("UNIQUE constraint failed: x.y"), None),
        ("sqlite", IntegrityError("NOT NULL constraint failed: x.rate_full_at"), None),
        ("sqlite", IntegrityError("CHECK constraint failed: door_is_locked"), None),
        ("postgresql", ValueError(), None),
        ("mysql", ValueError(), None),
        ("sqlite", ValueError("locked"), None),
    ],
)  # fmt: skip
def test_trouble_is_told_from_a_real_error(
    vendor: str, error: Exception, trouble: str | None
) -> None:
    pytest.importorskip({"postgresql": "psycopg", "mysql": "MySQLdb"}.get(vendor, "sqlite3"))

    assert dialect(vendor).trouble(error) == trouble


@pytest.mark.django_db(transaction=True)
def test_reserved_words_are_quoted(vendor: str) -> None:
    """RANK is a reserved word in MySQL 8, where an unquoted column of that name is an error."""
    if vendor != "mysql":
        pytest.skip("RANK is reserved in MySQL only")
    seen: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    enqueue(2, queue="a")
    enqueue(2, queue="b")
    with connections["default"].execute_wrapper(note):
        assert len(claim(limit=3)) == 3
        assert len(claim(limit=3)) == 1

    assert [sql for sql in seen if " rank" in sql.replace("\n", " ")] == []
    assert [sql for sql in seen if "`rank`" in sql]
