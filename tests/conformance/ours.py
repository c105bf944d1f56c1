"""Our half of the scenarios: queues in the test database, and a worker in this process."""

from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import uuid4

from django.core.management import call_command

from flexiq_django import Queue, Retention, current_job

_numbers = count()


class Ours:
    """This package."""

    retention = Retention

    def __init__(self) -> None:
        self._run = uuid4().hex[:8]
        self._workers: dict[Queue, int] = {}
        self._queues: list[Queue] = []  # a worker finds them only while somebody holds them

    def make(
        self,
        *,
        beside: Any = None,
        probe: Callable[[Any], Any] | None = None,
        workers: int = 2,
        **options: Any,
    ) -> Queue:
        """A queue in a namespace of its own."""
        queue = Queue(f"conform-{self._run}-{next(_numbers)}", **options)
        queue.task(name="ok")(ok)
        queue.task(name="bad")(bad)
        if probe is not None:

            @queue.task(name="probe", retry_delays=[0, 0])
            def act() -> Any:
                return probe(current_job)

        self._queues.append(queue)
        self._workers[queue] = workers
        return queue

    def run(self, queue: Queue) -> None:
        """Let a worker run all there is."""
        call_command(
            "flexiq_worker",
            burst=True,
            concurrency=self._workers[queue],
            verbosity=0,
            namespace=queue.place.namespace,
        )


def ok(*_args: Any) -> int:
    """Succeed."""
    return 1


def bad() -> None:
    """Fail."""
    raise ValueError("bad")
