"""``manage.py flexiq_health``: an exit code for probes."""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DjangoDatabaseError

from flexiq_django.exceptions import FlexiQError
from flexiq_django.management.counts import whole_number
from flexiq_django.management.durations import parse_duration, parse_seconds
from flexiq_django.management.given import (
    add_scope_arguments,
    complaint,
    queue_names,
    scope_of,
)
from flexiq_django.management.health import Expected, answer, count_of, judge
from flexiq_django.management.report import longest_turn
from flexiq_django.store.scope import Scope

#: A fleet is unhealthy when a job has been ready for longer than this, in seconds.
MAX_AGE = 300.0


class Command(BaseCommand):
    """Say by the exit code whether the workers are well."""

    help = (
        "Exit with 0 if the fleet, or this host's workers, are well, and with 1 and the reasons if"
        " not. With --worker or --host the backlog is judged only if --max-age is given."
    )
    # A probe is for what runs, and runs often: what is wrong with the project others say.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        add_scope_arguments(parser)
        parser.add_argument(
            "--queues",
            help="Names of the queues that matter, with commas between them: each needs workers."
            " Default: every queue.",
        )
        parser.add_argument("--worker", metavar="ID", help="Judge this worker alone.")
        parser.add_argument(
            "--host",
            nargs="?",
            const=socket.gethostname(),
            metavar="NAME",
            help="Judge the workers of this host alone; without a name, of the one it runs on.",
        )
        parser.add_argument(
            "--min-workers",
            type=whole_number(0),
            default=1,
            metavar="N",
            help="Fewer workers that are alive and whose claim loop turns are too few; those that"
            " drain count with --worker or --host only. Default: 1.",
        )
        parser.add_argument(
            "--max-age",
            type=parse_duration,
            metavar="TIME",
            help="Longest time a job may have been ready: seconds, or a number with s, m, h or d,"
            " or forever. Default: 300, and forever with --worker or --host.",
        )
        parser.add_argument(
            "--max-turn-age",
            type=parse_seconds,
            metavar="SECONDS",
            help="Longest time between two turns of a claim loop. Default: 60, or"
            " three times POLL_SECONDS if that is more.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **given: Any) -> None:
        try:
            scope = scope_of(given)
            expected = expected_of(given)
        except FlexiQError as error:
            raise CommandError(str(error), returncode=2) from None
        found = look(scope, expected)
        if given["json"]:
            self.stdout.write(json.dumps(found))
        elif found["healthy"]:
            self.stdout.write(f"healthy, with {count_of(found['workers'], 'worker')}")
        for each in found["reasons"]:
            self.stderr.write(f"unhealthy: {each['text']}")
        if not found["healthy"]:
            sys.exit(1)


def expected_of(given: dict[str, Any]) -> Expected:
    """The thresholds of the command line. Raises ``FlexiQError``."""
    expected = Expected(
        queues=queue_names(given["queues"]),
        worker=given["worker"],
        host=given["host"] and given["host"][:200],
        min_workers=given["min_workers"],
        max_age=given["max_age"],
        max_turn_age=given["max_turn_age"] or longest_turn(),
    )
    if expected.max_age is None and not expected.is_local:
        return replace(expected, max_age=MAX_AGE)
    return expected


def look(scope: Scope, expected: Expected) -> dict[str, Any]:
    """The verdict; a database that cannot be read, or not by us, is one as well."""
    try:
        return judge(scope, expected)
    except NotImplementedError as error:
        return answer(scope, [("database-unsupported", str(error))])
    except DjangoDatabaseError as error:
        return answer(scope, [("database-away", complaint(error))])
