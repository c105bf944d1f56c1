"""The measurements, one run each: drain, latency, idle, enqueue."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks import databases
from tests.benchmarks.contenders import marks
from tests.benchmarks.contenders.registry import Entry
from tests.benchmarks.programs import ContenderFailedError, Interpreters, Program, pause, program_on
from tests.benchmarks.proxy import CountingProxy
from tests.benchmarks.results import Results, percentile

#: Seconds between two looks at whether the last body has begun, and then at the database.
LOOK_SECONDS = 0.002
#: Seconds an idle worker is left alone before its statements count.
SETTLE_SECONDS = 8.0


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of everything. Times in seconds."""

    jobs: int = 30_000
    drain_limit: float = 8.0
    latency_jobs: int = 200
    latency_interval: float = 0.05
    idle: float = 20.0
    settle: float = SETTLE_SECONDS
    singles: int = 1000


SMOKE = Sizes(
    jobs=300,
    drain_limit=1.5,
    latency_jobs=10,
    latency_interval=0.02,
    idle=1.0,
    settle=0.5,
    singles=20,
)


class Bench:
    """Measures contenders on fresh databases and adds what it finds to ``results``."""

    def __init__(
        self, server: str | None, interpreters: Interpreters, sizes: Sizes, results: Results
    ) -> None:
        self.server = server
        self.interpreters = interpreters
        self.sizes = sizes
        self.results = results

    def drain(self, part: str, entry: Entry) -> None:
        """Preload no-op jobs, start one worker, wait until no job is left."""
        sizes = self.sizes
        with self._program(part, entry) as program:
            program.jobs = sizes.jobs
            took = program.run("load", sizes.jobs)
            if not self._on_sqlite(part):
                databases.make_ready(program.url)
            pause(0.2)
            with contextlib.closing(databases.Watcher(program.url)) as watcher:
                figures = self._watch_drain(part, program, watcher)
        bulk = sizes.jobs / took if took else None
        self.results.add(part, entry.key, bulk=bulk, **figures)

    def _watch_drain(
        self, part: str, program: Program, watcher: databases.Watcher
    ) -> dict[str, float]:
        with program.worker() as worker:
            worker.wait_until(lambda: program.notes(marks.BEGAN), 60, "the first job begins")
            began = min(line[0] for line in program.notes(marks.BEGAN)) / 1e9
            cpu_before = worker.cpu_seconds()
            ended, left = self._wait_for_end(program, watcher, began + self.sizes.drain_limit)
            cpu = worker.cpu_seconds() - cpu_before
            memory = worker.memory_mb()
        done = program.jobs - left
        if not done:
            raise ContenderFailedError(f"{program.entry.title}: ran nothing within the limit")
        if left:
            self.results.cut.add((part, program.entry.key))
        return {"rate": done / (ended - began), "memory": memory, "cpu_us": cpu / done * 1e6}

    def _wait_for_end(
        self, program: Program, watcher: databases.Watcher, deadline: float
    ) -> tuple[float, int]:
        """When the last job had ended or the time was up, and how many had not ended then."""
        entry = program.entry
        # Not a single question to the database while there is work: it would slow the work down.
        while not program.notes(marks.LAST):
            if time.monotonic() > deadline:
                return time.monotonic(), int(watcher.value(entry.left))
            pause(LOOK_SECONDS)
        while True:
            now = time.monotonic()
            if not watcher.value(entry.busy):
                return now, 0
            if now > deadline + 10:
                return now, int(watcher.value(entry.left))
            pause(LOOK_SECONDS)

    def latency(self, part: str, entry: Entry) -> None:
        """Milliseconds from just before the enqueue to the first line of the body."""
        sizes = self.sizes
        with contextlib.ExitStack() as stack:
            program = stack.enter_context(self._program(part, entry))
            program.run("prepare")
            worker = stack.enter_context(program.worker())
            sent = program.run("send", sizes.latency_jobs, sizes.latency_interval)
            wanted = {number for number, _ in sent}

            def all_ran() -> bool:
                return wanted <= {line[0] for line in program.notes(marks.RAN)}

            worker.wait_until(all_ran, 60, "every job has begun")
            started = dict(reversed(program.notes(marks.RAN)))  # of two starts, the first
        waits = [(started[number] - at) / 1e6 for number, at in sent]
        self.results.add(
            part,
            entry.key,
            p50=percentile(waits, 0.5),
            p95=percentile(waits, 0.95),
            p99=percentile(waits, 0.99),
        )

    def idle(self, part: str, entry: Entry) -> None:
        """Statements and processor time of a worker that has run a job and now waits."""
        sizes = self.sizes
        with self._program(part, entry) as program, contextlib.ExitStack() as stack:
            program.run("load", 1)
            proxy = None
            url = program.url
            if not self._on_sqlite(part):
                proxy = stack.enter_context(CountingProxy(program.url))
                url = proxy.url
            worker = stack.enter_context(program.worker(url))
            worker.wait_until(lambda: program.notes(marks.BEGAN), 60, "the first job begins")
            pause(sizes.settle)
            cpu, began = worker.cpu_seconds(), time.monotonic()
            if proxy:
                proxy.statements.clear()
            pause(sizes.idle)
            seconds = time.monotonic() - began
            counted = proxy.statements.copy() if proxy else None
            cpu = (worker.cpu_seconds() - cpu) / seconds * 100
        if counted is None:
            self.results.add(part, entry.key, cpu=cpu)
            return
        self.results.add(part, entry.key, statements=counted.total() / seconds, cpu=cpu)
        self.results.texts[part, entry.key] = [
            f"{count / seconds:.2f}/s `{text}`" for text, count in counted.most_common(12)
        ]

    def enqueue(self, part: str, entry: Entry) -> None:
        """Single enqueues a second, one process, each committed."""
        with self._program(part, entry) as program:
            took = program.run("enqueue", self.sizes.singles)
        self.results.add(part, entry.key, single=self.sizes.singles / took)

    # --- helpers ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _program(self, part: str, entry: Entry) -> Iterator[Program]:
        with contextlib.ExitStack() as stack:
            if self._on_sqlite(part):
                url = stack.enter_context(databases.fresh_sqlite())
            else:
                assert self.server
                url = stack.enter_context(databases.fresh_postgresql(self.server))
            yield stack.enter_context(program_on(entry, url, self.interpreters))

    @staticmethod
    def _on_sqlite(part: str) -> bool:
        return part.startswith("sqlite")
