"""Our half of the scenarios: queues in the test database, and a worker in this process."""

import threading
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from uuid import uuid4

from asgiref.sync import async_to_sync

from flexiq_django import Queue, Retention, current_job
from flexiq_django.api.context import LogLevel
from flexiq_django.exceptions import TaskCancelledError
from flexiq_django.management.commands.flexiq_worker import worker_options
from flexiq_django.store import settings
from flexiq_django.worker.process import WorkerProcess
from tests.waiting import wait_until

_numbers = count()


class Ours:
    """This package."""

    retention = Retention
    levels = LogLevel
    current_job = current_job
    cancelled = TaskCancelledError
    shortest = 0.2

    def __init__(self) -> None:
        self._run = uuid4().hex[:8]
        self._workers: dict[Queue, int] = {}
        self._queues: list[Queue] = []  # a worker finds them only while somebody holds them

    def make(
        self,
        *,
        beside: Any = None,
        twin: Any = None,
        nameless: bool = False,
        probe: Callable[[Any], Any] | None = None,
        workers: int = 2,
        reaps: bool = True,
        **options: Any,
    ) -> Queue:
        """A queue in a namespace of its own; see ``Bench.make``."""
        name = f"conform-{self._run}-{next(_numbers)}" if twin is None else twin.place.namespace
        queue = Queue(None if nameless else name, **options)
        queue.task(name="ok")(ok)
        queue.task(name="bad")(bad)
        if probe is not None:

            @queue.task(name="probe", retry_delays=[0, 0])
            def act() -> Any:
                return probe(current_job)

        self._queues.append(queue)
        self._workers[queue] = workers
        return queue

    def put(self, queue: Queue, key: str, text: str) -> None:
        """A text in the settings store, under whatever key."""
        settings.put(queue.place, key, text)

    def awaited(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """What a coroutine function answers."""

        async def wait() -> Any:
            return await call()

        return async_to_sync(wait)()

    def run(
        self, queue: Queue, until: Callable[[], object] | None = None, *, stays: bool = False
    ) -> None:
        """Let a worker run all there is, or until something is true."""
        given = {
            "namespace": queue.place.namespace,
            "concurrency": self._workers[queue],
            "burst": until is None,
        }
        # Not by the command, which ends the process when a body outlives its job.
        worker = WorkerProcess(worker_options(given))
        if until is None:
            worker.run()
            return
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        try:
            wait_until(until, 20)
        finally:
            worker.request_stop()
            thread.join(30)


def ok(*_args: Any) -> int:
    """Succeed."""
    return 1


def bad() -> None:
    """Fail."""
    raise ValueError("bad")
