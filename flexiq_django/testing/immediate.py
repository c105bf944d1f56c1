"""Immediate mode: a job runs where it is enqueued."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from flexiq_django.api import storing
from flexiq_django.api.queue import Queue
from flexiq_django.api.result import JobResult
from flexiq_django.testing.running import run_pending


@contextlib.contextmanager
def immediate() -> Iterator[None]:
    """Inside the block an enqueue call runs its job before it returns; also a decorator.

    The job is stored and claimed, arguments and result are encoded and read back, and a failed job
    is tried again as often as it may be, without waiting. Whatever else is ready in the queue runs
    too; what a job enqueues runs after it. A job that is due later, or waits for another, waits.
    """
    is_running = False

    def run(queue: Queue, _handles: Sequence[JobResult]) -> None:
        nonlocal is_running
        if is_running:  # a job enqueues another: whoever runs the first goes on with it
            return
        is_running = True
        try:
            run_pending(queue=queue, retries=True)
        finally:
            is_running = False

    storing.runners.append(run)
    try:
        yield
    finally:
        storing.runners.remove(run)
