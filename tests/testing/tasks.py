"""Tasks on a queue of their own, so that the tests about helpers see nothing else."""

from typing import Any

import pytest

from flexiq_django import Queue, current_job
from flexiq_django.testing import run_pending
from tests.testapp.models import Mark

lab = Queue("lab")


@lab.task(max_retries=0)
def note(key: str, value: str = "") -> str:
    """Leave a mark."""
    Mark.objects.create(key=key, value=value)
    return key


@lab.task(max_retries=0)
def chain(depth: int) -> int:
    """Enqueue another of the kind until it is 0."""
    note(f"depth {depth}")
    if depth:
        chain.delay(depth - 1)
    return depth


@lab.task(max_retries=3, retry_delays=[60], jitter=False)
def succeed_at(attempt: int) -> int:
    """Fail until this attempt."""
    current_job.update_progress(10)
    current_job.log(f"attempt {current_job.attempt}")
    if current_job.attempt < attempt:
        raise RuntimeError("not yet")
    return current_job.attempt


@lab.task(max_retries=0)
def kind_of(value: Any) -> Any:
    """The type of what arrives, and the value."""
    return type(value).__name__, value


@lab.task(transactional=True)
def note_together(key: str) -> None:
    """Leave a mark in the transaction of the completion."""
    note(key)
    current_job.log("inside")


@lab.task(max_retries=0)
async def shout(word: str) -> str:
    """A coroutine."""
    return word.upper()


@lab.task(timeout=30, max_retries=0)
def crash() -> None:
    """Fail."""
    raise LookupError("nothing there")


@lab.task(max_retries=0)
def clash(key: str) -> None:
    """Write, then write the same row again."""
    mark = Mark.objects.create(key=key)
    Mark.objects.create(pk=mark.pk, key="again")


@lab.task(max_retries=0)
def be_cancelled() -> None:
    """Look twice; be asked to stop in between."""
    current_job.check_cancelled()
    lab.cancel_running_job(current_job.id)
    current_job.check_cancelled()


@lab.task(max_retries=0)
def write_and_fail(key: str) -> None:
    """Leave a mark all the same."""
    note(key)
    raise LookupError


yearly = Queue("yearly")


@yearly.periodic(cron="0 12 * * *", timezone="UTC", name="noon")
@yearly.task(name="tests.noon")
def at_noon() -> None:
    """Leave a mark at noon."""
    note("noon")


@yearly.periodic(cron="30 * * * *", timezone="UTC", name="half")
@yearly.task(name="tests.half")
def at_half() -> None:
    """Leave a mark each hour."""
    note("half")


@lab.task(max_retries=0)
def ask_a_person() -> str:
    """Pause, the first time."""
    if current_job.attempt == 1:
        current_job.pause("may I?")
    return "allowed"


@lab.task(max_retries=0)
async def check_in_a_coroutine() -> str:
    """Ask whether to go on, from a coroutine."""
    current_job.check_cancelled()
    return "went on"


@lab.task(max_retries=0)
def run_another() -> list[str]:
    """The id of the job, before and after others have run inside."""
    return [current_job.id, (run_pending(queue=lab), current_job.id)[1]]


@lab.task(max_retries=0)
def pass_on(key: str) -> str:
    """Enqueue a note, then leave a mark; how the job stands that was enqueued."""
    job = note.delay(key)
    Mark.objects.create(key="before the end")
    return job.status


@lab.task(max_retries=0)
def ping(rest: int) -> None:
    """Leave a mark and enqueue into the other queue, until it is 0."""
    Mark.objects.create(key=f"ping {rest}")
    if rest:
        pong.delay(rest - 1)


@yearly.task(max_retries=0)
def pong(rest: int) -> None:
    """The other one."""
    Mark.objects.create(key=f"pong {rest}")
    if rest:
        ping.delay(rest - 1)


_STOPS = {
    each.__name__: each for each in (KeyboardInterrupt, SystemExit, pytest.fail.Exception)
}  # fmt: skip


@lab.task(max_retries=0)
def stop_it(kind: str) -> None:
    """Raise what is no ``Exception``."""
    raise _STOPS[kind]("enough")


@lab.task(max_retries=0)
async def stop_it_in_a_coroutine(kind: str) -> None:
    """Raise what is no ``Exception``, from a coroutine."""
    raise _STOPS[kind]("enough")


monthly = Queue("monthly")


@monthly.periodic(cron="0 0 1 * *", timezone="UTC", name="first")
@monthly.task(name="tests.first")
def on_the_first() -> None:
    """Leave a mark on the first of each month."""
    note("first")
