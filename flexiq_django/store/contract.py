"""The contract floor: whether this build may work with a database."""

from __future__ import annotations

from flexiq_django.core import contract
from flexiq_django.exceptions import ContractError, SettingConflictError
from flexiq_django.store import settings
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

_TRIES = 5


def floor(scope: Scope) -> int:
    """The lowest contract level that may work here. Raises ``ContractError`` for a bad one."""
    return contract.parse_floor(settings.get(scope, contract.FLOOR_KEY), using=scope.using)


def require(scope: Scope) -> None:
    """Raises ``ContractError`` if this build may not work here."""
    contract.require_level(floor(scope), using=scope.using)


def find_problem(scope: Scope) -> str | None:
    """Why this build may not work here; ``None`` where it may, or where there are no tables yet."""
    if not open_database(scope).has_table(settings.SETTINGS):
        return None
    try:
        require(scope)
    except ContractError as error:
        return str(error)
    return None


def set_floor(scope: Scope, level: int) -> None:
    """Store the floor, which must be one this build may set; whatever cannot be read is replaced.

    Raises ``ContractError`` where a readable one keeps this build out, so that it cannot let itself
    in, and ``SettingConflictError`` where others keep changing it.
    """
    for _ in range(_TRIES):
        text = settings.get(scope, contract.FLOOR_KEY)
        if text is not None and contract.is_level(text):
            contract.require_level(int(text), using=scope.using)
        # Only over what was looked at: a newer build may raise it in this very moment.
        if settings.put_if(scope, contract.FLOOR_KEY, text, str(level)):
            return
    raise SettingConflictError(
        "the contract floor could not be stored: others keep changing it, or this transaction"
        " cannot see what they stored"
    )
