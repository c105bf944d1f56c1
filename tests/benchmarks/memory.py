"""``python -m tests.benchmarks.memory``: whether a worker's memory grows with the jobs it has run.

One worker process runs jobs with results, log lines, progress, queries and failures. Whenever it
has nothing left to do, its memory is read.
"""

import argparse
import contextlib
import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import databases, machine
from tests.benchmarks.contenders import registry
from tests.benchmarks.programs import Interpreters, pause, program_on

#: How much may be in use after so many jobs, as a multiple of what was in use after so many.
BARS = ((5_000, 20_000, 1.1), (20_000, 100_000, 1.05))
#: After how many jobs the memory is read.
STEPS = (100, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000)
SMOKE_STEPS = (50, 200)
EXECUTORS = ("threads", "processes", "coroutines")

_BUSY = f"{registry.OURS.busy} OR EXISTS (SELECT 1 FROM flexiq_jobs WHERE promote_at IS NOT NULL)"

#: By what was measured: megabytes by the number of jobs.
Figures = dict[str, dict[int, float]]


def main() -> int:
    """The exit code: 1 where memory grows by more than it may."""
    options = _parser().parse_args()
    steps = [step for step in STEPS if step <= options.jobs]
    if options.smoke:
        steps = list(SMOKE_STEPS)
    facts = machine.describe(options.database_url)
    found: Figures = {}
    for executor, vendor in itertools.product(options.executors, _servers(options)):
        found[f"{executor}, {vendor}"] = measure(executor, _servers(options)[vendor], steps)
    print(table(found))
    if options.output:
        options.output.write_text(page(found, facts))
    return 0 if all(word != "FAIL" for word in _verdicts(found)) else 1


def measure(executor: str, server: str | None, steps: list[int]) -> dict[int, float]:
    """Megabytes of one worker, by the number of jobs it has run."""
    entry = replace(registry.OURS, variant=executor)
    found: dict[int, float] = {}
    with (
        _fresh(server) as url,
        program_on(entry, url, Interpreters()) as program,
        contextlib.ExitStack() as stack,
    ):
        program.run("prepare")
        worker = stack.enter_context(program.worker())
        watcher = stack.enter_context(contextlib.closing(databases.Watcher(url)))
        for before, step in itertools.pairwise([0, *steps]):
            program.run("load", step - before)
            worker.wait_until(lambda: not watcher.value(_BUSY), 600, f"{step} jobs have ended")
            pause(0.5)  # the worker's own last steps
            found[step] = worker.memory_mb()
            print(f"{executor}: {step}: {found[step]:.1f} MB", file=sys.stderr, flush=True)
        ended = watcher.value("SELECT count(*) FROM flexiq_jobs WHERE completed_at IS NOT NULL")
        archived = watcher.value("SELECT count(*) FROM flexiq_archived_jobs")
        assert ended + archived == steps[-1]
    return found


def _fresh(server: str | None) -> contextlib.AbstractContextManager[str]:
    return databases.fresh_postgresql(server) if server else databases.fresh_sqlite()


def _servers(options: argparse.Namespace) -> dict[str, str | None]:
    given = {"PostgreSQL": options.database_url} if options.database_url else {}
    return {**given, "SQLite": None}


# --- the page -------------------------------------------------------------------------------------

_HEAD = """\
# Benchmarks: memory

What a worker holds in memory after so many jobs, in megabytes. The jobs are short and do a bit of
everything: three tenths return a kilobyte, two tenths log and report progress, three tenths ask the
database, one tenth fails for good and one is retried. Read whenever the worker has nothing left to
do: resident memory, of its child processes too, in which case what they share counts more than
once.

This page is written by the program that measures, `make bench-memory`.

"""

_FOOT = """
```text
make bench-memory BENCH_ARGS="--database-url postgresql://postgres@127.0.0.1:5432/postgres"
```

`--executors threads,processes` names what runs the jobs, `--jobs 20000` makes it shorter, `--smoke`
only tries that everything runs. Without `--database-url` it is about SQLite alone.
"""


def table(found: Figures) -> str:
    """Megabytes, and whether they grow."""
    steps = sorted({step for figures in found.values() for step in figures})
    lines = [["jobs", *found], ["---"] * (len(found) + 1)]
    lines += [
        [f"{step:,}", *(f"{figures[step]:.1f}" for figures in found.values())] for step in steps
    ]
    for early, late, most in BARS:
        name = f"{late:,} / {early:,}, at most {most:g}"
        cells = [
            f"{figures[late] / figures[early]:.3f} {_verdict(figures, early, late, most)}"
            for figures in found.values()
            if late in figures
        ]
        lines += [[name, *cells]] if cells else []
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(found: Figures, facts: list[tuple[str, str]]) -> str:
    """The whole page."""
    where = [*facts, ("Taken", f"{datetime.now(UTC):%Y-%m-%d}")]
    rows = "\n".join(f"| {name} | {value} |" for name, value in where)
    return f"{_HEAD}{table(found)}\n{_FOOT}\n## Where\n\n|  |  |\n| --- | --- |\n{rows}\n"


def _verdicts(found: Figures) -> Iterator[str]:
    for figures in found.values():
        for early, late, most in BARS:
            if late in figures:
                yield _verdict(figures, early, late, most)


def _verdict(figures: dict[int, float], early: int, late: int, most: float) -> str:
    return "PASS" if figures[late] <= figures[early] * most else "FAIL"


# --- the program ----------------------------------------------------------------------------------


def _executors(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= set(EXECUTORS):
        raise argparse.ArgumentTypeError(f"{text}: there are {', '.join(EXECUTORS)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.memory", description=__doc__)
    parser.add_argument("--database-url", help="a PostgreSQL server where databases may be made")
    parser.add_argument(
        "--executors", type=_executors, default=["threads"], help="with commas; default: threads"
    )
    parser.add_argument("--jobs", type=int, default=STEPS[-1], help="how many are run at most")
    parser.add_argument("--smoke", action="store_true", help="only see that everything runs")
    parser.add_argument("--output", type=Path, help="write the page to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
