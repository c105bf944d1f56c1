"""procrastinate, async tasks, LISTEN on, 10 jobs at a time."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import procrastinate

from tests.benchmarks.contenders import marks
from tests.benchmarks.contenders.base import Contender, Send, chunks, main

CONCURRENCY = 10


class Procrastinate(Contender):
    """PostgreSQL."""

    def _app(self, connector: Any) -> procrastinate.App:
        app = procrastinate.App(connector=connector(conninfo=self.url))

        @app.task(name="noop")
        async def noop() -> None:
            marks.began()

        @app.task(name="record")
        async def record(number: int) -> None:
            marks.ran(number)

        return app

    def prepare(self) -> None:
        with self._app(procrastinate.SyncPsycopgConnector).open() as app:
            app.schema_manager.apply_schema()

    def preload(self, count: int) -> float:
        with self._app(procrastinate.SyncPsycopgConnector).open() as app:
            began = time.monotonic()
            for size in chunks(count):
                app.tasks["noop"].batch_defer(*[{}] * size)
            return time.monotonic() - began

    def work(self) -> None:
        self._app(procrastinate.PsycopgConnector).run_worker(concurrency=CONCURRENCY)

    @contextlib.contextmanager
    def sender(self) -> Iterator[Send]:
        with self._app(procrastinate.SyncPsycopgConnector).open() as app:
            task = app.tasks["record"]
            yield lambda number: task.defer(number=number)


if __name__ == "__main__":
    main(Procrastinate())
