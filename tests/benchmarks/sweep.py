"""``python -m tests.benchmarks.sweep``: what a first-ever sweep costs a worker that is busy.

In each round one worker drains no-op jobs beside a million expired rows, once with retention off
and once with the recommended windows, each on a database of its own.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import databases, machine
from tests.benchmarks.contenders import marks, registry
from tests.benchmarks.programs import Interpreters, Program, Worker, pause, program_on

#: The share of its rate that the worker may lose.
MOST_LOST = 0.2

_NOW = "statement_timestamp() - interval '90 days' + n * interval '1 second'"
_ID = "(lpad(to_hex(n), 12, '0') || '70008000' || '{mark}00000000000')::uuid"
_JOB = f"'default', 'default', 'app.work', '[[],{{}}]', 0, 0, 3, {_NOW}"
_JOB_COLUMNS = "namespace, queue, task_name, payload, priority, retry_count, max_retries"

#: By table: its share of the rows, and how they are made.
HISTORY = {
    "flexiq_archived_jobs": (
        0.25,
        f"INSERT INTO flexiq_archived_jobs (id, {_JOB_COLUMNS}, completed_at, created_at,"
        " scheduled_at, updated_at, archived_at, status, attempt, origin)"
        f" SELECT {_ID.format(mark=0)}, {_JOB}, {_NOW}, {_NOW}, {_NOW}, {_NOW}, 'complete', 1,"
        " 'task'",
    ),
    "flexiq_dead_letters": (
        0.05,
        f"INSERT INTO flexiq_dead_letters (id, {_JOB_COLUMNS}, failed_at, original_job_id,"
        f" dlq_retry_count) SELECT {_ID.format(mark=1)}, {_JOB}, {_ID.format(mark=0)}, 0",
    ),
    "flexiq_job_errors": (
        0.2,
        "INSERT INTO flexiq_job_errors (id, namespace, job_id, attempt, error, failed_at)"
        f" SELECT {_ID.format(mark=2)}, 'default', {_ID.format(mark=0)}, 0, 'ValueError', {_NOW}",
    ),
    "flexiq_task_logs": (
        0.25,
        "INSERT INTO flexiq_task_logs (id, namespace, job_id, task_name, level, message, logged_at)"
        f" SELECT {_ID.format(mark=3)}, 'default', {_ID.format(mark=0)}, 'app.work', 'info',"
        f" 'a line', {_NOW}",
    ),
    "flexiq_task_metrics": (
        0.25,
        "INSERT INTO flexiq_task_metrics (namespace, task_name, job_id, duration_ms, succeeded,"
        f" recorded_at) SELECT 'default', 'app.work', {_ID.format(mark=0)}, 5, true, {_NOW}",
    ),
}
LEFT = " + ".join(
    f"(SELECT count(*) FROM {table} WHERE {column} < statement_timestamp() - interval '31 days')"
    for table, column in {
        "flexiq_archived_jobs": "completed_at",
        "flexiq_dead_letters": "failed_at",
        "flexiq_job_errors": "failed_at",
        "flexiq_task_logs": "logged_at",
        "flexiq_task_metrics": "recorded_at",
    }.items()
)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one drain. ``swept`` rows went meanwhile; ``whole`` seconds until all were gone."""

    rate: float
    swept: int = 0
    swept_rate: float = 0.0
    whole: float | None = None


def main() -> int:
    """The exit code: 1 where the worker lost more than it may."""
    options = _parser().parse_args()
    if options.smoke:
        options.rows, options.jobs, options.rounds = 2_000, 300, 1
    facts = machine.describe(options.database_url)
    warning = machine.load_warning()
    if warning:
        print(f"!!! {warning}", file=sys.stderr)
    load = machine.load()
    rounds = []
    for number in range(options.rounds):
        if number % 2:
            beside, without = measure(options, swept=True), measure(options, swept=False)
        else:
            without, beside = measure(options, swept=False), measure(options, swept=True)
        rounds.append((without, beside))
        print(f"round {number + 1}: {without} | {beside}", file=sys.stderr, flush=True)
    facts.append(("Load", f"{load:.2f} at the start, {machine.load():.2f} at the end"))
    text = render(options, rounds, facts, is_busy=warning is not None)
    print(text)
    if options.output:
        options.output.write_text(text)
    lost = 1 - _share(rounds)
    return 1 if lost > MOST_LOST and not options.smoke else 0


