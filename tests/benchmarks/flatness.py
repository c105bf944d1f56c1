"""``python -m tests.benchmarks.flatness``: whether claims cost the same beside a million jobs.

For each kind of job that a claim could stumble over, measures the same claims beside a thousand and
beside a million of them, by turns, on PostgreSQL and on SQLite.
"""

import argparse
import contextlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks import databases, machine
from tests.benchmarks.contenders.django_database import database_of
from tests.benchmarks.flatness_page import Figures, missed, page, tables

if TYPE_CHECKING:
    from tests.benchmarks.crowds import Crowd

FEW = 1_000
#: Jobs that a claim, and a settlement, is after.
BATCH = 100
#: Measurements of each database in a round.
REPETITIONS = 25
VENDORS = {"PostgreSQL": databases.fresh_postgresql, "SQLite": databases.fresh_sqlite}

Fresh = Callable[..., contextlib.AbstractContextManager[str]]
Seconds = dict[str, float]


def main() -> int:
    """The exit code: 1 where something costs more than it may."""
    options = _parser().parse_args()
    if options.smoke:
        options.rows, options.rounds, options.repetitions = 2_000, 1, 1
    warning = machine.load_warning()
    if warning:
        print(f"!!! {warning}", file=sys.stderr)
    facts = machine.describe(options.database_url)
    load = machine.load()
    _set_up(options.database_url)
    found: Figures = {}
    for vendor in VENDORS:
        if options.only in ("", vendor.lower()):
            found[vendor] = measure(vendor, options)
    print(tables(found))
    if options.output:
        facts += [
            ("Load", f"{load:.2f} at the start, {machine.load():.2f} at the end"),
            ("Taken", f"{datetime.now(UTC):%Y-%m-%d}"),
        ]
        from tests.benchmarks.crowds import CLAIMABLE

        sizes = {
            "rows": options.rows,
            "rounds": options.rounds,
            "repetitions": options.repetitions,
            "claimable": CLAIMABLE,
        }
        options.output.write_text(page(found, sizes, facts))
    return 1 if missed(found) and not options.smoke else 0


def measure(vendor: str, options: argparse.Namespace) -> dict[str, dict[str, list[Seconds]]]:
    """By crowd and by what is measured, for each round: the seconds beside few and beside many."""
    from tests.benchmarks.crowds import CROWDS

    sizes = {"few": min(FEW, options.rows), "many": options.rows}
    found = {}
    with contextlib.ExitStack() as stack:
        finished = {
            size: stack.enter_context(_finished(vendor, size, rows, options.database_url))
            for size, rows in sizes.items()
        }
        # A smoke run makes few databases on the server: each takes a second or so.
        crowds = CROWDS[::5] if options.smoke and vendor == "PostgreSQL" else CROWDS
        for crowd in (each for each in crowds if options.crowds in each.title):
            began = time.monotonic()
            with contextlib.ExitStack() as copies:
                for size, rows in sizes.items():
                    fresh = _fresh(vendor, options.database_url, copy_of=finished[size])
                    url = copies.enter_context(fresh)
                    copies.enter_context(_crowded(vendor, size, url, crowd, rows))
                found[crowd.title] = _compare(vendor, crowd, options)
            took = time.monotonic() - began
            print(f"{vendor}: {crowd.title}: {took:.0f} s", file=sys.stderr, flush=True)
    return found


# --- databases ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _finished(vendor: str, size: str, rows: int, server: str) -> Iterator[str]:
    """A database with nothing but finished jobs, to be copied; its URL."""
    from django.core.management import call_command

    from tests.benchmarks.crowds import store_finished

    with _fresh(vendor, server) as url:
        with _connected(vendor, size, url) as alias:
            call_command("migrate", database=alias, verbosity=0)
            store_finished(_scope(alias), rows)
        yield url


@contextlib.contextmanager
def _crowded(vendor: str, size: str, url: str, crowd: "Crowd", rows: int) -> Iterator[None]:
    """Add the crowd, and leave the database as it would be some time later."""
    from django.db import connections

    from tests.benchmarks.crowds import store_crowd

    with _connected(vendor, size, url) as alias:
        store_crowd(_scope(alias), crowd, rows)
        with connections[alias].cursor() as cursor:
            if vendor == "SQLite":  # which has nothing that would analyze by itself
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            else:
                cursor.execute("VACUUM ANALYZE")
                cursor.execute("CHECKPOINT")
        yield


