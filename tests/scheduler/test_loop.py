"""ChoreLoop: each chore when it is due, those of the leader by the leader."""

import logging
import threading
import time
from typing import Any

import pytest

from flexiq_django.scheduler.leader import Leader
from flexiq_django.scheduler.loop import Blocked, Chore, ChoreLoop
from flexiq_django.worker.connections import GaveUp
from tests.waiting import wait_until


class Counted:
    """A chore that counts its runs and rests as long as it is told."""

    def __init__(self, name: str = "chore", rest: float = 100.0, **options: Any) -> None:
        self.runs = 0
        self.rest = rest
        self.error: Exception | None = None
        self.chore = Chore(name=name, run=self._run, **options)

    def _run(self) -> float:
        self.runs += 1
        if self.error is not None:
            raise self.error
        return self.rest


def loop_of(*counted: Counted, leads: bool = True, **options: Any) -> ChoreLoop:
    leader = Leader(lambda: leads, lambda: None)
    options.setdefault("on_end", lambda: None)
    return ChoreLoop(leader, [each.chore for each in counted], **options)


def tick(loop: ChoreLoop, seconds: float = 0.0) -> float:
    return loop.tick(time.monotonic() + seconds)


def test_a_chore_runs_when_it_is_due() -> None:
    chore = Counted(rest=50)
    loop = loop_of(chore)

    tick(loop)
    tick(loop)
    tick(loop, 49)
    assert chore.runs == 1
    tick(loop, 51)
    assert chore.runs == 2


def test_each_rests_for_itself() -> None:
    quick, slow = Counted(rest=10), Counted(rest=100)
    loop = loop_of(quick, slow)

    tick(loop)
    tick(loop, 11)

    assert (quick.runs, slow.runs) == (2, 1)


def test_the_loop_rests_until_the_first_is_due() -> None:
    loop = loop_of(Counted(rest=3), Counted(rest=2), Counted(rest=100))

    assert 1.9 < tick(loop) <= 2


def test_a_chore_that_is_due_at_once_gives_no_rest() -> None:
    assert tick(loop_of(Counted(rest=0))) == 0


def test_the_loop_never_rests_past_the_next_election() -> None:
    assert 4 < tick(loop_of(Counted(rest=1_000))) <= 5


def test_chores_of_the_leader_are_left_to_the_leader() -> None:
    of_leader, of_all = Counted(), Counted(by_leader=False, rest=60)
    loop = loop_of(of_leader, of_all, leads=False)

    rest = tick(loop)

    assert (of_leader.runs, of_all.runs) == (0, 1)
    assert rest <= 5


def test_whoever_becomes_leader_runs_them_then() -> None:
    leads = False
    chore = Counted()
    leader = Leader(lambda: leads, lambda: None)
    loop = ChoreLoop(leader, [chore.chore], on_end=lambda: None)
    tick(loop)
    leads = True
    tick(loop)
    assert chore.runs == 0

    tick(loop, 6)
    assert chore.runs == 1


def test_a_chore_that_fails_is_tried_again_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad, good = Counted("bad"), Counted("good")
    bad.error = RuntimeError("broken")
    loop = loop_of(bad, good)

    with caplog.at_level(logging.ERROR):
        rest = tick(loop)

    assert (bad.runs, good.runs) == (1, 1)
    assert "chore bad failed" in caplog.text
    assert rest <= 5
    tick(loop, 6)
    assert (bad.runs, good.runs) == (2, 1)


def test_an_election_that_fails_stops_no_chore_of_this_worker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> bool:
        raise RuntimeError("read-only")

    of_leader, of_all = Counted(), Counted(by_leader=False)
    loop = ChoreLoop(
        Leader(fail, lambda: None), [of_leader.chore, of_all.chore], on_end=lambda: None
    )

    assert 0 < tick(loop) <= 5
    assert (of_leader.runs, of_all.runs) == (0, 1)
    assert "the election failed" in caplog.text


def test_giving_up_is_no_failure_of_a_chore() -> None:
    chore = Counted()
    chore.error = GaveUp()

    with pytest.raises(GaveUp):
        tick(loop_of(chore))


def test_a_chore_that_is_blocked_is_told_of_once_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held, good = Counted("held"), Counted("good")
    held.error = Blocked("lock timeout")
    loop = loop_of(held, good)

    for seconds in (0, 6, 12):
        tick(loop, seconds)
    assert (held.runs, good.runs) == (3, 1)
    text = "chore held waits for another transaction (lock timeout)"
    assert caplog.text.count(text) == 1
    assert "Traceback" not in caplog.text

    held.error = None
    tick(loop, 18)
    held.error = Blocked("lock timeout")
    tick(loop, 999)
    assert caplog.text.count(text) == 2


def test_a_chore_may_be_asked_to_run_sooner() -> None:
    chore = Counted(rest=50)
    loop = loop_of(chore)
    tick(loop)

    chore.chore.run_within(0.5)
    chore.chore.run_within(9)

    assert 0 < tick(loop) <= 0.5
    tick(loop, 0.6)
    assert chore.runs == 2


# --- the thread -----------------------------------------------------------------------------------


def test_a_nudge_runs_what_it_is_about_and_nothing_else() -> None:
    nudged, other = Counted(is_nudged=True), Counted()
    loop = loop_of(nudged, other)
    loop.start()
    wait_until(lambda: other.runs == 1)

    loop.nudge()

    wait_until(lambda: nudged.runs == 2)
    loop.stop(10)
    assert other.runs == 1


def test_the_end_gives_up_the_role_and_then_the_connection() -> None:
    acts: list[str] = []
    chore = Counted()
    leader = Leader(lambda: True, lambda: acts.append("resigned"))
    loop = ChoreLoop(leader, [chore.chore], on_end=lambda: acts.append("closed"))
    loop.start()
    wait_until(lambda: chore.runs == 1)

    loop.stop(10)

    assert acts == ["resigned", "closed"]


@pytest.mark.parametrize("error", [None, GaveUp()])
def test_a_role_that_cannot_be_given_up_does_not_keep_the_loop(error: Exception | None) -> None:
    ended = threading.Event()

    def fail() -> None:
        raise RuntimeError("database away")

    chore = Counted()
    chore.error = error
    loop = ChoreLoop(Leader(lambda: True, fail), [chore.chore], on_end=ended.set)
    loop.start()
    wait_until(lambda: chore.runs == 1)
    loop.stop(10)

    assert ended.is_set()


def test_after_a_stop_no_further_chore_begins() -> None:
    later = Counted()
    first = Counted()
    loop = loop_of(first, later)
    first.chore.run = lambda: loop.stop(0) or 1.0  # type: ignore[func-returns-value]
    loop._thread = threading.Thread(target=lambda: None)
    loop._thread.start()

    tick(loop)

    assert later.runs == 0
