"""What the worker may rely on, whichever executor runs the bodies.

A new executor joins by one entry in EXECUTORS: how to make one that calls `run` with each job. What
bodies may rely on is in tests/flows/test_executors.py.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flexiq_django.core.records import ClaimedJob
from flexiq_django.worker.executors.base import Executor
from flexiq_django.worker.executors.coroutines import CoroutineExecutor
from flexiq_django.worker.executors.processes import ProcessExecutor
from flexiq_django.worker.executors.threads import ThreadExecutor
from tests.contracts import idle
from tests.factories import ClaimedJobFactory
from tests.waiting import wait_until

Maker = Callable[[int, Callable[[ClaimedJob], None], Callable[[], None]], Executor]


def make_coroutines(
    concurrency: int, run: Callable[[ClaimedJob], None], on_low: Callable[[], None]
) -> CoroutineExecutor:
    pool = ThreadPoolExecutor(20)

    async def run_async(job: ClaimedJob) -> None:
        await asyncio.get_running_loop().run_in_executor(pool, run, job)

    return CoroutineExecutor(concurrency, run_async, on_low)


def make_processes(
    concurrency: int, run: Callable[[ClaimedJob], None], on_low: Callable[[], None]
) -> ProcessExecutor:
    return ProcessExecutor(concurrency, run, on_low, target=idle.serve)


EXECUTORS: dict[str, Maker] = {
    "threads": ThreadExecutor,
    "processes": make_processes,
    "coroutines": make_coroutines,
}
#: Those that cannot end every body, and so must be able to give its slot away.
GIVING_AWAY = ["threads", "coroutines"]

DEADLINE = 20.0


class Bench:
    """An executor whose bodies wait for their turn to end, and all that it did."""

    def __init__(self, make: Maker) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._doors: dict[tuple[Any, int], threading.Event] = {}
        self.begun: list[ClaimedJob] = []
        self.ended: list[ClaimedJob] = []
        self.lows = 0
        self.raises: BaseException | None = None
        self.executor: Executor

    def open(self, concurrency: int, *, start: bool = True) -> Executor:
        self.executor = self._make(concurrency, self._run, self._on_low)
        if start:
            self.executor.start()
            until(lambda: self.executor.concurrency == concurrency, "every slot is there")
            with self._lock:
                self.lows = 0
        return self.executor

    def _run(self, job: ClaimedJob) -> None:
        with self._lock:
            self.begun.append(job)
        assert self.door(job).wait(DEADLINE)
        if self.raises is not None:
            raise self.raises
        with self._lock:
            self.ended.append(job)

    def _on_low(self) -> None:
        with self._lock:
            self.lows += 1

    def door(self, job: ClaimedJob) -> threading.Event:
        with self._lock:
            return self._doors.setdefault((job.id, job.token), threading.Event())

    def submit(self, count: int) -> list[ClaimedJob]:
        jobs = [ClaimedJobFactory() for _ in range(count)]
        self.executor.submit(jobs)
        return jobs

    def submit_open(self, count: int) -> list[ClaimedJob]:
        """Jobs whose bodies end at once."""
        jobs = [ClaimedJobFactory() for _ in range(count)]
        for job in jobs:
            self.door(job).set()
        self.executor.submit(jobs)
        return jobs

    def close(self) -> None:
        for door in self._doors.values():
            door.set()
        self.executor.stop()
        self.executor.close()


@pytest.fixture(params=EXECUTORS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(EXECUTORS[request.param])
    yield made
    made.close()


def until(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, DEADLINE, what)


def test_a_new_one_is_idle(bench: Bench) -> None:
    executor = bench.open(3)

    assert (executor.concurrency, executor.running, executor.waiting) == (3, 0, 0)
    assert executor.take_back() == []


def test_every_job_is_run_once(bench: Bench) -> None:
    bench.open(4)
    jobs = bench.submit_open(100)

    until(lambda: len(bench.ended) == 100, "all have run")

    assert sorted(job.id for job in bench.ended) == sorted(job.id for job in jobs)
    until(lambda: bench.executor.running == 0, "every slot is free again")
    assert bench.executor.waiting == 0


def test_one_slot_runs_in_the_order_given(bench: Bench) -> None:
    bench.open(1)
    first, second = bench.submit_open(20), bench.submit_open(20)

    until(lambda: len(bench.ended) == 40, "all have run")

    assert bench.begun == first + second


def test_no_more_run_at_once_than_there_are_slots(bench: Bench) -> None:
    executor = bench.open(3)
    jobs = bench.submit(8)

    until(lambda: len(bench.begun) == 3, "the slots are full")
    assert (executor.running, executor.waiting) == (3, 5)
    assert bench.begun[:3] == jobs[:3] or {job.id for job in bench.begun} == {
        job.id for job in jobs[:3]
    }

    bench.door(bench.begun[0]).set()
    until(lambda: len(bench.begun) == 4, "the next begins when one ends")
    assert bench.begun[3] == jobs[3]
    assert (executor.running, executor.waiting) == (3, 4)


@pytest.mark.parametrize("bench", GIVING_AWAY, indirect=True)
def test_strays_are_counted_until_they_end(bench: Bench) -> None:
    executor = bench.open(1)
    (stuck,) = bench.submit(1)
    until(lambda: bench.begun == [stuck], "the slot is taken")
    assert (executor.strays, executor.oldest_stray) == (0, 0.0)

    executor.replace_slot(stuck)
    assert executor.strays == 1
    until(lambda: executor.oldest_stray > 0, "it grows older")

    bench.door(stuck).set()
    until(lambda: executor.strays == 0, "it ends after all")
    assert executor.oldest_stray == 0.0


def test_jobs_submitted_before_the_start_wait_for_it(bench: Bench) -> None:
    executor = bench.open(2, start=False)
    jobs = bench.submit(2)
    assert executor.waiting == 2

    executor.start()

    until(lambda: len(bench.begun) == 2, "they begin")
    assert {job.id for job in bench.begun} == {job.id for job in jobs}


def test_only_jobs_that_have_not_begun_are_handed_back(bench: Bench) -> None:
    executor = bench.open(2)
    jobs = bench.submit(6)
    until(lambda: len(bench.begun) == 2, "the slots are full")

    assert executor.take_back() == jobs[2:]

    assert (executor.running, executor.waiting) == (2, 0)
    assert executor.take_back() == []
    for job in jobs:
        bench.door(job).set()
    until(lambda: executor.running == 0, "the others end")
    assert {job.id for job in bench.ended} == {job.id for job in jobs[:2]}


def test_what_was_handed_back_may_come_again(bench: Bench) -> None:
    executor = bench.open(1)
    (blocker,) = bench.submit(1)
    until(lambda: bench.begun, "the slot is taken")
    later = bench.submit(3)

    executor.submit(executor.take_back())
    for job in [blocker, *later]:
        bench.door(job).set()

    until(lambda: len(bench.ended) == 4, "all have run")
    assert bench.begun == [blocker, *later]


@pytest.mark.parametrize("bench", GIVING_AWAY, indirect=True)
def test_a_body_that_will_not_end_gives_its_slot_to_others(bench: Bench) -> None:
    executor = bench.open(1)
    stuck, waiting = bench.submit(2)
    until(lambda: bench.begun == [stuck], "the slot is taken")

    executor.replace_slot(stuck)

    until(lambda: bench.begun == [stuck, waiting], "the other begins")
    assert executor.running == 1


@pytest.mark.parametrize("bench", GIVING_AWAY, indirect=True)
def test_a_body_that_ends_after_all_brings_no_second_slot(bench: Bench) -> None:
    executor = bench.open(1)
    stuck, *others = bench.submit(4)
    until(lambda: bench.begun == [stuck], "the slot is taken")
    executor.replace_slot(stuck)
    until(lambda: len(bench.begun) == 2, "the next begins")

    bench.door(stuck).set()
    until(lambda: stuck in bench.ended or executor.running == 1, "it ends")
    bench.door(others[0]).set()

    until(lambda: len(bench.begun) == 3, "the one after begins")
    assert executor.running == 1
    assert executor.waiting == 1


@pytest.mark.parametrize("bench", GIVING_AWAY, indirect=True)
def test_replacing_twice_or_too_late_does_nothing(bench: Bench) -> None:
    executor = bench.open(1)
    stuck, second, third = bench.submit(3)
    until(lambda: bench.begun == [stuck], "the slot is taken")
    for _ in range(3):
        executor.replace_slot(stuck)
    until(lambda: len(bench.begun) == 2, "the next begins")

    executor.replace_slot(ClaimedJobFactory())
    executor.replace_slot(third)

    assert bench.begun == [stuck, second]
    assert (executor.running, executor.waiting) == (1, 1)


@pytest.mark.parametrize("bench", GIVING_AWAY, indirect=True)
def test_a_job_that_runs_again_beside_its_older_attempt_is_told_apart(bench: Bench) -> None:
    executor = bench.open(1)
    (older,) = bench.submit(1)
    until(lambda: bench.begun == [older], "the slot is taken")
    executor.replace_slot(older)
    newer = older._replace(token=older.token + 1, attempt=2)
    executor.submit([newer])
    until(lambda: bench.begun == [older, newer], "the newer attempt begins")

    bench.door(older).set()
    until(lambda: older in bench.ended, "the older one ends")

    assert executor.running == 1
    bench.door(newer).set()
    until(lambda: executor.running == 0, "the newer one ends")


def test_a_fault_of_the_worker_costs_no_slot(bench: Bench) -> None:
    executor = bench.open(1)
    bench.raises = RuntimeError("our own fault")
    bench.submit_open(3)
    until(lambda: len(bench.begun) == 3 and executor.running == 0, "all have begun and ended")

    bench.raises = None
    bench.submit_open(1)

    until(lambda: len(bench.ended) == 1, "the slot still works")


def test_more_is_asked_for_when_a_slot_falls_idle(bench: Bench) -> None:
    bench.open(2)
    (job,) = bench.submit(1)
    until(lambda: bench.begun, "it begins")
    before = bench.lows

    bench.door(job).set()

    until(lambda: bench.lows > before, "more is asked for")


def test_more_is_asked_for_when_the_line_gets_short(bench: Bench) -> None:
    executor = bench.open(1)
    executor.low_water = 3
    jobs = bench.submit(6)  # one runs, five wait
    until(lambda: bench.begun, "the first begins")
    assert bench.lows == 0

    bench.door(jobs[0]).set()
    until(lambda: len(bench.begun) == 2, "four wait")
    assert bench.lows == 0

    bench.door(jobs[1]).set()
    until(lambda: bench.lows == 1, "three wait: more is asked for")
    assert executor.waiting == 3


def test_a_stopped_one_begins_nothing_more(bench: Bench) -> None:
    executor = bench.open(1)
    first, second = bench.submit(2)
    until(lambda: bench.begun == [first], "the first begins")

    executor.stop()
    bench.door(first).set()
    bench.door(second).set()

    until(lambda: executor.running == 0, "the first ends by itself")
    assert bench.ended == [first]
    assert executor.take_back() == [second]
    assert bench.begun == [first]


def test_stopping_twice_does_no_harm(bench: Bench) -> None:
    executor = bench.open(2)
    executor.stop()
    executor.stop()

    bench.submit(1)
    assert executor.waiting == 1
    assert bench.begun == []
