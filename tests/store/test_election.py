"""One holder of a role at a time, for as long as the lease lasts."""

import pytest
from django.db import transaction

from flexiq_django.models import Lease
from flexiq_django.store.election import acquire, resign
from flexiq_django.store.scope import Scope
from tests.concurrency import run_in_threads
from tests.factories import at, later

pytestmark = pytest.mark.django_db


def take(scope: Scope, holder: str, role: str = "leader", ttl_ms: int = 15_000) -> bool:
    return acquire(scope, role, holder, ttl_ms=ttl_ms)


def test_the_first_one_takes_the_role() -> None:
    assert take(at(), "a")

    row = Lease.objects.get()
    assert (row.name, row.holder, row.expires_at) == ("leader:default", "a", later(15))


def test_others_wait_until_it_expires() -> None:
    take(at(), "a")

    assert not take(at(14.999), "b")
    assert take(at(15), "b")
    assert not take(at(15), "a")
    assert Lease.objects.get().holder == "b"


def test_the_holder_keeps_the_role_by_asking_again() -> None:
    take(at(), "a")

    assert take(at(10), "a")
    assert not take(at(24.999), "b")
    assert Lease.objects.get().expires_at == later(25)


def test_a_holder_that_overslept_may_come_back_if_nobody_took_over() -> None:
    take(at(), "a")

    assert take(at(1_000), "a")


def test_a_role_given_back_is_free_at_once() -> None:
    take(at(), "a")
    resign(at(1), "leader", "a")

    assert take(at(1), "b")


def test_only_the_holder_gives_back() -> None:
    take(at(), "a")
    resign(at(1), "leader", "b")

    assert not take(at(1), "b")
    resign(at(1), "unknown", "a")
    assert not take(at(1), "b")


def test_roles_and_namespaces_do_not_meet() -> None:
    assert take(at(), "a")
    assert take(at(), "b", role="sweeper")
    assert take(at(namespace="other"), "c")
    assert not take(at(namespace="other"), "a")
    assert Lease.objects.count() == 3


def test_losing_does_not_hurt_the_callers_transaction() -> None:
    take(at(), "a")
    with transaction.atomic():
        assert not take(at(), "b")
        assert Lease.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("before", [None, "somebody"])
def test_of_many_that_ask_at_once_one_wins(before: str | None) -> None:
    if before:
        take(at(-100), before)

    won = run_in_threads([lambda holder=holder: take(at(), f"w{holder}") for holder in range(6)])

    assert sum(won) == 1
    assert Lease.objects.get().holder == f"w{won.index(True)}"
