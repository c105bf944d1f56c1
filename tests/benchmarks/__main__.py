"""``python -m tests.benchmarks``: measure, print the tables, perhaps write the page."""

import argparse
import importlib.util
import os
import shlex
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import databases, machine, peers
from tests.benchmarks.bars import BARS
from tests.benchmarks.contenders import registry
from tests.benchmarks.contenders.base import WARM_UP
from tests.benchmarks.contenders.registry import Entry
from tests.benchmarks.measures import SMOKE, Bench, Sizes
from tests.benchmarks.page import page
from tests.benchmarks.programs import Interpreters
from tests.benchmarks.report import Report
from tests.benchmarks.results import Results

#: Who takes part in what, in the order of the rounds.
PLAN: dict[str, list[Entry]] = {
    "drain": [
        registry.OURS,
        registry.RAW,
        registry.PGQUEUER_100,
        registry.PGQUEUER_10,
        registry.TASKS_DB,
    ],
    "latency": [registry.OURS, registry.RAW, registry.PROCRASTINATE, registry.PGQUEUER_10],
    "idle": [registry.OURS, registry.PROCRASTINATE, registry.PGQUEUER_10, registry.TASKS_DB],
    "enqueue": [
        registry.OURS,
        registry.RAW,
        registry.PROCRASTINATE,
        registry.PGQUEUER_10,
        registry.TASKS_DB,
    ],
    "sqlite-drain": [registry.OURS],
    "sqlite-latency": [registry.OURS, registry.FLEXIQ],
    "sqlite-idle": [registry.OURS],
    "sqlite-enqueue": [registry.OURS, registry.FLEXIQ],
}
#: What an idle worker does is no matter of chance.
ONCE = {"idle", "sqlite-idle"}
URL_VARIABLES = ("FLEXIQ_BENCH_DATABASE_URL", "FLEXIQ_TEST_POSTGRES_URL")


