"""The bodies of the flow tests' jobs. Their effects are Mark rows, which the tests count."""

import json
import logging
import os
import threading
import time
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from flexiq_django import Permanent, current_job, queue
from flexiq_django.exceptions import RateLimited
from tests.flows.gates import Gate
from tests.testapp.models import Mark

# --- short ones -----------------------------------------------------------------------------------


@queue.task
def note(key: str, value: str = "") -> None:
    """Leave a mark."""
    Mark.objects.create(key=key, value=value)


@queue.task
def quick() -> None:
    """Do nothing."""


@queue.task
def enqueue_note(key: str) -> str:
    """Enqueue a note from inside a job; its id."""
    return note.delay(key).id


@queue.task(max_retries=0)
def give(value: Any) -> Any:
    """Return the argument."""
    return value


@queue.task(max_retries=1000)
def witness(seconds: float) -> None:
    """Record when the attempt began, and when it ended if it owned its job until then."""
    attempt = [current_job.id, current_job.attempt]
    Mark.objects.create(key="begin", value=json.dumps([*attempt, time.monotonic()]))
    threading.Event().wait(seconds)
    ended = time.monotonic()  # before the look: an owner now was an owner then
    current_job.check_cancelled()
    Mark.objects.create(key="end", value=json.dumps([*attempt, ended]))


@queue.task(transactional=True)
def add_note_together(key: str, value: str = "") -> None:
    """Leave a mark in the transaction of the completion."""
    Mark.objects.create(key=key, value=value)


# --- at a gate ------------------------------------------------------------------------------------


@queue.task(max_retries=3)
def hold(gate: str) -> str:
    """Wait at the gate; say which attempt came through."""
    Gate(gate).pass_through(current_job.attempt)
    return f"attempt {current_job.attempt}"


@queue.task(max_retries=3)
def hold_until_over(gate: str, ask: str) -> str:
    """The first attempt asks, until it is told to stop; the next ones come through."""
    if current_job.attempt > 1:
        return f"attempt {current_job.attempt}"
    threading.Thread(target=Gate(gate).pass_through, args=(1,), daemon=True).start()
    until = time.monotonic() + 60
    try:
        while time.monotonic() < until:
            getattr(current_job, ask)()
            threading.Event().wait(0.02)
    finally:
        seen = queue.get_job(current_job.id)
        assert seen is not None
        Mark.objects.create(key=f"told by {ask}", value=seen.status)
    return "never told"


@queue.task
def hold_as(gate: str, name: str) -> None:
    """Wait at the gate under a name, then leave a mark."""
    Gate(gate).pass_through(name)
    Mark.objects.create(key=name)


@queue.task(max_retries=3)
def hold_first(gate: str) -> str:
    """Only the first attempt waits. Whichever comes through says all that an attempt can say."""
    attempt = current_job.attempt
    if attempt == 1:
        Gate(gate).pass_through(attempt)
    current_job.update_progress(10 * attempt)
    current_job.log(f"attempt {attempt}")
    return f"attempt {attempt}"


@queue.task(max_retries=3)
def hold_first_and_fail(gate: str) -> str:
    """The first attempt waits, and fails then."""
    if current_job.attempt == 1:
        Gate(gate).pass_through(1)
        raise ValueError("the first attempt fails late")
    return f"attempt {current_job.attempt}"


@queue.task
def hold_and_fail(gate: str) -> None:
    """Wait at the gate, then fail."""
    Gate(gate).pass_through(current_job.attempt)
    raise ValueError("after the gate")


@queue.task(max_retries=3, transactional=True)
def hold_first_together(gate: str) -> str:
    """The first attempt waits with a row written, in the transaction of its completion."""
    attempt = current_job.attempt
    Mark.objects.create(key="together", value=f"attempt {attempt}")
    if attempt == 1:
        Gate(gate).pass_through(attempt)
    return f"attempt {attempt}"


@queue.task
def report(gate: str) -> None:
    """Report progress and log, before the gate and behind it."""
    current_job.update_progress(40)
    current_job.log("from inside")
    Gate(gate).pass_through(current_job.attempt)
    current_job.update_progress(90)
    current_job.log("at the end")


@queue.task(transactional=True)
def report_together(gate: str) -> None:
    """The same from inside the transaction."""
    current_job.update_progress(40)
    current_job.log("from inside")
    Gate(gate).pass_through(current_job.attempt)
    current_job.update_progress(90)
    current_job.log("at the end")


@queue.task(max_retries=3)
def work_until_cancelled(gate: str) -> None:
    """Wait at the gate, asking all the time whether to go on."""
    _ask_for_ever(Gate(gate))


@queue.task(max_retries=3)
def work_in_atomic_until_cancelled(gate: str) -> None:
    """The same inside one long transaction that has written something."""
    with transaction.atomic():
        Mark.objects.create(key="half done")
        _ask_for_ever(Gate(gate))


@queue.task(max_retries=3, transactional=True)
def work_together_until_cancelled(gate: str) -> None:
    """The same inside the transaction of the completion."""
    Mark.objects.create(key="half done")
    _ask_for_ever(Gate(gate))


