"""`manage.py demo`: one real import with a real worker, step by step."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections

from airports import reports
from airports.csv_files import count_rows
from airports.demo.display import Display
from airports.demo.worker import Worker
from airports.management.commands.import_airports import enqueue_import
from airports.models import Airport, Import
from airports.progress import Progress, Stage, error_line, progress_of
from flexiq_django import queue

#: Seconds between two looks at the import.
LOOK_SECONDS = 0.1
#: The demo gives up when nothing at all has changed for so many seconds.
STALL_SECONDS = 90.0

ADMIN = "admin"


class Command(BaseCommand):
    """Import a file, show how, check that every row arrived."""

    help = (
        "Import a CSV file of airports with a real worker and show each step. The exit code is 1 if"
        " the table does not hold exactly the rows of the file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--csv",
            type=Path,
            help="A CSV file with the columns name, lat and lon. Default: the one in airportsdata.",
        )
        parser.add_argument(
            "--workers", type=_positive, default=1, help="Worker processes. Default: 1."
        )
        parser.add_argument(
            "--keep",
            action="store_true",
            help="Leave the worker running at the end, until Ctrl-C, for uploads on the page.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._steps = 0
        with _signals_as_interrupt():
            try:
                self._run(options)
            except KeyboardInterrupt:
                self._say("\nStopped. The worker is gone; `manage.py flexiq_worker` goes on.")
                raise SystemExit(130) from None

    def _run(self, options: dict[str, Any]) -> None:
        self._prepare_database()
        self._create_admin()
        run = self._register(options["csv"])
        worker = Worker(settings.VAR_DIR / "worker.log", processes=options["workers"])
        with worker:
            self._step(f"A worker runs: manage.py {' '.join(worker.arguments)}, pid {worker.pid}")
            self._say(f"Its log: {_shown(worker.log_path)}")
            self._step("The import")
            progress = self._watch(run, worker)
            if options["keep"]:
                self._step(f"The worker goes on, as --keep says (pid {worker.pid})")
            else:
                self._step(f"The worker was told to stop (SIGTERM): exit code {worker.stop()}")
            is_equal = self._show_results(run, progress)
            self._say_how_to_look(worker_runs=options["keep"])
            if options["keep"] and is_equal:
                self._say("Ctrl-C stops the worker.")
                while worker.exit_code is None:
                    threading.Event().wait(LOOK_SECONDS)
        if not is_equal:
            raise CommandError("The table does not hold exactly the rows of the file.")

    # --- the steps --------------------------------------------------------------------------------

    def _prepare_database(self) -> None:
        connection = connections["default"]
        name = connection.settings_dict["NAME"]
        shown = _shown(Path(name)) if connection.vendor == "sqlite" else name
        self._step(f"The database: {connection.display_name} {shown}")
        try:
            connection.ensure_connection()
        except DatabaseError as error:
            raise CommandError(f"The database of DATABASE_URL cannot be used: {error}") from None
        call_command("migrate", verbosity=0, interactive=False)
        earlier = Import.objects.count()
        self._say(f"Its tables are there, with {earlier} earlier import{'s' * (earlier != 1)}.")

    def _create_admin(self) -> None:
        users = get_user_model().objects
        if not _is_demo_database():
            self._step("No user was created: this is not the demo's own database")
        elif users.filter(username=ADMIN).exists():
            self._step(f"The user {ADMIN!r} is there already")
        else:
            users.create_superuser(ADMIN, "admin@example.org", ADMIN)
            self._step(f"A user was created, in this demo database only: {ADMIN} / {ADMIN}")

    def _register(self, path: Path | None) -> Import:
        run = enqueue_import(path, has_corrupted_copy=True)
        with run.file.open("rb") as file:
            self._rows_in_file = count_rows(file)
        self._step(f"{run.file_name} is enqueued as import {run.pk}")
        self._say(
            f"It has {self._rows_in_file:,} rows. A copy of its first"
            f" {settings.AIRPORTS_CHUNK_ROWS} is corrupted on purpose, to show a failure."
        )
        return run

    def _watch(self, run: Import, worker: Worker) -> Progress:
        display = Display(self.stdout)
        began = changed = time.monotonic()
        last: Progress | None = None
        try:
            while True:
                run.refresh_from_db()
                progress = progress_of(run)
                display.show(progress)
                if progress.has_ended:
                    break
                if progress != last:
                    changed, last = time.monotonic(), progress
                self._check_worker(worker, time.monotonic() - changed)
                threading.Event().wait(LOOK_SECONDS)
        finally:
            display.end()
        self._say(f"Took {time.monotonic() - began:.1f} s.")
        return progress

    def _check_worker(self, worker: Worker, quiet_seconds: float) -> None:
        problem = None
        if worker.exit_code is not None:
            problem = f"The worker ended with exit code {worker.exit_code}."
        elif quiet_seconds > STALL_SECONDS:
            problem = f"Nothing has changed for {STALL_SECONDS:g} s."
        if problem:
            raise CommandError(f"{problem} Its log ends:\n{worker.log_tail()}")

    # --- the results ------------------------------------------------------------------------------

    def _show_results(self, run: Import, progress: Progress) -> bool:
        if progress.stage is Stage.FAILED:
            raise CommandError(f"The import failed. {progress.error}")
        in_table = Airport.objects.filter(run=run).count()
        different = Airport.objects.filter(run=run).values("row").distinct().count()
        is_equal = in_table == different == self._rows_in_file
        self._step("The rows")
        self._say(f"In the file:  {self._rows_in_file:>9,}")
        self._say(f"In the table: {in_table:>9,}   {'equal' if is_equal else 'NOT EQUAL'}")
        for rows, reason in run.counts.get("gaps", ()):
            self._say(f"Missing: {rows}. {reason}")
        self._show_jobs(run)
        self._show_files(run)
        return is_equal

    def _show_jobs(self, run: Import) -> None:
        self._step("The jobs of this database, by status")
        self._say(", ".join(f"{status} {count:,}" for status, count in queue.stats().items()))
        self._step("The dead letters of this import")
        for letter in queue.dead_letters(limit=1000):
            if letter["metadata"] != run.label:
                continue
            job_id = letter["original_job_id"]
            attempts = len(queue.job_errors(job_id))
            self._say(f"{letter['task_name']}, {attempts} attempts")
            self._say(f"{error_line(queue.get_job(job_id))}")

    def _show_files(self, run: Import) -> None:
        folder = Path(default_storage.path(run.report))
        self._step("The report")
        self._say(f"Map:     {_shown(folder / reports.MAP)}")
        self._say(f"Summary: {_shown(folder / reports.SUMMARY)}")
        mails = sorted(settings.MAIL_DIR.glob("*.log"), key=lambda path: path.stat().st_mtime)
        self._say(f"Mail:    {_shown(mails[-1]) if mails else 'none'}")

    def _say_how_to_look(self, *, worker_runs: bool) -> None:
        self._step("Have a look")
        self._say(f"{_command()} runserver")
        if not worker_runs:
            self._say(f"{_command()} flexiq_worker")
        if not _is_demo_database():
            self._say(f"{_command()} createsuperuser")
        user = f", as {ADMIN} with the password {ADMIN}" if _is_demo_database() else ""
        self._say("http://127.0.0.1:8000/        upload a file, watch it, read the report")
        self._say(f"http://127.0.0.1:8000/admin/  the rows and the jobs{user}")

    def _step(self, text: str) -> None:
        self._steps += 1
        self.stdout.write(self.style.MIGRATE_HEADING(f"{self._steps:2d}. {text}"))
        self.stdout.flush()

    def _say(self, text: str) -> None:
        self.stdout.write(f"    {text}")
        self.stdout.flush()


@contextmanager
def _signals_as_interrupt() -> Iterator[None]:
    """A demo that is told to stop, or whose terminal is closed, stops its worker first."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_demo_database() -> bool:
    return str(connections["default"].settings_dict["NAME"]) == str(settings.DEMO_DATABASE)


def _shown(path: Path) -> Path:
    """A path as short as it can be typed here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _command() -> str:
    """How manage.py is called from where the person is."""

    return f"{_shown(Path(sys.executable))} {_shown(settings.BASE_DIR / 'manage.py')}"


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value
