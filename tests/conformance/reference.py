"""Run scenarios against the reference; one JSON line each. Started by ``test_reference.py``.

The arguments are the names of the scenarios to run.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import flexiq

sys.path.insert(0, str(Path(__file__).parent))
import scenarios

_PAUSE = threading.Event()
#: Seconds without a change after which a worker has run all it can.
_QUIET = 0.8


class Reference:
    """The reference on a SQLite file for each queue."""

    retention = flexiq.Retention
    levels = flexiq.LogLevel
    current_job = flexiq.current_job
    cancelled = flexiq.TaskCancelledError
    shortest = 1  # it takes whole seconds

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self._queues: list[Any] = []

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
    ) -> Any:
        self._made += 1
        other = beside or twin
        path = self._folder / f"{self._made}.db" if other is None else other.path_of_scenario
        queue = flexiq.Queue(
            db_path=str(path),
            workers=workers,
            namespace=None if nameless else "a" if beside is None else "b",
            scheduler_poll_interval_ms=10,
            scheduler_reap_interval=5 if reaps else 1_000_000,
            scheduler_cleanup_interval=5,
            **options,
        )
        queue.path_of_scenario = path
        self._queues.append(queue)

        @queue.task(name="ok")
        def ok(*_args: Any) -> int:
            return 1

        @queue.task(name="bad")
        def bad() -> None:
            raise ValueError("bad")

        if probe is not None:

            @queue.task(name="probe", retry_delays=[0, 0])
            def act() -> Any:
                return probe(flexiq.current_job)

        return queue

    def put(self, queue: Any, key: str, text: str) -> None:
        queue.set_setting(key, text)

    def awaited(self, call: Callable[[], Awaitable[Any]]) -> Any:
        async def wait() -> Any:
            return await call()

        return asyncio.run(wait())

    def run(
        self, queue: Any, until: Callable[[], object] | None = None, *, stays: bool = False
    ) -> None:
        if not hasattr(queue, "worker_of_scenario"):
            queue.failures_of_scenario = []
            queue.worker_of_scenario = threading.Thread(target=_work, args=[queue], daemon=True)
            queue.worker_of_scenario.start()
        deadline = time.monotonic() + 45  # it looks at schedules every twelve seconds
        seen, changed = None, time.monotonic()
        while not (until() if until else _is_idle(queue)):
            if queue.failures_of_scenario:
                raise queue.failures_of_scenario[0]
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError("the jobs of a scenario did not end")
            if (stats := queue.stats()) != seen:
                seen, changed = stats, now
            elif stays and not stats["running"] and now - changed > _QUIET:
                return
            _PAUSE.wait(0.02)

    def leave(self) -> None:
        """Stop the workers, which would look for jobs for ever."""
        for queue in self._queues:
            if hasattr(queue, "worker_of_scenario"):
                queue.shutdown()


def _work(queue: Any) -> None:
    try:
        queue.run_worker()
    except Exception as error:
        queue.failures_of_scenario.append(error)


def _is_idle(queue: Any) -> bool:
    stats = queue.stats()
    return not stats["pending"] and not stats["running"]


def main(names: list[str]) -> None:
    """Print the facts of these scenarios."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for scenario in scenarios.SCENARIOS:
            if scenario.__name__ not in names:
                continue
            place = Path(folder) / scenario.__name__
            place.mkdir()
            bench = Reference(place)
            try:
                facts = scenario(bench)
            except Exception as error:
                facts = {"error": f"{type(error).__name__}: {error}"}
            bench.leave()
            line = "FACTS" + json.dumps([scenario.__name__, facts], default=str)
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main(sys.argv[1:])
    os._exit(0)  # its workers would keep the process alive
