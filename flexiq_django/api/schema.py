"""The schema methods of ``Queue``: bring tables up to date, say who may work with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from flexiq_django.api.twins import async_twin
from flexiq_django.core.contract import check_level
from flexiq_django.exceptions import ContractError
from flexiq_django.store import contract, schema

if TYPE_CHECKING:
    from flexiq_django.store.scope import Scope


class Schema:
    """The tables of the queue's database, and the builds that may work with them."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

        @property
        def place(self) -> Scope:
            """Where the queue lives, before it is open."""

    def migrate(self) -> dict[str, Any]:
        """Apply the migrations of this app that the queue's database lacks; what was applied.

        ``applied`` lists their names in order, and is empty when the database was up to date.
        ``workflow_applied`` is always empty, ``archived_jobs`` 0 and ``schemaless`` False: there is
        one schema, and no backlog that it would have to move. The same as ``manage.py migrate
        flexiq_django --database ALIAS``; safe to call again, and from several processes at once.

        Raises ``ConfigurationError`` if there is something to apply and the caller is inside a
        transaction, and ``ContractError`` if this build may not work with the database.
        """
        return {
            "applied": schema.migrate(self.place),
            "workflow_applied": [],
            "archived_jobs": 0,
            "schemaless": False,
        }

    def min_contract(self) -> int:
        """The lowest contract level that may work with this database.

        The level is the revision of the stored rows that a build of this package understands.
        """
        return contract.floor(self.scope)

    def set_min_contract(self, level: int) -> None:
        """Keep out builds below a contract level: they refuse to work instead of misreading rows.

        Allowed is what this build itself can read, up to its own level; anything else raises
        ``InvalidOptionError``. Workers below it stop within a minute, other processes when they
        next start. A floor that cannot be read is replaced; one above this build is not, as an old
        build would let itself in: raises ``ContractError``.
        """
        contract.set_floor(place_despite_floor(self), check_level(level))

    amigrate = async_twin(migrate)
    amin_contract = async_twin(min_contract)
    aset_min_contract = async_twin(set_min_contract)


class Home(Protocol):
    """A queue."""

    @property
    def scope(self) -> Scope:
        """Where the queue lives, for a call that asks its database."""

    @property
    def place(self) -> Scope:
        """Where the queue lives; the database is not asked."""


def place_despite_floor(queue: Home) -> Scope:
    """Where a queue lives, also for a build that the contract floor keeps out."""
    try:
        return queue.scope
    except ContractError:
        return queue.place


def open_place(place: Scope, *, auto_migrate: bool) -> None:
    """What a process does before it first uses a queue.

    Raises ``ContractError`` if this build may not work with the database.
    """
    if auto_migrate:
        schema.migrate(place)
    contract.require(place)