@contextlib.contextmanager
def _connected(vendor: str, size: str, url: str) -> Iterator[str]:
    """Have an alias stand for this database; the alias."""
    from django.db import connections

    alias = _alias(vendor, size)
    connections[alias].settings_dict["NAME"] = database_of(url)["NAME"]
    try:
        yield alias
    finally:
        connections[alias].close()


def _fresh(
    vendor: str, server: str, copy_of: str | None = None
) -> contextlib.AbstractContextManager[str]:
    make: Fresh = VENDORS[vendor]
    return make(*([server] if vendor == "PostgreSQL" else []), copy_of=copy_of)


def _alias(vendor: str, size: str) -> str:
    return f"{vendor.lower()}-{size}"


def _scope(alias: str) -> Any:
    from flexiq_django.store.scope import Scope

    return Scope(using=alias)


# --- measuring ------------------------------------------------------------------------------------


def _compare(vendor: str, crowd: "Crowd", options: argparse.Namespace) -> dict[str, list[Seconds]]:
    """By what is measured, for each round: the fastest beside few, and beside many."""
    found: dict[str, list[Seconds]] = defaultdict(list)
    scopes = {size: _scope(_alias(vendor, size)) for size in ("few", "many")}
    for scope in scopes.values():  # whatever is read for the first time
        look(scope, crowd)
    for _ in range(options.rounds):
        times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for number in range(options.repetitions):
            for size in ("few", "many") if number % 2 else ("many", "few"):
                for name, took in look(scopes[size], crowd).items():
                    times[name][size].append(took)
        for name, taken in times.items():
            found[name].append({size: min(each) for size, each in taken.items()})
    return found


def look(scope: Any, crowd: "Crowd") -> Seconds:
    """What a worker does, and the seconds of each part. All is undone, so it can be done again."""
    from django.db import transaction

    from flexiq_django.store.claim import claim, discover_lanes
    from flexiq_django.store.gates import read_gates
    from flexiq_django.store.settle import settle
    from tests.store.acting import settlement

    taken: Seconds = {}

    def timed(name: str, verb: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        answer = verb()
        taken[name] = time.perf_counter() - began
        return answer

    def take(limit: int) -> Any:
        jobs = claim(
            scope, lanes=lanes, limit=limit, worker_id="bench", lease_ms=60_000, gates=gates
        ).jobs
        assert len(jobs) == limit, f"claimed {len(jobs)} of {limit}: {crowd.title}"
        return jobs

    for limit in (1, BATCH):
        with transaction.atomic(using=scope.using):
            lanes = timed(
                "lanes", lambda: discover_lanes(scope, queues=crowd.queues, deployment_id=None)
            )
            gates = timed("gates", lambda: read_gates(scope))
            jobs = timed(f"claim {limit}", lambda limit=limit: take(limit))
            if limit == BATCH:
                ends = [
                    settlement(job, duration_ms=1, succeeded=True, result="null") for job in jobs
                ]
                done = timed(f"settle {limit}", lambda ends=ends: settle(scope, ends))
                assert len(done.settled) == limit
            transaction.set_rollback(True, using=scope.using)
    return taken


# --- the program ----------------------------------------------------------------------------------


def _set_up(server: str) -> None:
    import django
    from django.conf import settings

    places = {"PostgreSQL": server, "SQLite": "sqlite:///nowhere"}
    settings.configure(
        DATABASES={
            "default": database_of("sqlite:///nowhere"),
            **{
                _alias(vendor, size): database_of(url)
                for vendor, url in places.items()
                for size in ("few", "many")
            },
        },
        INSTALLED_APPS=["flexiq_django"],
        SECRET_KEY="only for benchmarks",
        USE_TZ=True,
    )
    django.setup()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.flatness", description=__doc__
    )
    parser.add_argument(
        "--database-url", required=True, help="a PostgreSQL server where databases may be made"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="size of the large crowd")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="of each round")
    parser.add_argument("--only", choices=["postgresql", "sqlite"], default="", help="one of both")
    parser.add_argument("--crowds", default="", help="only those with these words in their title")
    parser.add_argument("--smoke", action="store_true", help="only see that everything runs")
    parser.add_argument("--output", type=Path, help="write the page to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