def main() -> int:
    """The exit code: 1 after an error, 2 under ``--strict`` after a missed requirement."""
    options = _parser().parse_args()
    if options.make_peers_venv:
        peers.make(options.make_peers_venv)
        return 0
    results = Results()
    interpreters = Interpreters()
    if options.peers_venv:
        interpreters = Interpreters(peers=str(peers.interpreter(options.peers_venv).absolute()))
    server = _server(options, results)
    plan, versions = _possible(_chosen(options), server, interpreters, results)
    for text in [*results.skipped, machine.load_warning()]:
        if text:
            print(f"!!! {text}", file=sys.stderr, flush=True)
    load = machine.load()
    facts = machine.describe(server)
    sizes = _sizes(options)
    repeat = 1 if options.smoke else options.repeat
    _measure(Bench(server, interpreters, sizes, results), plan, repeat)
    facts.append(("Load", f"{load:.2f} at the start, {machine.load():.2f} at the end"))
    report = Report(
        results,
        plan,
        facts=facts,
        versions=versions,
        judged=not options.smoke,
        command=_command(),
        taken=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    print(f"\n{report.tables()}")
    if options.output:
        options.output.write_text(page(report, sizes, repeat=repeat, warm_up=WARM_UP))
    if results.errors:
        return 1
    missed = [verdict for verdict in report.verdicts if verdict.holds is False]
    return 2 if options.strict and missed else 0


def _measure(bench: Bench, plan: dict[str, list[Entry]], repeat: int) -> None:
    began = time.monotonic()
    for part, entries in plan.items():
        measure = getattr(bench, part.removeprefix("sqlite-"))
        for number in range(1 if part in ONCE else repeat):
            for entry in entries:
                words = f"{part}, round {number + 1}: {entry.title}"
                elapsed = time.monotonic() - began
                print(f"{elapsed:4.0f} s  {words}", file=sys.stderr, flush=True)
                try:
                    measure(part, entry)
                except Exception as error:  # one contender must not take the others with it
                    text = f"{part}: {entry.title}: {type(error).__name__}: {error}"
                    print(f"!!! {text}", file=sys.stderr, flush=True)
                    bench.results.errors.append(text)
    _copy_bulk_rates(bench.results, plan)


def _copy_bulk_rates(results: Results, plan: dict[str, list[Entry]]) -> None:
    """The preload of a drain was a measurement of the bulk enqueue."""
    for part, source in (("enqueue", "drain"), ("sqlite-enqueue", "sqlite-drain")):
        for entry in plan.get(part, []):
            # pgqueuer enqueues alike whatever its worker's batches are.
            for rate in results.samples.get((source, entry.key, "bulk"), []):
                if entry is not registry.RAW:
                    results.add(part, entry.key, bulk=rate)


def _chosen(options: argparse.Namespace) -> dict[str, list[Entry]]:
    plan = _smoke_plan() if options.smoke else PLAN
    if not options.only:
        return plan
    names = options.only.split(",")
    unknown = sorted(set(names) - set(PLAN))
    if unknown:
        raise SystemExit(f"unknown part {', '.join(unknown)}; there are {', '.join(PLAN)}")
    return {name: plan[name] for name in plan if name in names}


def _smoke_plan() -> dict[str, list[Entry]]:
    """Peers only where a requirement names them."""
    named = {(bar.part, bar.against) for bar in BARS}
    return {
        part: [entry for entry in entries if not entry.is_peer or (part, entry.key) in named]
        for part, entries in PLAN.items()
    }


def _possible(
    plan: dict[str, list[Entry]],
    server: str | None,
    interpreters: Interpreters,
    results: Results,
) -> tuple[dict[str, list[Entry]], dict[str, str]]:
    """What of the plan can be done here, and the versions of those who take part."""
    entries = {entry.key: entry for part in plan.values() for entry in part}
    found = {key: interpreters.version_of(entry) for key, entry in entries.items()}
    for key, version in found.items():
        if version is None:
            names = ", ".join((entries[key].package, *entries[key].needs))
            results.skipped.append(f"SKIPPED {entries[key].title}: needs {names} installed")
    possible = {
        part: [entry for entry in entries if found[entry.key]]
        for part, entries in plan.items()
        if server or part.startswith("sqlite")
    }
    taking_part = {entry.key for part in possible.values() for entry in part}
    return possible, {
        key: version for key, version in found.items() if version and key in taking_part
    }


def _server(options: argparse.Namespace, results: Results) -> str | None:
    """The URL of a PostgreSQL server that answers, or None with the reason noted."""
    given = [options.database_url, *(os.environ.get(name) for name in URL_VARIABLES)]
    url = next((each for each in given if each), None)
    if url is None:
        results.skipped.append("SKIPPED everything on PostgreSQL: no --database-url is given")
        return None
    if importlib.util.find_spec("psycopg") is None:
        results.skipped.append("SKIPPED everything on PostgreSQL: psycopg is not installed")
        return None
    databases.connect_to_server(url).close()
    return str(url)


def _sizes(options: argparse.Namespace) -> Sizes:
    sizes = SMOKE if options.smoke else Sizes()
    given = {"jobs": options.jobs, "idle": options.idle_seconds}
    return replace(sizes, **{name: value for name, value in given.items() if value})


def _command() -> str:
    """How this was called, without the places of this machine."""
    words = []
    hide = False
    for word in sys.argv[1:]:
        words.append("..." if hide or word.startswith("/") else word)
        hide = word in ("--database-url", "--peers-venv")
    return shlex.join(["python", "-m", "tests.benchmarks", *words]).replace("'...'", "...")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--database-url", help="a PostgreSQL server where databases may be made")
    parser.add_argument("--only", help=f"parts, with commas between: {', '.join(PLAN)}")
    parser.add_argument("--repeat", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--jobs", type=int, help="jobs of a drain (default: 30000)")
    parser.add_argument("--idle-seconds", type=float, help="length of the idle part (default: 20)")
    parser.add_argument("--smoke", action="store_true", help="only see that everything runs")
    parser.add_argument("--peers-venv", type=Path, help="virtual environment of the peers")
    parser.add_argument("--make-peers-venv", type=Path, help="create that environment, and end")
    parser.add_argument("--output", type=Path, help="write the whole page to this file")
    parser.add_argument("--strict", action="store_true", help="fail when a requirement is missed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
