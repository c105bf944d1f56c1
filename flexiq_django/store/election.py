"""Roles that one process holds at a time: a lease row, so connection poolers do not matter."""

from __future__ import annotations

from django.db import IntegrityError

from flexiq_django.models import Lease
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database

LEASES = Lease._meta.db_table


def acquire(scope: Scope, role: str, holder: str, *, ttl_ms: int) -> bool:
    """Take or keep a role for ``ttl_ms``. False while somebody else holds it."""
    database = open_database(scope)
    expiry = database.plus_ms("{now}", "%(ttl_ms)s")
    params = {"name": _name(scope, role), "holder": holder, "ttl_ms": ttl_ms}
    taken = database.change(
        f"UPDATE {LEASES} SET holder = %(holder)s, expires_at = {expiry}"  # noqa: S608
        " WHERE name = %(name)s AND (holder = %(holder)s OR expires_at <= {now})",
        params,
        may_wait=False,  # only workers write leases, each in a statement of its own
    )
    if taken:
        return True
    exists = database.fetch(
        f"SELECT 1 FROM {LEASES} WHERE name = %(name)s",  # noqa: S608
        params,
    )
    if exists:
        return False
    try:
        with database.transaction():
            database.change(
                f"INSERT INTO {LEASES} (name, holder, expires_at)"  # noqa: S608
                f" VALUES (%(name)s, %(holder)s, {expiry})",
                params,
            )
    except IntegrityError:  # another process was first
        return False
    return True


def resign(scope: Scope, role: str, holder: str) -> None:
    """Give a role back, so that the next process need not wait for the lease to run out."""
    open_database(scope).change(
        f"UPDATE {LEASES} SET expires_at = {{now}}"  # noqa: S608
        " WHERE name = %(name)s AND holder = %(holder)s",
        {"name": _name(scope, role), "holder": holder},
    )


def _name(scope: Scope, role: str) -> str:
    return f"{role}:{scope.namespace}"
