"""The counting and measuring methods of ``Queue``."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from flexiq_django.api import options as check
from flexiq_django.api.result import to_ms
from flexiq_django.api.twins import async_twin
from flexiq_django.core.status import COUNT_KEYS
from flexiq_django.store import figures, inspect, workers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexiq_django.api.task import Task
    from flexiq_django.store.figures import Figures
    from flexiq_django.store.scope import Scope


class Measures:
    """Counts of jobs, and how long their executions took. The database does the arithmetic."""

    if TYPE_CHECKING:
        tasks: dict[str, Task[Any, Any]]

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

        @property
        def defaults(self) -> Mapping[str, Any]:
            """What a job takes that neither its call nor its task says."""

    def stats(self) -> dict[str, int]:
        """How many jobs are pending, running, completed, failed, dead and cancelled.

        Archived jobs are not counted.
        """
        return figures.stats(self.scope)

    def stats_by_queue(self, queue_name: str | None = None) -> dict[str, Any]:
        """The counts of each queue that has jobs; with a name, the counts of that queue alone."""
        counts = figures.stats_by_queue(self.scope)
        if queue_name is None:
            return counts
        return counts.get(queue_name) or dict.fromkeys(COUNT_KEYS, 0)

    def stats_all_queues(self) -> dict[str, dict[str, int]]:
        """The counts of every known queue by name, all 0 for one without jobs.

        Known are queues that have jobs, that were ever paused or limited, that a schedule or a task
        declared on this queue object uses, and that a live worker names.
        """
        counts = figures.stats_by_queue(self.scope)
        named, planned = figures.known_queues(self.scope)
        names = {
            *counts,
            *named,
            *(own or self._queue_of(task_name) for own, task_name in planned),
            *(self._queue_of(task_name) for task_name in self.tasks),
            *(name for worker in workers.live(self.scope) for name in worker.queues or ()),
        }
        none = dict.fromkeys(COUNT_KEYS, 0)
        return {name: counts.get(name) or dict(none) for name in sorted(names)}

    def metrics(
        self, task_name: str | None = None, since: float = 3600
    ) -> dict[str, dict[str, Any]]:
        """How long the executions of the last ``since`` seconds took, by task name.

        Keys: count, success_count, failure_count, avg_ms, p50_ms, p95_ms, p99_ms, min_ms, max_ms.
        Each execution counts, so a job that was tried three times counts three times. The
        percentile q of n sorted times is the one at index ``n * q``, rounded down. Empty when
        nothing ran. Metrics are kept for as long as retention says, so a longer time finds no more.
        Raises ``InvalidOptionError`` for a time below 0.
        """
        start = self._start(since)
        name = check.check_text("task_name", task_name)
        return {
            each.group: {
                "count": each.total,
                "success_count": each.succeeded,
                "failure_count": each.total - each.succeeded,
                **_times(each),
                "min_ms": round(each.least, 2),
                "max_ms": round(each.most, 2),
            }
            for each in figures.by_task(self.scope, since=start, task_name=name)
        }

    def metrics_timeseries(
        self, task_name: str | None = None, since: float = 3600, bucket: float = 60
    ) -> list[dict[str, Any]]:
        """The same executions in buckets of ``bucket`` seconds, oldest first.

        Keys: timestamp, count, success, failure, avg_ms, p50_ms, p95_ms, p99_ms. ``timestamp`` is
        the start of the bucket in Unix milliseconds; the first one starts ``since`` seconds ago. A
        bucket in which nothing ran is left out. Raises ``InvalidOptionError`` for a time below 0
        and for a bucket that is not above 0.
        """
        start = self._start(since)
        bucket_ms = check.check_span("bucket", bucket, above_zero=True)
        name = check.check_text("task_name", task_name)
        found = figures.by_bucket(self.scope, since=start, task_name=name, bucket_ms=bucket_ms)
        return [
            {
                "timestamp": to_ms(start + int(each.group) * timedelta(milliseconds=bucket_ms)),
                "count": each.total,
                "success": each.succeeded,
                "failure": each.total - each.succeeded,
                **_times(each),
            }
            for each in found
        ]

    def oldest_ready_seconds(self) -> float | None:
        """How long the job has been ready that waits longest; ``None`` when none waits.

        It counts from when the job could be claimed: when it was due or, if that was later, when
        what it had to wait for was over. Where more than ten thousand jobs came late to a lane, it
        may be too long, never too short.
        """
        oldest = inspect.oldest_ready(self.scope)
        if oldest is None:
            return None
        return max(0.0, (inspect.read_clock(self.scope) - oldest).total_seconds())

    astats = async_twin(stats)
    astats_by_queue = async_twin(stats_by_queue)
    astats_all_queues = async_twin(stats_all_queues)
    ametrics = async_twin(metrics)
    ametrics_timeseries = async_twin(metrics_timeseries)
    aoldest_ready_seconds = async_twin(oldest_ready_seconds)

    def _queue_of(self, task_name: str) -> str:
        """The queue to which a task's jobs go unless told otherwise."""
        task = self.tasks.get(task_name)
        own = None if task is None else task.options.queue
        return own or str(self.defaults["queue"])

    def _start(self, since: float) -> datetime:
        """When the last ``since`` seconds began, by the database's clock."""
        span = timedelta(milliseconds=check.check_span("since", since))
        return inspect.read_clock(self.scope) - span


def _times(each: Figures) -> dict[str, float]:
    p50, p95, p99 = each.percentiles
    values = {"avg_ms": each.mean, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99}
    return {name: round(value, 2) for name, value in values.items()}
