"""A settler that is not started, and all that it told."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from flexiq_django.core.outcome import Ending, Outcome
from flexiq_django.core.records import ClaimedJob, Settlement
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.store import link, settle
from flexiq_django.worker.notebook import Notebook
from flexiq_django.worker.settler import Settler
from tests.factories import at
from tests.store.acting import claim, enqueue


class Calls:
    """A keeper that calls at once; the verbs of a settler, counted."""

    def __init__(self) -> None:
        self.closed = False

    def call(self, verb: Callable[[], Any]) -> Any:
        return verb()

    def close(self) -> None:
        self.closed = True
        connections.close_all()


class Desk:
    """A settler that is not started, and all that it told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.batches: list[list[UUID]] = []
        self.settled: list[UUID] = []
        self.ready = 0
        self.notified = 0
        self.keeper = Calls()
        self._verb = settle.settle
        monkeypatch.setattr(settle, "settle", self._settle)
        monkeypatch.setattr(link, "notify", self._notify)
        options.setdefault("expects_more", lambda: False)
        options.setdefault("notifies", True)
        self.notebook = Notebook(at())
        self.settler = Settler(
            at(),
            [self.keeper],  # type: ignore[list-item]
            self.notebook,
            worker_id="worker-1",
            policy_of=lambda _name: RetryPolicy(max_retries=0, jitter=False),
            on_settled=lambda jobs: self.settled.extend(job.id for job in jobs),
            on_ready=self._on_ready,
            makes_room=lambda _jobs: False,
            **options,
        )

    def _settle(self, scope: Any, settlements: Sequence[Settlement], *more: Any) -> Any:
        self.batches.append([each.job_id for each in settlements])
        return self._verb(scope, settlements, *more)

    def _notify(self, _scope: Any) -> None:
        self.notified += 1

    def _on_ready(self) -> None:
        self.ready += 1

    def add(self, *outcomes: Outcome) -> None:
        for outcome in outcomes:
            self.settler.add(outcome)

    def write(self) -> None:
        self.settler._write(0, self.keeper)  # type: ignore[arg-type]


def done(job: ClaimedJob, **fields: Any) -> Outcome:
    return Outcome(job=job, ending=Ending.COMPLETED, duration_ms=1.0, **fields)


def failed(job: ClaimedJob, **fields: Any) -> Outcome:
    return Outcome(job=job, ending=Ending.FAILED, error="e", duration_ms=1.0, **fields)


def claimed(count: int) -> list[ClaimedJob]:
    enqueue(count)
    return claim(limit=count)
