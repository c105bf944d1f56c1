"""``manage.py flexiq_worker``: run jobs."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from flexiq_django.api import options as check
from flexiq_django.api.auto_retry import auto_retry_for
from flexiq_django.api.windows import windows_of
from flexiq_django.conf import Settings, get_settings
from flexiq_django.core.records import AutoRetry
from flexiq_django.core.retention import RetentionPolicy
from flexiq_django.exceptions import FlexiQError
from flexiq_django.management.given import scope_of
from flexiq_django.worker.connections import close_all, require_reachable
from flexiq_django.worker.identity import log_to_stderr
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.process import WorkerProcess
from flexiq_django.worker.supervisor import Supervisor, leave


class Command(BaseCommand):
    """Run jobs until told to stop."""

    help = (
        "Run jobs until told to stop. SIGTERM or Ctrl-C lets running jobs finish; a second one"
        " leaves at once and gives the jobs back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queues",
            help="Names of the queues to serve, with commas between them. Default: every queue.",
        )
        parser.add_argument(
            "--concurrency",
            type=_positive,
            default=8,
            help="Jobs that run at the same time in one process. Default: 8.",
        )
        parser.add_argument(
            "--processes",
            type=_positive,
            default=1,
            help="Worker processes; above 1, a supervisor replaces those that die. Default: 1.",
        )
        parser.add_argument(
            "--namespace", help="Whose jobs to run. Default: the NAMESPACE setting."
        )
        parser.add_argument("--database", help="Database alias. Default: the DATABASE setting.")
        parser.add_argument(
            "--deployment-id",
            help="Also run jobs pinned to this deployment. Default: the DEPLOYMENT_ID setting.",
        )
        parser.add_argument(
            "--burst", action="store_true", help="Leave as soon as there is nothing to run."
        )
        parser.add_argument(
            "--max-jobs",
            type=_positive,
            help="Leave a process after this many jobs; a supervisor then starts a new one.",
        )
        parser.add_argument(
            "--drain-timeout",
            type=_seconds,
            help="Seconds running jobs get to finish. Default: the STOP_TIMEOUT_SECONDS setting.",
        )

    def execute(self, *args: Any, **given: Any) -> str | None:
        """Look at the options and the database first: the system checks may need both.

        Only a worker that has been at work waits for its database. One that never reached it is
        more likely misconfigured, and whoever started it should hear of it.
        """
        try:
            self._options = worker_options(given)
            require_reachable(self._options.scope.using)
        except FlexiQError as error:
            raise CommandError(str(error)) from None
        return super().execute(*args, **given)

    def handle(self, *args: Any, **given: Any) -> None:
        options = self._options
        log_to_stderr(given["verbosity"])
        if given["processes"] > 1:
            close_all()
            leave(Supervisor(options, given["processes"]).run())
        worker = WorkerProcess(options)
        try:
            code = worker.run()
        except FlexiQError as error:
            raise CommandError(str(error)) from None
        if worker.has_strays:
            leave(code)
        if code:
            sys.exit(code)


def worker_options(given: dict[str, Any]) -> WorkerOptions:
    """The options of the command line over the settings. Raises ``FlexiQError``."""
    settings = get_settings()
    deployment_id = given.get("deployment_id") or settings.DEPLOYMENT_ID
    drain = given.get("drain_timeout")
    stop_timeout = settings.STOP_TIMEOUT_SECONDS if drain is None else drain
    scope = scope_of(given)
    auto_retry = auto_retry_for(scope)
    retention = windows_of(scope)
    return WorkerOptions(
        scope=scope,
        queues=_queues(given.get("queues")),
        concurrency=given["concurrency"],
        deployment_id=deployment_id
        and check.check_name("--deployment-id", deployment_id, longest=100),
        burst=given["burst"],
        max_jobs=given.get("max_jobs"),
        verbosity=given.get("verbosity", 1),
        lock_grace=settings.LOCK_GRACE_SECONDS,
        heartbeat=settings.heartbeat_seconds,
        stop_timeout=stop_timeout,
        poll=settings.POLL_SECONDS,
        listen=settings.LISTEN,
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


def _queues(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(check.check_name("--queues", name, longest=100) for name in names) or None


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value