def _ask_for_ever(gate: Gate) -> None:
    current_job.check_cancelled()
    threading.Thread(target=gate.pass_through, args=(current_job.attempt,), daemon=True).start()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        current_job.check_cancelled()
        threading.Event().wait(0.02)


@queue.task(max_retries=0, transactional=True)
def write_together_and_fail() -> None:
    """Write, then fail."""
    Mark.objects.create(key="half done")
    raise ValueError("in the middle")


@queue.task(max_retries=0, transactional=True)
def enqueue_together(*, fails: bool) -> None:
    """Enqueue another job inside the transaction."""
    note.delay(f"enqueued by {fails}")
    if fails:
        raise ValueError("after the enqueue")


# --- waiting for a person -------------------------------------------------------------------------


def _ask(name: str) -> str:
    if not Mark.objects.filter(key=f"{name} approved").exists():
        Mark.objects.create(key=f"{name} asked")
        try:
            current_job.pause("approve this")
        except Exception:
            Mark.objects.create(key=f"{name} swallowed")
    return f"attempt {current_job.attempt}, {current_job.retry_count} failed"


@queue.task(max_retries=0)
def ask(name: str) -> str:
    """Pause until somebody has approved."""
    return _ask(name)


@queue.task(max_retries=0, transactional=True)
def ask_together(name: str) -> str:
    """The same with the rows written in the transaction of the pause."""
    return _ask(name)


@queue.task(max_retries=0)
async def ask_async(name: str) -> str:
    """The same in a coroutine."""
    return await sync_to_async(_ask)(name)


# --- sessions -------------------------------------------------------------------------------------


@queue.task(max_retries=5, retry_delays=[0.01])
def in_session(session: str, number: int) -> None:
    """Record when it ran; every seventh job fails once."""
    began = time.monotonic()
    threading.Event().wait(0.004)
    Mark.objects.create(key=session, value=json.dumps([number, began, time.monotonic()]))
    if number % 7 == 0 and current_job.attempt == 1:
        raise ValueError("once more")


# --- failing --------------------------------------------------------------------------------------


@queue.task(max_retries=2, retry_delays=[0.4, 0.8])
def fail_until(attempt: int) -> str:
    """Fail before the given attempt."""
    Mark.objects.create(key=current_job.id, value=str(time.time()))
    if current_job.attempt < attempt:
        raise ValueError(f"attempt {current_job.attempt} fails")
    return f"attempt {current_job.attempt}"


@queue.task(max_retries=3)
def fail_for_good() -> None:
    """Fail in a way that no retry can mend."""
    raise Permanent("this cannot work")


@queue.task(max_retries=3, retry_backoff=60)
def ask_to_wait(seconds: float) -> str:
    """Be rate limited once."""
    Mark.objects.create(key=current_job.id, value=str(time.time()))
    if current_job.attempt == 1:
        raise RateLimited(seconds)
    return f"attempt {current_job.attempt}"


class Unprintable(Exception):  # noqa: N818 - named after what it is
    """Raises whenever somebody asks what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise RuntimeError("no text either")


EXCEPTIONS: dict[str, Any] = {
    "ValueError": lambda: ValueError("plain"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "Unprintable": Unprintable,
    "NUL": lambda: ValueError("a\x00b"),
    "surrogate": lambda: OSError("\udcff"),
    "emoji": lambda: ValueError("\U0001f600"),
    "huge": lambda: ValueError("x" * 20_000_000),
    "group": lambda: ExceptionGroup("many", [ValueError("one"), TypeError("two")]),
    "chain": lambda: _chain(3000),
    "lambda": lambda: ValueError(lambda: 1),
}


@queue.task(max_retries=0)
def raise_one(name: str) -> None:
    """Raise the exception of this name."""
    raise EXCEPTIONS[name]()


def _chain(length: int) -> Exception:
    last = ValueError("the end")
    for number in range(length):
        error = ValueError(f"link {number}")
        error.__cause__ = last
        last = error
    return last


RESULTS: dict[str, Any] = {
    "NaN": lambda: float("nan"),
    "Infinity": lambda: [float("inf")],
    "NUL": lambda: "a\x00b",
    "surrogate": lambda: "\ud800",
    "object": object,
    "loop": lambda: _loop(),
    "huge": lambda: "x" * 30_000_000,
    "int keys": lambda: {1: 2},
    "tuple": lambda: (1, 2),
    "emoji": lambda: "\U0001f600",
}


@queue.task(max_retries=0)
def return_one(name: str) -> Any:
    """Return the value of this name."""
    return RESULTS[name]()


def _loop() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


@queue.task(max_retries=2, retry_delays=[0])
async def add_later(left: int, right: int) -> int:
    """Add, as a coroutine."""
    return left + right


@queue.task(max_retries=2, retry_delays=[0])
def add(left: int, right: int) -> int:
    """Add."""
    return left + right


@queue.task(max_retries=2, retry_delays=[0])
def raise_type_error() -> None:
    """Fail with an error of the kind a wrong call gives."""
    [].append()  # type: ignore[call-arg]


@queue.task(max_retries=0)
def log_much(length: int) -> str:
    """Log one long line."""
    current_job.log("x" * length)
    return "logged"


# --- time limits ----------------------------------------------------------------------------------


@queue.task(max_retries=0, timeout=1)
def sleep_for_ever() -> None:
    """Sleep where no exception can reach."""
    time.sleep(60)  # noqa: TID251 - this is what is tested


@queue.task(max_retries=1, timeout=0.5, retry_delays=[0])
def sleep_once(gate: str) -> str:
    """The first attempt is too late, and ends only when the gate opens."""
    if current_job.attempt == 1:
        Gate(gate).pass_through(1)
        Mark.objects.create(key="stray has ended")
    return f"attempt {current_job.attempt}"


@queue.task(max_retries=0, timeout=0.2)
def return_late() -> str:
    """Return after its time was up, before anybody could look."""
    threading.Event().wait(0.23)
    return "late"


@queue.task(max_retries=0, soft_timeout=0.2, timeout=30)
def work_until_soft_timeout() -> None:
    """Ask for the soft timeout until it has passed."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        current_job.check_timeout()
        threading.Event().wait(0.01)


