"""flexiq on SQLite, its thread pool with 8 threads and otherwise its defaults.

Never open its file with another SQLite in the same process: two copies of the library drop each
other's locks. Here it is only ever opened by its own.
"""

import contextlib
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import flexiq

from tests.benchmarks.contenders import marks
from tests.benchmarks.contenders.base import Contender, Send, chunks, main

WORKERS = 8


class Flexiq(Contender):
    """SQLite."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = flexiq.Queue(db_path=urlsplit(self.url).path, workers=WORKERS)

        @self.queue.task(name="noop")
        def noop() -> None:
            marks.began()

        @self.queue.task(name="record")
        def record(number: int) -> None:
            marks.ran(number)

        self.noop, self.record = noop, record

    def prepare(self) -> None:
        """Opening the queue has made the tables."""

    def preload(self, count: int) -> float:
        began = time.monotonic()
        for size in chunks(count):
            self.queue.enqueue_many("noop", [()] * size)
        return time.monotonic() - began

    def work(self) -> None:
        self.queue.run_worker()

    @contextlib.contextmanager
    def sender(self) -> Iterator[Send]:
        yield self.record.delay


if __name__ == "__main__":
    main(Flexiq())
