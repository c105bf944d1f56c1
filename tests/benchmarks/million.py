"""``python -m tests.benchmarks.million``: how long reading takes when there is much to read.

Fills a PostgreSQL database of its own with finished, waiting, dead and archived jobs, dead letters
and metrics, asks every question the way a program asks it, and prints Markdown tables.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks import databases, machine

#: Times that each question is asked, after once for nothing; the tables show the median.
ROUNDS = 5
PAGE = 50

#: A moment in the ``days`` days that ended ``ago`` days ago, and an id of version 7 made of it.
_MOMENTS = (
    "SELECT n, now() - (%(ago)s + random() * %(days)s) * interval '1 day' AS at"
    " FROM generate_series(1, %(count)s) AS n"
)
_ID = (
    "(lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000a'"
    " || lpad(to_hex(%(series)s::int), 2, '0') || '0' || lpad(to_hex(n), 12, '0'))::uuid"
)
#: Ten queues, fifty tasks.
_WORDS = {
    "namespace": "%(namespace)s::text",
    "queue": "'queue-' || n %% 10",
    "task_name": "'app.tasks.work_' || n %% 50",
}
_JOB = {
    **_WORDS,
    "payload": "repeat('x', 200)",
    **dict.fromkeys(("created_at", "scheduled_at", "updated_at"), "at"),
    **dict.fromkeys(("priority", "retry_count", "attempt"), "0"),
    "max_retries": "3",
    "origin": "'task'",
}
_ENDED = {"started_at": "at", "completed_at": "at + interval '1 second'"}
#: Columns that a dead letter takes over from its job.
_KEPT = (
    *("namespace", "queue", "task_name", "payload", "error"),
    *("priority", "retry_count", "max_retries"),
)
_METRIC = {
    "namespace": "%(namespace)s::text",
    "task_name": _WORDS["task_name"],
    "job_id": _ID,
    "duration_ms": "random() * 1000",
    "succeeded": "n %% 20 <> 0",
    "recorded_at": "at",
}


class Filler:
    """Writes rows of one kind after another."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._series = 0

    def rows(self, table: str, count: int, columns: dict[str, str], **options: Any) -> None:
        """So many rows. Options: ``days``, ``ago``, ``namespace``."""
        self._series += 1
        params = {"days": 1, "ago": 0, "namespace": "default", **options}
        self._connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(columns.values())}"
            f" FROM ({_MOMENTS}) AS moment ORDER BY at",
            {"count": count, "series": self._series, **params},
        )

    def letters(self) -> None:
        """A dead letter for each dead job."""
        kept = ", ".join(_KEPT)
        self._connection.execute(
            f"INSERT INTO flexiq_dead_letters"
            f" (id, original_job_id, failed_at, dlq_retry_count, {kept})"
            f" SELECT gen_random_uuid(), id, completed_at, 0, {kept}"
            " FROM flexiq_jobs WHERE status = 'dead' ORDER BY completed_at"
        )


