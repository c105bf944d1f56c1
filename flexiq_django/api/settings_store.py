"""The settings store of ``Queue``: texts by key, for the whole deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexiq_django.api.schema import place_despite_floor
from flexiq_django.api.twins import async_twin
from flexiq_django.core.contract import FLOOR_KEY
from flexiq_django.exceptions import InvalidOptionError, ReservedSettingError
from flexiq_django.store import settings

if TYPE_CHECKING:
    from flexiq_django.store.scope import Scope

#: What the column holds.
LONGEST_KEY = 200

#: How the keys of the queue itself begin, each with what is there instead of writing to it.
OWN_KEYS = {
    "contract:": "set_min_contract() sets the contract floor, delete_setting() takes it away",
    "retention:": "workers report there; RETENTION and Queue(retention=...) set the windows",
}


class SettingsStore:
    """Texts that every worker and every process on the same database sees, in any namespace.

    A key has at most 200 characters and no blanks at its ends. Anything but a text raises
    ``TypeError``, a text that no database can store ``InvalidOptionError``. Keys that begin with
    ``contract:`` or ``retention:`` are the queue's own: read and deleted like any other, but
    writing to one raises ``ReservedSettingError``.
    """

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

        @property
        def place(self) -> Scope:
            """Where the queue lives, before it is open."""

    def get_setting(self, key: str) -> str | None:
        """The text stored under a key; ``None`` if it was never set."""
        return settings.get(self.scope, _key(key))

    def set_setting(self, key: str, value: str) -> None:
        """Store a text under a key, for the whole deployment. The last writer wins.

        Put ``json.dumps()`` around anything structured.
        """
        settings.put(self.scope, _key_of_others(key), _text("value", value))

    def delete_setting(self, key: str) -> bool:
        """Delete a key. False if it was not set.

        The contract floor, ``contract:min_sdk``, can be deleted by any build, also by one that it
        keeps out: a floor that nobody can read or reach would otherwise stay for ever.
        """
        scope = place_despite_floor(self) if _key(key) == FLOOR_KEY else self.scope
        return settings.remove(scope, key)

    def list_settings(self) -> dict[str, str]:
        """Every key with its text, those that the queue stores for itself included."""
        return settings.everything(self.scope)

    def set_setting_if(self, key: str, expected: str | None, value: str) -> bool:
        """Store a text only while the key still holds ``expected``; ``None``: while it is not set.

        False means that somebody else was first: read again and decide anew. Of any number of
        callers that expect the same, exactly one is told True.
        """
        held = None if expected is None else _text("expected", expected)
        return settings.put_if(self.scope, _key_of_others(key), held, _text("value", value))

    aget_setting = async_twin(get_setting)
    aset_setting = async_twin(set_setting)
    adelete_setting = async_twin(delete_setting)
    alist_settings = async_twin(list_settings)
    aset_setting_if = async_twin(set_setting_if)


def is_own_key(key: str) -> bool:
    """Whether the queue keeps the key for itself."""
    return key.startswith(tuple(OWN_KEYS))


def _key_of_others(value: Any) -> str:
    key = _key(value)
    for beginning, instead in OWN_KEYS.items():
        if key.startswith(beginning):
            raise ReservedSettingError(
                f"key is {key!r}; those that begin with {beginning!r} are the queue's own:"
                f" {instead}"
            )
    return key


def _key(value: Any) -> str:
    key = _text("key", value)
    # MariaDB cannot tell "a" and "a " apart in an index, so no database may hold both.
    if len(key) > LONGEST_KEY or key != key.strip():
        raise InvalidOptionError(
            f"key is {key[:50]!r}, of {len(key)} characters; allowed are at most {LONGEST_KEY},"
            " without blanks at the ends"
        )
    return key


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}; it must be a text (json.dumps?)")
    if "\x00" in value:
        raise InvalidOptionError(f"{name} holds a NUL character, which PostgreSQL cannot store")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidOptionError(f"{name} holds half of a surrogate pair") from None
    return value
