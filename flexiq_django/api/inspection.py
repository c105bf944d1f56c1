"""The methods of ``Queue`` that look at one job, and at workers and logs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from flexiq_django.api import options as check
from flexiq_django.api.context import LogLevel, check_level
from flexiq_django.api.result import JobResult, describe, plain_row, to_ms
from flexiq_django.api.twins import async_twin
from flexiq_django.core import waiting as core_waiting
from flexiq_django.store import graph, inspect, logs, waiting, workers

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue
    from flexiq_django.store.scope import Scope


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

    def job_errors(self, job_id: str) -> list[dict[str, Any]]:
        """Every failed attempt of a job, oldest first: id, job_id, attempt, error, failed_at.

        Empty for a job that never failed, and for an unknown one. ``attempt`` counts from 0.
        """
        key = check.parse_id(job_id)
        rows = [] if key is None else inspect.job_errors(self.scope, key)
        return [plain_row(row) for row in rows]

    def why_waiting(self, job_id: str) -> list[dict[str, str]]:
        """Why a pending job does not run at the moment: every reason, as ``code`` and ``text``.

        Codes: ``due-later``, ``dependencies``, ``session`` (its text names the job that holds the
        line), ``paused-queue``, ``concurrency-limit``, ``rate-limit``, ``no-worker``,
        ``unserved-queue``, ``unserved-deployment``; ``ready`` when nothing holds it but that no
        slot is free. Empty for a job that is not pending, or unknown.
        """
        key = check.parse_id(job_id)
        found = None if key is None else waiting.look(self.scope, key)
        reasons = [] if found is None else core_waiting.reasons(found)
        return [{"code": code, "text": text} for code, text in reasons]

    def job_dag(self, job_id: str, *, max_jobs: int = 10_000) -> dict[str, list[dict[str, Any]]]:
        """Everything a job is connected to by dependencies, in either direction, over any distance.

        ``nodes`` are jobs as ``to_dict()`` gives them, live and archived, this one first; ``edges``
        have ``from`` (the dependency) and ``to`` (the job that waits for it), each once. Both are
        empty for an unknown job. The whole graph is held in memory, so one of more than
        ``max_jobs`` jobs (1 to 100,000), or ten times as many edges, raises ``GraphTooLargeError``.
        """
        most = check.check_whole("max_jobs", max_jobs, least=1, most=100_000)
        key = check.parse_id(job_id)
        if key is None:
            return {"nodes": [], "edges": []}
        found = graph.component(self.scope, key, most_jobs=most)
        return {
            "nodes": [describe(job) for job in found.jobs],
            "edges": [{"from": str(edge.parent), "to": str(edge.child)} for edge in found.edges],
        }

    def replay_history(self, job_id: str) -> list[dict[str, Any]]:
        """The replays of a job, newest first; empty for a job never replayed or unknown.

        Keys: id, original_job_id, replay_job_id, replayed_at, original_error (what the job had
        failed with by then), replay_error (what its copy failed with, ``None`` until it has).
        """
        key = check.parse_id(job_id)
        rows = [] if key is None else inspect.replays(self.scope, key)
        return [plain_row(row) for row in rows]

    def task_logs(self, job_id: str) -> list[dict[str, Any]]:
        """What a job logged and published, oldest first; empty for an unknown one.

        Keys: id, job_id, task_name, level, message, extra, logged_at. ``extra`` is JSON text or
        ``None``; a published value is the ``extra`` of a line of the level ``result``.
        """
        key = check.parse_id(job_id)
        rows = [] if key is None else logs.of_job(self.scope, key)
        return [plain_row(row) for row in rows]

    def query_logs(
        self,
        task_name: str | None = None,
        level: LogLevel | str | None = None,
        since: float = 3600,
        limit: int = 100,
    ) -> list[dict[str, Any]]:
        """Up to ``limit`` log lines of the last ``since`` seconds, newest first.

        Of one task and one level if given; keys as in :meth:`task_logs`. Raises
        ``InvalidOptionError`` for an unknown level, a time below 0 or a bad limit.
        """
        check.check_page(limit)
        span = timedelta(milliseconds=check.check_span("since", since))
        rows = logs.latest(
            self.scope,
            since=inspect.read_clock(self.scope) - span,
            task_name=check.check_text("task_name", task_name),
            level=None if level is None else check_level(level),
            limit=limit,
        )
        return [plain_row(row) for row in rows]

    def workers(self) -> list[dict[str, Any]]:
        """The live workers of the namespace, oldest first."""
        return [
            {
                **asdict(worker),
                "queues": None if worker.queues is None else list(worker.queues),
                "started_at": to_ms(worker.started_at),
                "heartbeat_at": to_ms(worker.heartbeat_at),
                "turned_at": to_ms(worker.turned_at),
            }
            for worker in workers.live(self.scope)
        ]

    aget_job = async_twin(get_job)
    ajob_errors = async_twin(job_errors)
    awhy_waiting = async_twin(why_waiting)
    ajob_dag = async_twin(job_dag)
    areplay_history = async_twin(replay_history)
    atask_logs = async_twin(task_logs)
    aquery_logs = async_twin(query_logs)
    aworkers = async_twin(workers)

    @property
    def _queue(self) -> Queue:
        return self  # type: ignore[return-value]  # a base of Queue, never used without it