def fill(connection: Any, rows: int) -> None:
    """A database after a day with ``rows`` finished jobs, and as many in the archive."""
    filler = Filler(connection)

    def jobs(count: int, status: str, where: dict[str, Any] | None = None, **more: str) -> None:
        columns = {"id": _ID, **_JOB, "status": f"'{status}'", **more}
        filler.rows("flexiq_jobs", count, columns, **(where or {}))

    few = max(PAGE * 2, rows // 100)
    jobs(2 * PAGE, "complete", {"namespace": "small", "ago": 1}, **_ENDED)
    jobs(rows, "complete", **_ENDED)
    jobs(few, "dead", **_ENDED, error="'ValueError: bad'")
    jobs(rows // 20, "pending", ready_lane=_WORDS["queue"])
    jobs(rows // 40, "pending", promote_at="now() + interval '1 day'")
    jobs(rows // 40, "pending")
    jobs(min(200, few), "running", lease_at="now() + interval '1 hour'", token="1")
    archived = {"id": _ID, **_JOB, "status": "'complete'", **_ENDED, "archived_at": "now()"}
    filler.rows("flexiq_archived_jobs", rows, archived, days=7)
    filler.letters()
    filler.rows("flexiq_task_metrics", rows, _METRIC)


# --- questions ------------------------------------------------------------------------------------


def listings(connection: Any) -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    """Each listing with its first, middle and last page."""
    from flexiq_django import Queue
    from flexiq_django.api.cursors import Listing, page_of
    from flexiq_django.store.listing import Place

    queue = Queue("default")

    def pages(
        name: str,
        ask: Callable[..., Any],
        listing: Listing,
        table: str,
        moment: str,
        **filters: str,
    ) -> tuple[str, list[Callable[[], Any]]]:
        where = " AND ".join(
            f"{column} = '{value}'" for column, value in {"namespace": "default", **filters}.items()
        )
        (total,) = connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()
        asked: list[Callable[[], Any]] = [lambda: ask(limit=PAGE)]
        for skipped in (total // 2, max(0, total - PAGE - 1)):
            row = connection.execute(
                f"SELECT {moment}, id FROM {table} WHERE {where}"
                f" ORDER BY {moment} DESC, id DESC OFFSET {skipped} LIMIT 1"
            ).fetchone()
            place = row[1] if listing == "jobs" else Place(*row)
            after = page_of(listing, [row], 1, place).next_cursor
            asked.append(lambda after=after: ask(limit=PAGE, after=after))
        return name, asked

    def of_status(word: str, **more: Any) -> Callable[..., Any]:
        return lambda **page: queue.list_jobs_after(word, **more, **page)

    yield pages("`list_jobs_after()`", queue.list_jobs_after, "jobs", "flexiq_jobs", "id")
    yield pages(
        "`list_jobs_after(namespace=None)`",
        lambda **page: queue.list_jobs_after(namespace=None, **page),
        "jobs", "flexiq_jobs", "id",
    )  # fmt: skip
    for word in ("complete", "dead", "pending", "running"):
        yield pages(
            f'`list_jobs_after("{word}")`',
            of_status(word), "jobs", "flexiq_jobs", "id", status=word,
        )  # fmt: skip
    yield pages(
        '`list_jobs_filtered_after("complete", queue="queue-7")`',
        lambda **page: queue.list_jobs_filtered_after("complete", "queue-7", **page),
        "jobs", "flexiq_jobs", "id", status="complete", queue="queue-7",
    )  # fmt: skip
    yield pages(
        "`list_archived_after()`",
        queue.list_archived_after, "archived jobs", "flexiq_archived_jobs", "completed_at",
    )  # fmt: skip
    yield pages(
        "`dead_letters_after()`",
        queue.dead_letters_after, "dead letters", "flexiq_dead_letters", "failed_at",
    )  # fmt: skip
    (total,) = connection.execute("SELECT count(*) FROM flexiq_jobs").fetchone()
    yield (
        "`list_jobs()`, by offset",
        [
            lambda skipped=skipped: queue.list_jobs(limit=PAGE, offset=skipped)
            for skipped in (0, total // 2, total - PAGE)
        ],
    )


def questions() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is asked for figures."""
    from flexiq_django import Queue

    queue = Queue("default")
    yield "`stats()`", queue.stats
    yield "`stats_all_queues()`", queue.stats_all_queues
    yield '`list_jobs(status="dead")`', lambda: queue.list_jobs(status="dead")
    yield (
        "`list_jobs()` of a namespace whose jobs are all older than those of the others",
        lambda: queue.list_jobs(namespace="small"),
    )
    yield "`metrics()` of an hour", queue.metrics
    yield "`metrics()` of a day", lambda: queue.metrics(since=86_400)
    yield "`metrics_timeseries()` of an hour", queue.metrics_timeseries
    yield (
        "`metrics_timeseries()` of a day, in buckets of an hour",
        lambda: queue.metrics_timeseries(since=86_400, bucket=3_600),
    )


#: Requests to the HTTP surface, by path and query.
REQUESTS = (
    "stats",
    "jobs",
    "jobs?limit=1000",
    "jobs?limit=20&page=500",
    "jobs?status=failed",
    "jobs?status=failed&status=cancelled",
    "jobs?status=queued",
    "jobs?status=running",
    "jobs?status=paused",
    "jobs?sort_order=asc",
    "jobs?sort_by=updated_at",
    "jobs?status=completed&sort_by=completed_at",
    "jobs?status=failed&sort_by=user_id",
)


def requests() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is asked over HTTP, by somebody who may see payloads; the network is left out."""
    import jwt
    from django.test import Client, override_settings

    secret = "a secret for the benchmark, long enough"
    token = jwt.encode({"scope": "admin view_payload"}, secret, algorithm="HS256")
    rules = {"ENABLED": True, "JWT": {"KEY": secret, "ALGORITHMS": ["HS256"]}}
    client = Client(headers={"Authorization": f"Bearer {token}"})

    def ask(path: str) -> None:
        response = client.get(f"/queue/{path}")
        assert response.status_code == 200, response.content

    with override_settings(ALLOWED_HOSTS=["testserver"], FLEXIQ={"OPERATOR": rules}):
        for path in REQUESTS:
            yield f"`GET /queue/{path}`", lambda path=path: ask(path)


def measure(question: Callable[[], Any]) -> str:
    """Milliseconds that a question takes, as a cell."""
    question()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        question()
        times.append((time.perf_counter() - began) * 1000)
    return f"{statistics.median(times):,.1f}"


def tables(connection: Any) -> str:
    """All tables."""
    lines = ["| Page of 50 rows, ms | first | middle | last |", "| --- | --- | --- | --- |"]
    for name, pages in listings(connection):
        lines.append(f"| {name} | {' | '.join(measure(page) for page in pages)} |")
    lines += ["", "| Question | ms |", "| --- | --- |"]
    lines += [f"| {name} | {measure(question)} |" for name, question in questions()]
    lines += ["", "| Request to the HTTP surface | ms |", "| --- | --- |"]
    lines += [f"| {name} | {measure(question)} |" for name, question in requests()]
    lines += ["", REQUESTS_NOTE]
    return "\n".join(lines)


# --- the program ----------------------------------------------------------------------------------

HEAD = """\
# Benchmarks: a million jobs

How long the reading methods take in a database with {rows:,} finished jobs, a tenth as many
pending ones (half of them ready, the others due later or waiting for parents), a hundredth as many
dead ones with their dead letters, {rows:,} archived jobs and {rows:,} executions within one day.
Median of {rounds} calls through the Python API, the database warm and vacuumed.

Written by `python -m tests.benchmarks.million`.

"""


REQUESTS_NOTE = """\
The requests go through Django's test client, without a network. Those that ask for all or for
completed jobs spend most of their time on counting a million of them."""


def main() -> int:
    """The exit code."""
    options = _parser().parse_args()
    warning = machine.load_warning()
    if warning:
        print(f"!!! {warning}", file=sys.stderr)
    facts = machine.describe(options.database_url)
    load = machine.load()
    with databases.fresh_postgresql(options.database_url) as url:
        _set_up(url)
        with databases.connect(url) as connection:
            began = time.monotonic()
            fill(connection, options.rows)
            connection.execute("VACUUM ANALYZE")
            print(f"filled in {time.monotonic() - began:.0f} s", file=sys.stderr)
            found = tables(connection)
        _let_go()
    print(found)
    if options.output:
        facts += [
            ("Load", f"{load:.2f} at the start, {machine.load():.2f} at the end"),
            ("Taken", f"{datetime.now(UTC):%Y-%m-%d}"),
        ]
        where = "\n".join(f"| {name} | {value} |" for name, value in facts)
        head = HEAD.format(rows=options.rows, rounds=ROUNDS)
        options.output.write_text(f"{head}{found}\n\n## Where\n\n|  |  |\n| --- | --- |\n{where}\n")
    return 0


def _set_up(url: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ["FLEXIQ_TEST_DATABASE_URL"] = url
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def _let_go() -> None:
    from django.db import connections

    connections.close_all()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.million", description=__doc__)
    parser.add_argument(
        "--database-url", required=True, help="a PostgreSQL server where databases may be made"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="finished jobs")
    parser.add_argument("--output", type=Path, help="write the whole page to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
