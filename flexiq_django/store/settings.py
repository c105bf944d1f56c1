"""The deployment-wide store of settings: texts by key, shared by every namespace."""

from __future__ import annotations

from flexiq_django.exceptions import SettingConflictError
from flexiq_django.models import Setting
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import Database

SETTINGS = Setting._meta.db_table

_TRIES = 5


def get(scope: Scope, key: str) -> str | None:
    """The text stored under a key; ``None`` if there is none."""
    rows = Setting.objects.using(scope.using).filter(key=key)
    return rows.values_list("value", flat=True).first()


def everything(scope: Scope) -> dict[str, str]:
    """All keys with their texts, in the order of the keys."""
    rows = Setting.objects.using(scope.using).order_by("key")
    return dict(rows.values_list("key", "value"))


def put(scope: Scope, key: str, value: str) -> None:
    """Store a text, whatever stood there: the last writer wins."""
    database = open_database(scope)
    for _ in range(_TRIES):
        # Neither only if somebody stored it, and somebody deleted it, each in between.
        if _update(database, key, value) or _insert(database, key, value):
            return
    raise SettingConflictError(
        f"setting {key!r} could not be stored: others keep storing and deleting it, or this"
        " transaction cannot see what they stored"
    )


def remove(scope: Scope, key: str) -> bool:
    """Delete a key. False if it is not there."""
    deleted, _ = Setting.objects.using(scope.using).filter(key=key).delete()
    return deleted > 0


def put_if(scope: Scope, key: str, expected: str | None, value: str) -> bool:
    """Store a text if the key still holds ``expected``, or with ``None`` if it is not there."""
    database = open_database(scope)
    if expected is None:
        return _insert(database, key, value)
    with database.transaction():
        # The texts are compared here and not in SQL: MariaDB would fold case and trailing blanks.
        held = database.fetch(
            f"SELECT value FROM {SETTINGS} WHERE {_key(database)} = %(key)s"  # noqa: S608
            f"{database.for_update}",
            {"key": key},
        )
        return bool(held) and held[0][0] == expected and _update(database, key, value)


def _update(database: Database, key: str, value: str) -> bool:
    return bool(
        database.change(
            f"UPDATE {SETTINGS} SET value = %(value)s, updated_at = {{now}}"  # noqa: S608
            f" WHERE {_key(database)} = %(key)s",
            {"key": key, "value": value},
        )
    )


def _insert(database: Database, key: str, value: str) -> bool:
    """Whether the key was free. Whoever else is inserting it is waited for."""
    try:
        with database.savepoint():
            database.change(
                f"INSERT INTO {SETTINGS} ({_key(database)}, value, updated_at)"  # noqa: S608
                " VALUES (%(key)s, %(value)s, {now})",
                {"key": key, "value": value},
            )
    except Exception as error:
        if not database.clash(error):
            raise
        return False
    return True


def _key(database: Database) -> str:
    """The column, which MariaDB and MySQL know as a word of their own."""
    return str(database.connection.ops.quote_name("key"))
