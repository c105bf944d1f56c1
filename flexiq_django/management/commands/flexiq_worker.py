"""``manage.py flexiq_worker``: run jobs."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from flexiq_django.api import options as check
from flexiq_django.api.auto_retry import auto_retry_for
from flexiq_django.api.windows import windows_of
from flexiq_django.conf import Settings, get_settings
from flexiq_django.core.records import AutoRetry
from flexiq_django.core.retention import RetentionPolicy
from flexiq_django.exceptions import FlexiQError
from flexiq_django.logging import log_to_stderr
from flexiq_django.management.counts import whole_number
from flexiq_django.management.durations import parse_patience
from flexiq_django.management.given import queue_names, scope_of
from flexiq_django.management.probes import add_health_arguments, answering_probes, require_port
from flexiq_django.management.report import longest_turn
from flexiq_django.management.sizes import parse_size
from flexiq_django.worker.connections import close_all, require_reachable
from flexiq_django.worker.executors import EXECUTORS
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.process import WorkerProcess
from flexiq_django.worker.reloading import run_reloading
from flexiq_django.worker.supervisor import Supervisor, leave, start_again


class Command(BaseCommand):
    """Run jobs until told to stop."""

    help = (
        "Run jobs until told to stop. SIGTERM or Ctrl-C lets running jobs finish; a second one"
        " leaves at once and gives the jobs back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """What is run, how long and how, and who may ask."""
        _add_work(parser)
        _add_life(parser)
        add_health_arguments(parser)

    def execute(self, *args: Any, **given: Any) -> str | None:
        """Look at the options and the database first: the system checks may need both.

        Only a worker that has been at work waits for its database. One that never reached it is
        more likely misconfigured, and whoever started it should hear of it.
        """
        require_port(given)
        if given["autoreload"] and (given["processes"] > 1 or given["burst"]):
            raise CommandError(
                "--autoreload goes neither with --processes above 1 nor with --burst", returncode=2
            )
        try:
            self._options = worker_options(given)
            require_reachable(self._options.scope)
        except FlexiQError as error:
            raise CommandError(str(error)) from None
        return super().execute(*args, **given)

    def handle(self, *args: Any, **given: Any) -> None:
        options = self._options
        log_to_stderr(options.verbosity, options.log_format)
        try:
            if given["autoreload"]:
                close_all()
                leave(run_reloading(options, partial(answering_probes, given)))
            if given["processes"] > 1:
                close_all()
                supervisor = Supervisor(options, given["processes"])
                with answering_probes(given, supervisor.board):
                    leave(supervisor.run())
            worker = WorkerProcess(options)
            with answering_probes(given, worker.pulse):
                code = worker.run()
        except FlexiQError as error:
            raise CommandError(str(error)) from None
        if worker.is_tainted:
            start_again()
        if worker.has_strays:
            leave(code)
        if code:
            sys.exit(code)


def _add_work(parser: CommandParser) -> None:
    parser.add_argument(
        "--queues",
        help="Names of the queues to serve, with commas between them. Default: every queue.",
    )
    parser.add_argument(
        "--executor",
        choices=sorted(EXECUTORS),
        default="threads",
        help="What runs the jobs: threads, for work that waits; child processes, for work that"
        " computes; coroutines, for async def tasks. Default: threads.",
    )
    parser.add_argument(
        "--concurrency",
        type=whole_number(1),
        help="Jobs that run at the same time in one worker. Default: 8 threads, one child"
        " process for each core, or 100 coroutines.",
    )
    parser.add_argument(
        "--processes",
        type=whole_number(1),
        default=1,
        help="Worker processes; above 1, a supervisor replaces those that die. Default: 1.",
    )
    parser.add_argument("--namespace", help="Whose jobs to run. Default: the NAMESPACE setting.")
    parser.add_argument("--database", help="Database alias. Default: the DATABASE setting.")
    parser.add_argument(
        "--deployment-id",
        help="Also run jobs pinned to this deployment. Default: the DEPLOYMENT_ID setting.",
    )


def _add_life(parser: CommandParser) -> None:
    parser.add_argument(
        "--burst", action="store_true", help="Leave as soon as there is nothing to run."
    )
    parser.add_argument(
        "--max-jobs",
        type=whole_number(1),
        help="Leave a process after this many jobs; a supervisor then starts a new one. With"
        " the executor processes: replace each child after this many.",
    )
    parser.add_argument(
        "--max-rss",
        type=parse_size,
        metavar="SIZE",
        help="Recycle a process that takes more memory than this after a job, as in 512M or 1G;"
        " a plain number is MiB.",
    )
    parser.add_argument(
        "--autoreload",
        action="store_true",
        help="Start anew when code changes. For development; runs one process.",
    )
    parser.add_argument(
        "--log-format",
        choices=["text", "json"],
        help="How the log is written to standard error, if LOGGING has no handlers for it."
        " Default: text.",
    )
    parser.add_argument(
        "--drain-timeout",
        type=parse_patience,
        help="Seconds running jobs get to finish. Default: the STOP_TIMEOUT_SECONDS setting.",
    )


def worker_options(given: dict[str, Any]) -> WorkerOptions:
    """The options of the command line over the settings. Raises ``FlexiQError``."""
    settings = get_settings()
    deployment_id = given.get("deployment_id") or settings.DEPLOYMENT_ID
    drain = given.get("drain_timeout")
    stop_timeout = settings.STOP_TIMEOUT_SECONDS if drain is None else drain
    scope, executor = scope_of(given), given.get("executor") or "threads"
    auto_retry = auto_retry_for(scope)
    retention = windows_of(scope)
    return WorkerOptions(
        scope=scope,
        queues=queue_names(given.get("queues")),
        executor=executor,
        concurrency=given["concurrency"] or EXECUTORS[executor](os.cpu_count() or 1),
        deployment_id=deployment_id
        and check.check_name("--deployment-id", deployment_id, longest=100),
        burst=given["burst"],
        max_jobs=given.get("max_jobs"),
        max_rss=given.get("max_rss"),
        verbosity=given.get("verbosity", 1),
        log_format=given.get("log_format"),
        lock_grace=settings.LOCK_GRACE_SECONDS,
        heartbeat=settings.heartbeat_seconds,
        stop_timeout=stop_timeout,
        stray_grace=settings.STRAY_GRACE_SECONDS,
        poll=settings.POLL_SECONDS,
        listen=settings.LISTEN,
        max_turn_age=given.get("max_turn_age") or longest_turn(),
        max_result_bytes=settings.MAX_PAYLOAD_BYTES,
        max_error_bytes=settings.MAX_ERROR_BYTES,
        auto_retry=auto_retry,
        retention=retention,
        archive_after=settings.ARCHIVE_AFTER,
        fleet_values=_fleet_values(settings, stop_timeout, auto_retry, retention),
    )


def _fleet_values(
    settings: Settings,
    stop_timeout: float,
    auto_retry: AutoRetry | None,
    retention: RetentionPolicy,
) -> dict[str, object]:
    return {
        "lock_grace_seconds": settings.LOCK_GRACE_SECONDS,
        "stop_timeout_seconds": stop_timeout,
        "default_retry": settings.DEFAULT_RETRY,
        "default_timeout": settings.DEFAULT_TIMEOUT,
        "dlq_auto_retry": auto_retry and auto_retry._asdict(),
        "retention_ms": retention.windows,
        "archive_after_seconds": settings.ARCHIVE_AFTER,
        "max_payload_bytes": settings.MAX_PAYLOAD_BYTES,
    }
