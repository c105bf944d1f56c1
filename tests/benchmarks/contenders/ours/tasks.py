"""The tasks."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from flexiq_django import current_job, task
from tests.benchmarks.contenders import marks


@task
def noop() -> None:
    """Nothing."""
    marks.began()


@task
def record(number: int) -> None:
    """Note when this began."""
    marks.ran(number)


# --- a bit of everything, for what is measured over many jobs -------------------------------------


def _bodied(
    *, asks_database: bool = False, **options: Any
) -> Callable[[Callable[[int], Any]], Any]:
    """A task; on an event loop with a coroutine for its body."""

    def decorate(function: Callable[[int], Any]) -> Any:
        if os.environ.get("BENCH_VARIANT") != "coroutines":
            return task(**options)(function)
        called = sync_to_async(function) if asks_database else None

        @wraps(function)
        async def body(number: int) -> Any:
            return await called(number) if called else function(number)

        return task(**options)(body)

    return decorate


@_bodied()
def answer(number: int) -> dict[str, Any]:
    """Return something of a kilobyte."""
    return {"number": number, "rows": [f"row {each} of job {number}" for each in range(40)]}


@_bodied()
def speak(number: int) -> None:
    """Log and report progress."""
    for share in (25, 50, 100):
        current_job.log(f"job {number} at {share}", extra={"share": share})
        current_job.update_progress(share)


@_bodied(asks_database=True)
def ask(number: int) -> int:
    """Read a row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) + %s FROM flexiq_queue_state", [number])
        return int(cursor.fetchone()[0])


@_bodied(max_retries=0)
def fail(number: int) -> None:
    """Fail for good."""
    raise ValueError(f"job {number} was bound to fail")


@_bodied(max_retries=1, retry_delays=[0.01])
def stumble(number: int) -> None:
    """Fail, and do it better the second time."""
    if current_job.retry_count == 0:
        raise ConnectionError(f"job {number} stumbled")


#: By turns; each tenth job fails for good, each tenth is retried.
MIXED = (answer, speak, ask, answer, fail, ask, speak, stumble, answer, ask)
