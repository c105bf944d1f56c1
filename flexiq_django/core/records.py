"""Values that travel between the rooms: plain, immutable, safe to hand to another thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job about to be stored. Times are milliseconds; ``delay_ms`` counts from the insert.

    ``is_limited``: its task has a limit of its own, so the job waits in a lane of its task.
    ``dlq_retry_count`` and ``origin_job_id`` say which chain of retried dead letters it goes on.
    """

    id: UUID
    queue: str
    task_name: str
    payload: str
    max_retries: int
    priority: int = 0
    delay_ms: int = 0
    run_at: datetime | None = None
    timeout_ms: int | None = None
    expires_ms: int | None = None
    result_ttl_ms: int | None = None
    unique_key: str | None = None
    metadata: str | None = None
    notes: str | None = None
    origin: str = "task"
    schedule: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    deployment_id: str | None = None
    trace_id: str | None = None
    attempt_id: str | None = None
    trial_id: str | None = None
    parents: tuple[UUID, ...] = ()
    allow_parent_failure: bool = False
    is_limited: bool = False
    dlq_retry_count: int = 0
    origin_job_id: UUID | None = None


class ClaimedJob(NamedTuple):
    """A job one attempt owns while its lease lasts. ``(id, token)`` proves the ownership.

    A tuple rather than a dataclass: a worker builds thousands of them a second.
    """

    id: UUID
    queue: str
    task_name: str
    payload: str
    attempt: int
    retry_count: int
    max_retries: int
    timeout_ms: int | None
    deployment_id: str | None
    metadata: str | None
    session_id: str | None
    is_expired: bool
    token: int
    lane: str
    #: Whether the job was asked to stop before this attempt: then its body does not begin.
    is_cancel_requested: bool = False
    #: Whose rate limit its claim took a token of: that of its ``queue``, of its ``task``, of both.
    paid_to: tuple[str, ...] = ()


class Settlement(NamedTuple):
    """What to write at the end of an attempt. ``wait_ms`` is the time until the retry.

    ``attempt_error`` becomes a job error row, ``duration_ms`` a metric row; ``None`` writes
    neither; nor does a pause, which is no execution that ended. ``is_budgeted``: a retry that needs
    a token of its task's retry budget. A tuple for the same reason as ``ClaimedJob``.
    """

    job_id: UUID
    token: int
    status: str
    task_name: str
    lane: str
    result: str | None = None
    error: str | None = None
    attempt_error: str | None = None
    retry_count: int = 0
    wait_ms: int = 0
    duration_ms: float | None = None
    succeeded: bool = False
    is_budgeted: bool = False
    pause_reason: str | None = None
    session_id: str | None = None


class AutoRetry(NamedTuple):
    """When dead letters are retried by themselves: after a delay, so often in a chain."""

    delay_ms: int
    most: int


class JobRecord(NamedTuple):
    """A stored job as it stood when it was read. Times are aware datetimes."""

    id: UUID
    namespace: str
    queue: str
    task_name: str
    status: str
    priority: int
    progress: int | None
    retry_count: int
    max_retries: int
    attempt: int
    created_at: datetime
    scheduled_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    error: str | None
    timeout_ms: int | None
    unique_key: str | None
    metadata: str | None
    notes: str | None
    worker_id: str | None
    cancel_requested_at: datetime | None
    session_id: str | None
    user_id: str | None
    deployment_id: str | None
    trace_id: str | None
    origin: str
    schedule: str | None
    pause_reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveWorker:
    """One worker process as it last reported."""

    id: str
    namespace: str
    hostname: str
    pid: int
    queues: tuple[str, ...] | None
    executor: str
    concurrency: int
    deployment_id: str | None
    version: str
    state: str
    clock_skew_ms: int
    started_at: datetime
    heartbeat_at: datetime
    turned_at: datetime
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Whether it claims jobs; else it drains, alive as it is."""
        return self.state == "running"

    def serves(self, queue: str) -> bool:
        """Whether its jobs are those of a queue, as long as it claims any."""
        return self.queues is None or queue in self.queues

    @property
    def turn_age(self) -> float:
        """How long the claim loop had not turned at the last heartbeat, in seconds.

        0 for a worker that drains, or waits for its database: it is not meant to claim.
        """
        return max(0.0, (self.heartbeat_at - self.turned_at).total_seconds())
