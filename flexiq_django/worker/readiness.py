"""Whether this process may work with its database: migrated, and not ahead of this build."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from flexiq_django.exceptions import ConfigurationError, ContractError
from flexiq_django.store import contract, link
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Seconds between two looks at the contract floor.
CONTRACT_SECONDS = 30.0

Call = Callable[[Callable[[], Any]], Any]


def require_ready(scope: Scope, call: Call) -> None:
    """Raises ``ConfigurationError`` without our tables, ``ContractError`` below the floor."""
    if not call(lambda: link.has_tables(scope)):
        raise ConfigurationError(
            f"database {scope.using!r} has no tables of flexiq_django; run: manage.py migrate"
            + ("" if scope.using == "default" else f" --database {scope.using}")
        )
    call(lambda: contract.require(scope))


def watch_contract(scope: Scope, call: Call, on_refused: Callable[[], None]) -> float:
    """Look whether this build may still work here; if not, have the worker drain."""
    try:
        call(lambda: contract.require(scope))
    except ContractError as error:
        logger.error("the worker stops: %s", error)
        on_refused()
        return math.inf
    return CONTRACT_SECONDS