@queue.task(max_retries=0, timeout=0.2, transactional=True)
def return_late_together() -> None:
    """The same with a row written in the transaction of the completion."""
    Mark.objects.create(key="late")
    threading.Event().wait(0.6)


# --- bad guests -----------------------------------------------------------------------------------


@queue.task(max_retries=0)
def leave_behind(mess: str) -> None:
    """Leave the connection in a state."""
    connection = connections["default"]
    Mark.objects.create(key="before the mess", value=mess)
    if mess == "open atomic":
        transaction.atomic().__enter__()
        Mark.objects.create(key="in the mess", value=mess)
    elif mess == "broken atomic":
        transaction.atomic().__enter__()
        transaction.set_rollback(True)
    elif mess == "nested atomic":
        transaction.atomic().__enter__()
        transaction.atomic().__enter__()
    elif mess == "closed":
        connection.close()
    elif mess == "closed in atomic":
        transaction.atomic().__enter__()
        connection.close()
    elif mess == "no autocommit":
        connection.set_autocommit(False)
        Mark.objects.create(key="in the mess", value=mess)
    elif mess == "failed statement":
        connection.set_autocommit(False)
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")
    elif mess == "open cursor":
        connection.cursor().execute("SELECT 1")


# --- schedules and zones --------------------------------------------------------------------------


@queue.task
def tick() -> None:
    """What the every-second schedule runs."""


if "FLEXIQ_TEST_TICKING" in os.environ:
    queue.periodic("* * * * * *", name="ticking")(tick)


@queue.task
def local_hour() -> None:
    """What the schedule of the other zone runs."""


if "FLEXIQ_TEST_LOCAL_SCHEDULE" in os.environ:
    queue.periodic(os.environ["FLEXIQ_TEST_LOCAL_SCHEDULE"], name="local")(local_hour)


@queue.task(max_retries=0)
def enqueue_naive(seconds: float) -> dict[str, Any]:
    """Enqueue with a naive local time, as a project with USE_TZ = False does."""
    run_at = datetime.now() + timedelta(seconds=seconds)  # noqa: DTZ005 - this is what is tested
    job = note.apply_async(("naive", ""), run_at=run_at)
    row = queue.get_job(job.id)
    assert row is not None
    return {"id": job.id, "run_at": run_at.isoformat(), "scheduled_at": row.scheduled_at}


@queue.task(max_retries=0)
def report_times(job_id: str) -> dict[str, Any]:
    """The times of a job as this process reports them."""
    job = queue.get_job(job_id)
    assert job is not None
    times = job.to_dict()
    names = ("created_at", "scheduled_at", "started_at", "completed_at")
    return {name: times[name] for name in names}


# --- limited --------------------------------------------------------------------------------------


@queue.task(max_concurrent=2)
def couple(seconds: float) -> None:
    """Record when it ran; never more than two at a time."""
    began = time.monotonic()
    threading.Event().wait(seconds)
    Mark.objects.create(key="couple", value=json.dumps([began, time.monotonic()]))


@queue.task(max_retries=50, retry_delays=[0.01], retry_budget="4/h")
def always_fails() -> None:
    """Fail, as everything that needs a broken service does."""
    raise ConnectionError("the service is down")


@queue.task(max_retries=0)
def refuse(text: str) -> None:
    """Fail for good, with this text."""
    raise Permanent(text)


# --- memory ---------------------------------------------------------------------------------------

_kept: list[bytearray] = []


@queue.task
def keep(mebibytes: int) -> int:
    """Take memory and never give it back; the id of the process."""
    _kept.append(bytearray(b"x" * (mebibytes << 20)))
    return os.getpid()


# --- logging --------------------------------------------------------------------------------------


@queue.task(timeout=0.2)
def log_and_sleep(gate: str) -> None:
    """Log as any code does, and outlive the timeout."""
    logging.getLogger("shop").warning("parcel\nlost")
    Gate(gate).pass_through()
