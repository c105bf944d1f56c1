"""Run the scenarios against the reference; one JSON line each. Started by ``test_reference.py``."""

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flexiq

sys.path.insert(0, str(Path(__file__).parent))
import scenarios

_PAUSE = threading.Event()


class Reference:
    """The reference on a SQLite file for each queue."""

    retention = flexiq.Retention

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0

    def make(
        self,
        *,
        beside: Any = None,
        probe: Callable[[Any], Any] | None = None,
        workers: int = 2,
        **options: Any,
    ) -> Any:
        self._made += 1
        path = self._folder / f"{self._made}.db" if beside is None else beside.path_of_scenario
        queue = flexiq.Queue(
            db_path=str(path),
            workers=workers,
            namespace="a" if beside is None else "b",
            scheduler_poll_interval_ms=10,
            **options,
        )
        queue.path_of_scenario = path

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

    def run(self, queue: Any) -> None:
        if not hasattr(queue, "worker_of_scenario"):
            queue.worker_of_scenario = threading.Thread(target=queue.run_worker, daemon=True)
            queue.worker_of_scenario.start()
        deadline = time.monotonic() + 20
        while (stats := queue.stats())["pending"] or stats["running"]:
            if time.monotonic() > deadline:
                raise TimeoutError("the jobs of a scenario did not end")
            _PAUSE.wait(0.02)


def main() -> None:
    """Print the facts of every scenario."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number, scenario in enumerate(scenarios.SCENARIOS):
            place = Path(folder) / str(number)
            place.mkdir()
            try:
                facts = scenario(Reference(place))
            except Exception as error:
                facts = {"error": f"{type(error).__name__}: {error}"}
            line = "FACTS" + json.dumps([scenario.__name__, facts], default=str)
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
    os._exit(0)  # its workers would keep the process alive
