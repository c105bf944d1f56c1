"""What this process knows of tasks and schedules."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from flexiq_django.api.jobs import build_jobs
from flexiq_django.api.queue import Queue
from flexiq_django.api.registry import find_elsewhere, queues_of
from flexiq_django.api.task import Task
from flexiq_django.core.outcome import WORKER_LOST, Ending, Outcome, decide
from flexiq_django.core.payload import decode_call
from flexiq_django.core.records import ClaimedJob, NewJob, Settlement
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.store import inspect, schedules, steer
from flexiq_django.store.schedules import ScheduleRow
from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

_UNKNOWN = RetryPolicy(max_retries=0)


class Catalogue:
    """The tasks and schedules that code has declared for a namespace."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._queues = queues_of(scope)
        self._tasks: dict[str, Task[Any, Any]] = {}
        self._elsewhere: dict[str, Task[Any, Any]] = {}
        #: How many schedules have been declared in this turn.
        self._declared = 0
        self._collect()

    def _collect(self) -> None:
        for queue in reversed(self._queues):  # the namespace's own tasks come last, and win
            self._tasks.update(queue.tasks)

    def find(self, name: str) -> Task[Any, Any] | None:
        """The task of this name, or ``None``."""
        task = self._tasks.get(name)
        if task is None:  # perhaps declared since, by a module imported late
            self._collect()
            task = self._tasks.get(name) or self._find_elsewhere(name)
        return task

    def _find_elsewhere(self, name: str) -> Task[Any, Any] | None:
        """A task that is declared by other means than a queue, such as one of Django's."""
        task = self._elsewhere.get(name) or find_elsewhere(self._scope, name)
        if task is not None:
            self._elsewhere[name] = task
        return task

    def policy_of(self, name: str) -> RetryPolicy:
        """How a task waits between attempts; the usual way for a task not known here."""
        task = self.find(name)
        return _UNKNOWN if task is None else task.options.retry

    def lost(self, job: ClaimedJob) -> Settlement:
        """What becomes of a job whose worker was lost."""
        outcome = Outcome(job=job, ending=Ending.FAILED, error=WORKER_LOST, retry_after=0.0)
        return decide(outcome, self.policy_of(job.task_name))

    def limited(self) -> dict[str, bool]:
        """Of each task, whether its jobs wait in lanes of their own."""
        return {name: task.options.is_limited for name, task in self._tasks.items()}

    def declare_limits(self, call: Callable[[Callable[[], Any]], Any]) -> None:
        """Put the limits that the code gives its tasks in force, for every worker at once."""
        limits = {name: task.options.limits for name, task in self._tasks.items()}
        call(partial(steer.declare_limits, self._scope, limits))

    def declare_schedules(self, call: Callable[[Callable[[], Any]], Any]) -> float:
        """Say that the code of this process has these schedules; rest before saying it again."""
        own = [queue for queue in self._queues if queue.place == self._scope]
        declared = [each for queue in own for each in queue.schedules.values()]
        if declared:
            now = call(lambda: inspect.read_clock(self._scope))
            while self._declared < len(declared):
                schedule = declared[self._declared]
                # Beforehand: one that others hold up is left for the next time, as the rest fire
                # only as long as they are declared.
                self._declared += 1
                following = schedule.cron.next_after(now)
                call(partial(schedules.declare, self._scope, schedule.row(), following))
        self._declared = 0
        return 60.0

    def build(self, row: ScheduleRow, occurrences: Sequence[datetime]) -> list[NewJob]:
        """The jobs of the runs of a schedule. Its task's own options apply where it is known."""
        if not occurrences:
            return []
        queue = self._queues[0] if self._queues else Queue(self._scope.namespace)
        args, kwargs = decode_call(row.payload)
        task: Task[Any, Any] | str = self.find(row.task_name) or row.task_name
        keys = [
            {"unique_key": f"periodic:{row.name}:{int(each.timestamp() * 1000)}"[-255:]}
            for each in occurrences
        ]
        jobs = build_jobs(
            queue, task, [(args, kwargs)] * len(keys), {"queue": row.queue}, rows=keys
        )
        return [_fired(job, row.name) for job in jobs]


def _fired(job: NewJob, schedule: str) -> NewJob:
    return dataclasses.replace(job, origin="periodic", schedule=schedule)
