"""Inside a child of the process executor: run the bodies that come through its pipe.

The main thread runs them, one after the other; another one listens. What has to be written down
goes back through the pipe, except what a transactional body commits with its own transaction.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from flexiq_django.api.context import Attempt
from flexiq_django.core.outcome import is_good
from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import log_to_stderr, set_worker
from flexiq_django.store.scope import Scope
from flexiq_django.worker.attempt import Runner
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.connections import Keeper, clean_after_job, clean_before_job
from flexiq_django.worker.memory import resident_bytes
from flexiq_django.worker.notebook import look
from flexiq_django.worker.options import WorkerOptions


def serve(connection: Connection, options: WorkerOptions, worker_id: str) -> NoReturn:
    """Run jobs until told to leave, or until the worker is gone."""
    log_to_stderr(options.verbosity, options.log_format)
    set_worker(worker_id)
    pipe = Pipe(connection, options.scope)
    catalogue = Catalogue(options.scope)
    runner = Runner(
        options.scope,
        # Whatever it waits for ends with this process at the latest.
        Keeper(options.scope, lambda: False, is_own=False),
        catalogue.find,
        max_result_bytes=options.max_result_bytes,
        max_error_bytes=options.max_error_bytes,
    )
    pipe.say("ready", None)
    while (job := pipe.inbox.get()) is not None:
        task = catalogue.find(job.task_name)
        attempt = ChildAttempt(
            job,
            namespace=options.scope.namespace,
            journal=pipe,
            soft_timeout=task.options.soft_timeout if task else None,
        )
        pipe.attempt = attempt
        clean_before_job()
        pipe.say("begins", None)
        outcome = runner.run(attempt)
        clean_after_job(is_good=is_good(outcome))
        pipe.attempt = None
        # The worker has the job; its arguments need not travel back.
        told = outcome and outcome._replace(job=job._replace(payload=""))
        rss = 0 if options.max_rss is None else resident_bytes()
        pipe.say("ended", (told, attempt.is_settled, rss))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)  # threads that a body left behind must not hold it


class Pipe:
    """The child's end of the pipe: what it says, and what it is told. A journal for bodies."""

    def __init__(self, connection: Connection, scope: Scope) -> None:
        self._connection = connection
        self._scope = scope
        self._saying = threading.Lock()
        #: Jobs to run; ``None``: leave.
        self.inbox: queue.SimpleQueue[ClaimedJob | None] = queue.SimpleQueue()
        #: The attempt whose body runs.
        self.attempt: ChildAttempt | None = None
        threading.Thread(target=self._listen, name="flexiq-pipe", daemon=True).start()

    def say(self, kind: str, value: Any) -> None:
        """Tell the worker something. Threads that a body has started may do so as well."""
        with self._saying:
            self._connection.send((kind, value))

    def progress(self, job: ClaimedJob, value: int) -> None:
        """Store the progress soon; a later value replaces one not yet stored."""
        self.say("progress", value)

    def log(self, job: ClaimedJob, level: str, message: str, extra: str | None) -> None:
        """Store a log line soon, in order."""
        self.say("log", (level, message, extra))

    def look(self, attempt: Attempt) -> None:
        """Bring the flags of an attempt up to date, and have the worker keep them so."""
        self.say("watched", None)
        look(self._scope, attempt)

    def _listen(self) -> None:
        parent = multiprocessing.parent_process()
        sources: list[Connection | int] = [self._connection]
        if parent is not None:
            sources.append(parent.sentinel)
        while self._connection in wait(sources):
            try:
                kind, value = self._connection.recv()
            except (EOFError, OSError):
                break
            attempt = self.attempt
            if kind == "run":
                self.inbox.put(value)
            elif kind == "leave":
                self.inbox.put(None)
            elif attempt is not None and kind == "cancel":
                attempt.is_cancel_requested = True
            elif attempt is not None and kind == "over":
                attempt.is_over = True
        _die()


class ChildAttempt(Attempt):
    """An attempt in the child; the worker has one of its own that leases and timeouts go by."""

    is_settled_here = False

    def begin_settling(self) -> None:
        """See ``Attempt``."""
        super().begin_settling()
        journal = self.journal
        if isinstance(journal, Pipe):
            journal.say("settling", None)


def _die() -> None:
    """The worker is gone: what runs here must not go on beside the attempt that replaces it."""
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)
