"""Immediate mode: a job runs where it is enqueued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flexiq_django.api import storing
from flexiq_django.api.context import current_attempt
from flexiq_django.api.queue import Queue
from flexiq_django.api.result import JobResult
from flexiq_django.testing import running
from flexiq_django.testing.blocks import block


@block
def immediate() -> Iterator[None]:
    """Inside the block an enqueue call runs its job before it returns; also a decorator.

    The job is stored and claimed, arguments and result are encoded and read back, and a failed job
    is tried again as often as it may be, without waiting. Whatever else is ready in the queue runs
    too; what a job enqueues, into whichever queue, runs after it. A job that is due later, or
    waits for another, waits. Decorates ``async def`` too.
    """
    mode = _Immediate()
    storing.runners.append(mode.on_enqueued)
    running.followers.append(mode.on_ran)
    try:
        yield
    finally:
        running.followers.remove(mode.on_ran)
        storing.runners.remove(mode.on_enqueued)


class _Immediate:
    """The queues in which there is something to run, and whether that goes on just now."""

    def __init__(self) -> None:
        self._met: list[Queue] = []
        self._is_running = False

    def on_enqueued(self, queue: Queue, _handles: Sequence[JobResult]) -> None:
        """Jobs were stored: run them, or note where they are if a job has enqueued them."""
        if all(each.place != queue.place for each in self._met):
            self._met.append(queue)
        self._go_on()

    def on_ran(self, queue: Queue) -> None:
        """What was ready in a queue has run: go on with what that enqueued into others."""
        if not self._is_running:
            self._met = [each for each in self._met if each.place != queue.place]
            self._go_on()

    def _go_on(self) -> None:
        if self._is_running or current_attempt() is not None:
            return  # whoever runs the job at hand goes on after it
        self._is_running = True
        try:
            while self._run_each() and len(self._met) > 1:
                pass  # jobs of one queue may have made jobs of another ready
        finally:
            self._is_running = False
            self._met = []

    def _run_each(self) -> bool:
        """Run what is ready in each queue, those met on the way included; whether there was any."""
        has_run = False
        for queue in self._met:
            has_run = bool(running.run_pending(queue=queue, retries=True)) or has_run
        return has_run
