"""Wakers: woken from another thread, by signs of work, or by time."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connections

from flexiq_django.store import link
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.waking import DataVersionWaker, ListeningWaker, Waker, make_waker
from tests.concurrency import OtherConnection
from tests.store.acting import enqueue_one

pytestmark = pytest.mark.django_db(transaction=True)

LONG = 60.0


def never() -> bool:
    return False


@pytest.fixture(params=["plain", "fitting"])
def waker(request: pytest.FixtureRequest) -> Iterator[Waker]:
    """The one that only waits, and the one that fits the database."""
    keeper = Keeper(Scope(), never)
    if request.param == "plain":
        made = Waker(Scope(), keeper, poll_seconds=1.0)
    else:
        made = make_waker(Scope(), keeper, poll_seconds=1.0, listen=True)
    while made.wait(0):  # the first look always finds that something may have come before
        pass
    yield made
    made.close()
    keeper.close()


def test_the_waker_fits_the_database(vendor: str) -> None:
    kinds = {"sqlite": DataVersionWaker, "postgresql": ListeningWaker, "mysql": Waker}
    keeper = Keeper(Scope(), never)

    made = make_waker(Scope(), keeper, poll_seconds=0.5, listen=True)
    deaf = make_waker(Scope(), keeper, poll_seconds=0.5, listen=False)

    assert type(made) is kinds[vendor]
    assert type(deaf) is (Waker if vendor == "postgresql" else kinds[vendor])
    assert deaf.longest_pause == 0.5
    assert made.longest_pause >= 0.5
    made.close()
    deaf.close()


def test_time_passes(waker: Waker) -> None:
    before = time.monotonic()

    assert waker.wait(0.02) is False

    assert time.monotonic() - before >= 0.015
    assert waker.wait(-1) is False


def test_another_thread_wakes_it(waker: Waker) -> None:
    begun = threading.Event()

    def wake() -> None:
        begun.wait(10)
        waker.wake()

    thread = threading.Thread(target=wake)
    thread.start()
    before = time.monotonic()
    begun.set()

    assert waker.wait(LONG) is True

    assert time.monotonic() - before < LONG / 2
    thread.join(10)


def test_a_wake_up_that_comes_early_is_kept(waker: Waker) -> None:
    waker.wake()

    assert waker.wait(LONG) is True
    assert waker.wait(0) is False


def test_many_wake_ups_are_one(waker: Waker) -> None:
    for _ in range(100_000):  # far more than a socket holds
        waker.wake()

    assert waker.wait(LONG) is True
    assert waker.wait(0) is False


def test_it_can_be_woken_again_and_again(waker: Waker) -> None:
    for _ in range(100):
        waker.wake()
        assert waker.wait(LONG) is True


def test_no_wake_up_is_lost_under_load(waker: Waker) -> None:
    """Each side waits for the other: one lost wake-up and both would wait for long."""
    turns: list[int] = []
    answered = threading.Semaphore(0)

    def work() -> None:
        for number in range(300):
            turns.append(number)
            waker.wake()
            assert answered.acquire(timeout=LONG)

    thread = threading.Thread(target=work)
    thread.start()
    seen = 0
    while seen < 300:
        assert waker.wait(LONG) or len(turns) > seen
        while seen < len(turns):
            seen += 1
            answered.release()
    thread.join(10)

    assert not thread.is_alive()


def test_waking_a_closed_one_does_no_harm() -> None:
    made = Waker(Scope(), Keeper(Scope(), never), poll_seconds=1.0)
    made.close()

    made.wake()


# --- signs of work --------------------------------------------------------------------------------


@pytest.fixture
def commit(other_connection: OtherConnection, vendor: str) -> Callable[[], None]:
    """Store a job as another process does it."""
    if vendor == "mysql":
        pytest.skip("MariaDB and MySQL give no sign of work")

    def store() -> None:
        enqueue_one(Scope())
        link.notify(Scope())

    def act() -> None:
        other_connection.run(store)

    return act


@pytest.mark.parametrize("waker", ["fitting"], indirect=True)
def test_a_commit_of_another_process_is_noticed(waker: Waker, commit: Callable[[], None]) -> None:
    commit()

    assert waker.wait(LONG) is True
    assert waker.wait(0) is False


@pytest.mark.parametrize("waker", ["fitting"], indirect=True)
def test_a_notification_of_another_namespace_is_none_of_its_business(
    waker: Waker, other_connection: OtherConnection, vendor: str
) -> None:
    if vendor != "postgresql":
        pytest.skip("only PostgreSQL has channels")
    other_connection.run(link.notify, Scope(namespace="other"))

    assert waker.wait(0.05) is False


@pytest.mark.parametrize("waker", ["fitting"], indirect=True)
def test_on_a_new_connection_it_listens_anew(
    waker: Waker, commit: Callable[[], None], vendor: str
) -> None:
    if vendor != "postgresql":
        pytest.skip("only PostgreSQL listens")
    connections["default"].close()

    assert waker.wait(LONG) is True  # something may have come meanwhile
    commit()
    assert waker.wait(LONG) is True
