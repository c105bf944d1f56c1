"""The parts of a worker, put together in the test's own thread."""

from typing import Any

from flexiq_django import Queue
from flexiq_django.api.context import Attempt
from flexiq_django.core.outcome import Outcome
from flexiq_django.core.records import ClaimedJob
from flexiq_django.store.scope import Scope
from flexiq_django.worker.attempt import Runner
from flexiq_django.worker.connections import Keeper
from tests.factories import at

LIMIT = 65_536


class NoJournal:
    """A journal that nobody reads."""

    def progress(self, job: ClaimedJob, value: int) -> None: ...

    def log(self, job: ClaimedJob, level: str, message: str, extra: str | None) -> None: ...

    def look(self, attempt: Attempt) -> None: ...


def never() -> bool:
    return False


def make_attempt(job: ClaimedJob, **options: Any) -> Attempt:
    """An attempt at a job, about to run."""
    return Attempt(job, namespace="default", journal=options.pop("journal", NoJournal()), **options)


def make_runner(queue: Queue, scope: Scope | None = None, **options: Any) -> Runner:
    """A runner that knows the tasks of a queue."""
    where = scope or at()
    return Runner(
        where,
        Keeper(where, never, is_own=False),
        queue.tasks.get,
        max_result_bytes=options.pop("max_result_bytes", LIMIT),
        max_error_bytes=options.pop("max_error_bytes", LIMIT),
    )


def run(queue: Queue, job: ClaimedJob, **options: Any) -> Outcome | None:
    """How the body of a job ended."""
    return make_runner(queue, **options).run(make_attempt(job))