def measure(options: argparse.Namespace, *, swept: bool) -> Figures:
    """One drain on a fresh database."""
    with (
        _environment(BENCH_FLEXIQ="{}" if swept else json.dumps({"RETENTION": {}})),
        databases.fresh_postgresql(options.database_url) as url,
        program_on(registry.OURS, url, Interpreters()) as program,
    ):
        program.jobs = options.jobs
        program.run("load", options.jobs)
        _store_history(url, options.rows)
        databases.make_ready(url)
        pause(0.5)
        with contextlib.closing(databases.Watcher(url)) as watcher, program.worker() as worker:
            return _watch(program, watcher, worker, options.rows, is_swept=swept)


def _watch(
    program: Program, watcher: databases.Watcher, worker: Worker, rows: int, *, is_swept: bool
) -> Figures:
    worker.wait_until(lambda: program.notes(marks.BEGAN), 60, "the first job begins")
    began = min(line[0] for line in program.notes(marks.BEGAN)) / 1e9
    worker.wait_until(lambda: program.notes(marks.LAST), 600, "the last job begins")
    worker.wait_until(lambda: not watcher.value(program.entry.busy), 60, "the last job has ended")
    took = time.monotonic() - began
    left = int(watcher.value(f"SELECT {LEFT}"))
    gone = rows - left
    figures = Figures(rate=program.jobs / took, swept=gone, swept_rate=gone / took)
    if not is_swept:
        assert left == rows, "something swept although retention is off"
        return figures
    while watcher.value(f"SELECT {LEFT}"):
        if time.monotonic() - began > 900:
            return figures
        pause(0.5)
    return replace(figures, whole=time.monotonic() - began)


def _store_history(url: str, rows: int) -> None:
    with databases.connect(url) as connection:
        for share, insert in HISTORY.values():
            connection.execute(f"{insert} FROM generate_series(1, {round(rows * share)}) AS n")


@contextlib.contextmanager
def _environment(**names: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# --- the page -------------------------------------------------------------------------------------


def render(
    options: argparse.Namespace,
    rounds: list[tuple[Figures, Figures]],
    facts: list[tuple[str, str]],
    *,
    is_busy: bool,
) -> str:
    """The page, with its table and what it was measured on."""
    share = _share(rounds)
    verdict = "PASS" if 1 - share <= MOST_LOST else "FAIL"
    lines = [
        "# A sweep beside a busy worker",
        "",
        f"One worker drains {options.jobs:,} jobs that do nothing, beside {options.rows:,} expired"
        " rows of history that",
        "nobody ever swept: archived jobs, metrics, log lines, errors and dead letters. In each"
        " round it does so once with",
        "retention off and once with the recommended windows, by turns first, each time on a fresh"
        " PostgreSQL database. The sweep",
        "runs in the same worker process, as in any deployment with a single worker.",
        "",
        f"This page is written by the program that measures,"
        f" `{_command(options)}`, on {datetime.now(UTC):%Y-%m-%d}.",
        "",
        "| round | jobs/s, no sweep | jobs/s beside the sweep | share kept | rows swept meanwhile |"
        " rows/s meanwhile | all rows gone after, s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for number, (without, beside) in enumerate(rounds, 1):
        whole = "" if beside.whole is None else f"{beside.whole:.0f}"
        lines.append(
            f"| {number} | {without.rate:,.0f} | {beside.rate:,.0f} |"
            f" {beside.rate / without.rate:.2f} | {beside.swept:,} | {beside.swept_rate:,.0f} |"
            f" {whole} |"
        )
    if is_busy:
        lines += [
            "",
            "Other programs were busy on the machine meanwhile, which is why the rounds differ by"
            " as much as they do.",
        ]
    lines += [
        "",
        f"Median share kept: {share:.2f}. Needed: at least {1 - MOST_LOST:.2f}. {verdict}",
        "",
        "## Measured on",
        "",
        "|  |  |",
        "| --- | --- |",
        *(f"| {name} | {value} |" for name, value in facts),
        "",
    ]
    return "\n".join(lines)


def _share(rounds: list[tuple[Figures, Figures]]) -> float:
    return statistics.median(beside.rate / without.rate for without, beside in rounds)


def _command(options: argparse.Namespace) -> str:
    return (
        "python -m tests.benchmarks.sweep --database-url ..."
        f" --rows {options.rows} --jobs {options.jobs} --rounds {options.rounds}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.sweep", description=__doc__)
    parser.add_argument(
        "--database-url", required=True, help="a PostgreSQL server where databases may be made"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="expired rows")
    parser.add_argument("--jobs", type=int, default=200_000, help="jobs to drain")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--smoke", action="store_true", help="only see that everything runs")
    parser.add_argument("--output", type=Path, help="write the page to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
