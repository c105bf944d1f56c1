"""What a worker process says of its own health."""

import time
from collections.abc import Callable

import pytest

from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.pulse import Pulse


class Stage:
    """A pulse whose surroundings a test sets."""

    def __init__(self) -> None:
        self.turned_at = time.monotonic()
        self.is_leaving = False
        self.keepers = [Keeper(Scope(), lambda: True) for _ in range(2)]
        self.pulse = Pulse(
            lambda: self.turned_at,
            self.keepers,
            is_leaving=lambda: self.is_leaving,
            limit=60,
        )
        self.pulse.is_registered = True


def hang(stage: Stage) -> None:
    stage.turned_at -= 100


def lose_the_database(stage: Stage) -> None:
    hang(stage)
    stage.keepers[1].is_away = True


def get_the_database_back(stage: Stage) -> None:
    lose_the_database(stage)
    stage.keepers[1].call(lambda: None)


def leave(stage: Stage) -> None:
    hang(stage)
    stage.is_leaving = True


def start(stage: Stage) -> None:
    stage.pulse.is_registered = False


HANGS = ["the claim loop has not turned for 100 s"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("happen", "live", "ready"),
    [
        (lambda stage: None, [], []),
        (start, [], ["not registered yet"]),
        (hang, HANGS, HANGS),
        (lose_the_database, [], ["the database is away"]),
        (get_the_database_back, [], []),
        (leave, [], ["draining"]),
    ],
)
def test_what_a_probe_is_told(
    happen: Callable[[Stage], None], live: list[str], ready: list[str]
) -> None:
    stage = Stage()
    happen(stage)

    assert stage.pulse.live().reasons == live
    assert stage.pulse.ready().reasons == ready
    assert stage.pulse.is_ready is (not ready)
