"""pgqueuer, with asyncpg's pool and uvloop. The variant is the batch size, 10 unless given.

The worker is ``PgQueuer.run()``, which its command line calls too; that one needs an older typer.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Job, PgQueuer, Queries

from tests.benchmarks.contenders import marks
from tests.benchmarks.contenders.base import Contender, Send, chunks, main


class Pgqueuer(Contender):
    """PostgreSQL."""

    def prepare(self) -> None:
        uvloop.run(self._prepare())

    async def _prepare(self) -> None:
        connection = await asyncpg.connect(self.url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    def preload(self, count: int) -> float:
        return uvloop.run(self._preload(count))

    async def _preload(self, count: int) -> float:
        connection = await asyncpg.connect(self.url)
        queries = Queries(AsyncpgDriver(connection))
        began = time.monotonic()
        for size in chunks(count):
            await queries.enqueue(["noop"] * size, [None] * size, [0] * size)
        took = time.monotonic() - began
        await connection.close()
        return took

    def work(self) -> None:
        uvloop.run(self._work())

    async def _work(self) -> None:
        async with asyncpg.create_pool(self.url) as pool:
            queue = PgQueuer(AsyncpgPoolDriver(pool))

            @queue.entrypoint("noop")
            async def noop(job: Job) -> None:
                marks.began()

            @queue.entrypoint("record")
            async def record(job: Job) -> None:
                marks.ran(int(job.payload or b"0"))

            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
            await queue.run(batch_size=int(self.variant or 10))

    @contextlib.contextmanager
    def sender(self) -> Iterator[Send]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            connection = runner.run(asyncpg.connect(self.url))
            queries = Queries(AsyncpgDriver(connection))
            yield lambda number: runner.run(self._enqueue(queries, number))
            runner.run(connection.close())

    async def _enqueue(self, queries: Queries, number: int) -> None:
        await queries.enqueue("record", str(number).encode())


if __name__ == "__main__":
    main(Pgqueuer())
