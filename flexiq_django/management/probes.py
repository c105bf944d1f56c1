"""The options of a worker that answers probes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from flexiq_django.management.counts import whole_number
from flexiq_django.management.durations import parse_seconds
from flexiq_django.worker.endpoint import HealthEndpoint
from flexiq_django.worker.verdict import Judge

#: Every address: a kubelet comes from outside, and nothing secret is told.
ANYWHERE = "0.0.0.0"  # noqa: S104


def add_health_arguments(parser: CommandParser) -> None:
    """``--health-port`` and what belongs to it."""
    parser.add_argument(
        "--health-port",
        type=whole_number(0, 65_535),
        metavar="PORT",
        help="Answer probes over HTTP on this port: /live and /ready. 0 takes a free one, which"
        " the log names. Default: no port.",
    )
    parser.add_argument(
        "--health-host",
        metavar="ADDRESS",
        help="The address of that port. Default: 0.0.0.0, every one.",
    )
    parser.add_argument(
        "--max-turn-age",
        type=parse_seconds,
        metavar="SECONDS",
        help="Seconds between two turns of the claim loop after which /live fails. Default: 60, or"
        " three times POLL_SECONDS if that is more.",
    )


def require_port(given: Mapping[str, Any]) -> None:
    """Raises ``CommandError`` for options that say nothing without ``--health-port``."""
    if given.get("health_port") is None:
        for name in ("health_host", "max_turn_age"):
            if given.get(name) is not None:
                option = "--" + name.replace("_", "-")
                raise CommandError(f"{option} needs --health-port", returncode=2)


@contextlib.contextmanager
def answering_probes(given: Mapping[str, Any], judge: Judge) -> Iterator[None]:
    """Answer probes meanwhile, if that is asked for. Raises ``ConfigurationError``."""
    if given["health_port"] is None:
        yield
        return
    endpoint = HealthEndpoint(given["health_host"] or ANYWHERE, given["health_port"], judge)
    endpoint.start()
    try:
        yield
    finally:
        endpoint.stop()
