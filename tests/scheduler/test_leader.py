"""Leader: asks for the role now and then, and never believes in it for longer than it lasts."""

import time

from flexiq_django.scheduler import leader
from flexiq_django.scheduler.leader import TTL_SECONDS, Leader


class Role:
    """The lease of the role, as the database would answer."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.released = 0

    def acquire(self) -> bool:
        self.asked += 1
        return self.answers.pop(0)

    def release(self) -> None:
        self.released += 1


def hold(candidate: Leader) -> bool:
    return candidate.hold(time.monotonic())


def test_the_answer_holds_until_it_is_time_to_ask_again() -> None:
    role = Role(True, False)
    candidate = Leader(role.acquire, role.release)

    assert hold(candidate)
    assert hold(candidate)
    assert role.asked == 1
    assert candidate.due - time.monotonic() <= TTL_SECONDS / 3

    assert not candidate.hold(candidate.due)
    assert role.asked == 2


def test_a_role_that_is_taken_is_asked_for_again() -> None:
    role = Role(False, True)
    candidate = Leader(role.acquire, role.release)

    assert not hold(candidate)
    assert candidate.hold(candidate.due)


def test_a_leader_that_could_not_renew_stops_in_time(monkeypatch: object) -> None:
    role = Role(True)
    candidate = Leader(role.acquire, role.release)
    assert hold(candidate)

    candidate._until = time.monotonic() - 0.001

    assert not hold(candidate)


def test_a_shorter_role_is_renewed_more_often() -> None:
    role = Role(True)
    candidate = Leader(role.acquire, role.release, ttl=3.0)
    assert hold(candidate)

    assert candidate.due - time.monotonic() <= 1.0


def test_time_is_counted_from_before_the_answer() -> None:
    candidate = Leader(lambda: True, lambda: None)
    before = time.monotonic()
    hold(candidate)

    assert before <= candidate._until - leader.TTL_SECONDS <= time.monotonic()


def test_only_a_leader_resigns_and_only_once() -> None:
    role = Role(False, True)
    candidate = Leader(role.acquire, role.release)
    hold(candidate)
    candidate.resign()
    assert role.released == 0

    candidate.hold(candidate.due)
    candidate.resign()
    candidate.resign()
    assert role.released == 1
