"""``manage.py flexiq_info``: what is queued, who works on it, and what looks wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import Error as DjangoDatabaseError
from django.db import close_old_connections

from flexiq_django.core.ages import as_age
from flexiq_django.core.status import COUNT_KEYS
from flexiq_django.management.durations import parse_seconds
from flexiq_django.management.given import add_scope_arguments, complaint, plain_errors, scope_of
from flexiq_django.management.report import collect
from flexiq_django.management.tables import as_moment, table
from flexiq_django.store.scope import Scope


class Command(BaseCommand):
    """Show the state of a namespace."""

    help = "Show counts, queues, workers and schedules, and warn about what looks wrong."

    def add_arguments(self, parser: CommandParser) -> None:
        add_scope_arguments(parser)
        parser.add_argument(
            "--json", action="store_true", help="Print one JSON object a line, for programs."
        )
        parser.add_argument(
            "--watch",
            nargs="?",
            const=2.0,
            type=parse_seconds,
            metavar="SECONDS",
            help="Show it again every so many seconds until Ctrl-C. Default: 2.",
        )

    def handle(self, *args: Any, **given: Any) -> None:
        try:
            with plain_errors():
                scope = scope_of(given)
                if given["watch"] is None:
                    self.stdout.write(self._text(scope, given["json"]))
                else:
                    self._watch(scope, given["watch"], given["json"])
        except KeyboardInterrupt:
            self.stdout.write("")

    def _watch(self, scope: Scope, seconds: float, as_json: bool) -> None:
        pause = threading.Event()
        clear = "\x1b[2J\x1b[H" if self.stdout.isatty() and not as_json else ""
        while True:
            try:
                text = self._text(scope, as_json)
            except DjangoDatabaseError as error:
                self.stderr.write(complaint(error))
                close_old_connections()  # the broken one, so that the next look gets a new one
            else:
                self.stdout.write(clear + text)
                self.stdout.flush()
            pause.wait(seconds)

    def _text(self, scope: Scope, as_json: bool) -> str:
        found = collect(scope)
        return json.dumps(found, default=str) if as_json else render(found)


# --- as text --------------------------------------------------------------------------------------


def render(found: Mapping[str, Any]) -> str:
    """The text for people."""
    lines = [
        f"namespace {found['namespace']}, database {found['database']}, {as_moment(found['time'])}",
        ", ".join(f"{key} {count}" for key, count in found["stats"].items()),
        *_tables(found),
    ]
    warnings = [f"WARNING: {each['text']}" for each in found["warnings"]]
    return "\n".join([*lines, *([""] if warnings else []), *warnings])


def _tables(found: Mapping[str, Any]) -> Iterable[str]:
    yield table(
        "queue", (*COUNT_KEYS, "oldest ready", "workers", "state"),
        [
            (each["name"], *(each[key] for key in COUNT_KEYS), as_age(each["oldest_ready_seconds"]),
             each["workers"], "paused" if each["paused"] else "open")
            for each in found["queues"]
        ],
    )  # fmt: skip
    yield table(
        "worker",
        ("host", "queues", "jobs", "deployment", "state", "heartbeat", "clock", "version"),
        [
            (each["id"], each["hostname"], "all" if each["queues"] is None
             else ",".join(each["queues"]), each["concurrency"], each["deployment_id"],
             each["state"], as_age(each["heartbeat_age_seconds"]), f"{each['clock_skew_ms']:+d} ms",
             each["version"])
            for each in found["workers"]
        ],
    )  # fmt: skip
    yield table(
        "schedule", ("task", "cron", "zone", "next run", "last run", "missed", "state"),
        [
            (each["name"], each["task_name"], each["cron"], each["timezone"],
             as_moment(each["next_run_at"]), as_moment(each["last_run_at"]), each["missed"],
             "enabled" if each["enabled"] else "disabled")
            for each in found["schedules"]
        ],
    )  # fmt: skip
