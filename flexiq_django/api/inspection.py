"""The read methods of ``Queue``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from flexiq_django.api import options as check
from flexiq_django.api.result import JobResult, to_ms
from flexiq_django.api.twins import async_twin
from flexiq_django.core.status import COUNT_KEYS, parse_status
from flexiq_django.store import inspect, schedules, workers
from flexiq_django.store.scope import Scope

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue


class _Unset:
    """The caller said nothing, which differs from ``None``."""

    def __repr__(self) -> str:
        return "the queue's own"


UNSET: Final = _Unset()


class Inspection:
    """Questions about the jobs of a namespace. None of them changes anything."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

    def get_job(self, job_id: str) -> JobResult | None:
        """The job with this id, live or archived; ``None`` if the namespace has none."""
        key = check.parse_id(job_id)
        record = None if key is None else inspect.get(self.scope, key)
        return None if record is None else JobResult(self._queue, record.id, record)

    def list_jobs(
        self,
        status: str | None = None,
        queue: str | None = None,
        task_name: str | None = None,
        limit: int = 50,
        offset: int = 0,
        namespace: str | _Unset | None = UNSET,
    ) -> list[JobResult]:
        """Jobs that are not archived, newest first, which match every filter given.

        ``namespace=None`` looks into every namespace. Raises ``UnknownStatusError`` and
        ``InvalidOptionError``.
        """
        check.check_page(limit, offset)
        records = inspect.list_jobs(
            self._scope_for(namespace),
            status=None if status is None else parse_status(status),
            queue=queue,
            task_name=task_name,
            limit=limit,
            offset=offset,
            everywhere=namespace is None,
        )
        return [JobResult(self._queue, record.id, record) for record in records]

    def list_archived(self, limit: int = 50, offset: int = 0) -> list[JobResult]:
        """Archived jobs, the one that ended last first."""
        check.check_page(limit, offset)
        records = inspect.list_archived(self.scope, limit=limit, offset=offset)
        return [JobResult(self._queue, record.id, record) for record in records]

    def stats(self) -> dict[str, int]:
        """How many jobs are pending, running, completed, failed, dead and cancelled."""
        return inspect.stats(self.scope)

    def stats_by_queue(self, queue_name: str | None = None) -> dict[str, Any]:
        """The counts of each queue that has jobs; with a name, the counts of that queue alone."""
        if queue_name is None:
            return inspect.stats_by_queue(self.scope)
        counts = inspect.stats_by_queue(self.scope, queue_name)
        return counts.get(queue_name) or dict.fromkeys(COUNT_KEYS, 0)

    def job_errors(self, job_id: str) -> list[dict[str, Any]]:
        """Every failed attempt of a job, oldest first: id, job_id, attempt, error, failed_at.

        Empty for a job that never failed, and for an unknown one. ``attempt`` counts from 0.
        """
        key = check.parse_id(job_id)
        rows = [] if key is None else inspect.job_errors(self.scope, key)
        return [_plain_row(row) for row in rows]

    def dead_letters(self, limit: int = 10, offset: int = 0) -> list[dict[str, Any]]:
        """Dead letters, the latest failure first.

        Keys: id, original_job_id, queue, task_name, error, retry_count, failed_at, metadata,
        dlq_retry_count.
        """
        check.check_page(limit, offset)
        return [
            _plain_row(row) for row in inspect.dead_letters(self.scope, limit=limit, offset=offset)
        ]

    def workers(self) -> list[dict[str, Any]]:
        """The live workers of the namespace, oldest first."""
        return [
            {
                **asdict(worker),
                "queues": None if worker.queues is None else list(worker.queues),
                "started_at": to_ms(worker.started_at),
                "heartbeat_at": to_ms(worker.heartbeat_at),
            }
            for worker in workers.live(self.scope)
        ]

    def list_periodic(self) -> list[dict[str, Any]]:
        """The stored schedules by name.

        Keys: name, task_name, cron_expr, timezone, queue, enabled, last_run, next_run, missed.
        """
        return [
            {
                "name": row.name,
                "task_name": row.task_name,
                "cron_expr": row.cron,
                "timezone": row.timezone,
                "queue": row.queue,
                "enabled": row.enabled,
                "last_run": to_ms(row.last_run_at),
                "next_run": to_ms(row.next_run_at),
                "missed": row.missed_count,
            }
            for row in schedules.listing(self.scope)
        ]

    def oldest_ready_seconds(self) -> float | None:
        """How long the job has been ready that waits longest; ``None`` when none waits."""
        oldest = inspect.oldest_ready(self.scope)
        if oldest is None:
            return None
        return max(0.0, (inspect.read_clock(self.scope) - oldest).total_seconds())

    aget_job = async_twin(get_job)
    alist_jobs = async_twin(list_jobs)
    alist_archived = async_twin(list_archived)
    astats = async_twin(stats)
    astats_by_queue = async_twin(stats_by_queue)
    ajob_errors = async_twin(job_errors)
    adead_letters = async_twin(dead_letters)
    aworkers = async_twin(workers)
    alist_periodic = async_twin(list_periodic)
    aoldest_ready_seconds = async_twin(oldest_ready_seconds)

    @property
    def _queue(self) -> Queue:
        return self  # type: ignore[return-value]  # a base of Queue, never used without it

    def _scope_for(self, namespace: str | _Unset | None) -> Scope:
        if isinstance(namespace, _Unset) or namespace is None:
            return self.scope
        return Scope(using=self.scope.using, namespace=namespace)


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(value)
        if isinstance(value, UUID)
        else to_ms(value)
        if name == "failed_at"
        else value
        for name, value in row.items()
    }
