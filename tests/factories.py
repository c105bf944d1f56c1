"""Valid rows and records; a test overrides only what it is about.

Rows stand at `NOW` and are seen by verbs in `at()`, the scope of the same moment.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import factory
from factory.django import DjangoModelFactory

from flexiq_django.core.records import ClaimedJob, NewJob, Settlement
from flexiq_django.models import (
    ArchivedJob,
    DeadLetter,
    Job,
    JobDependency,
    JobError,
    PeriodicTask,
    QueueState,
    ReplayHistory,
    TaskLog,
    TaskMetric,
    TaskState,
    Worker,
)
from flexiq_django.store.ids import new_id
from flexiq_django.store.scope import Scope

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
NO_ARGUMENTS = "[[],{}]"


def at(seconds: float = 0, **scope: Any) -> Scope:
    """A scope whose clock stands `seconds` after `NOW`."""
    return Scope(now=NOW + timedelta(seconds=seconds), **scope)


def later(seconds: float) -> datetime:
    """`NOW` and so many seconds."""
    return NOW + timedelta(seconds=seconds)


# --- records --------------------------------------------------------------------------------------


class NewJobFactory(factory.Factory[NewJob]):
    """A job about to be stored: ready at once, three retries."""

    class Meta:
        model = NewJob

    id = factory.LazyFunction(new_id)
    queue = "default"
    task_name = "app.tasks.work"
    payload = NO_ARGUMENTS
    max_retries = 3


class ClaimedJobFactory(factory.Factory[ClaimedJob]):
    """A first attempt, not tied to any row."""

    class Meta:
        model = ClaimedJob

    id = factory.LazyFunction(new_id)
    queue = "default"
    task_name = "app.tasks.work"
    payload = NO_ARGUMENTS
    attempt = 1
    retry_count = 0
    max_retries = 3
    timeout_ms = None
    deployment_id = None
    metadata = None
    session_id = None
    is_expired = False
    token = 7
    lane = "default"


class SettlementFactory(factory.Factory[Settlement]):
    """The completion of a job."""

    class Meta:
        model = Settlement

    job_id = factory.LazyFunction(new_id)
    token = 7
    status = "complete"
    task_name = "app.tasks.work"
    lane = "default"


# --- rows -----------------------------------------------------------------------------------------


class BaseJobFactory(DjangoModelFactory):
    class Meta:
        abstract = True

    id = factory.LazyFunction(new_id)
    namespace = "default"
    queue = "default"
    task_name = "app.tasks.work"
    payload = NO_ARGUMENTS
    max_retries = 3
    created_at = NOW
    scheduled_at = NOW
    updated_at = NOW


class JobFactory(BaseJobFactory):
    """A ready job; the traits put it into another state."""

    class Meta:
        model = Job

    class Params:
        scheduled = factory.Trait(ready_lane=None, promote_at=factory.SelfAttribute("scheduled_at"))
        waiting = factory.Trait(ready_lane=None)
        running = factory.Trait(
            status="running",
            ready_lane=None,
            lease_at=later(60),
            started_at=NOW,
            token=7,
            attempt=1,
            worker_id="worker-1",
        )
        ended = factory.Trait(
            status="complete", ready_lane=None, completed_at=NOW, started_at=NOW, token=7, attempt=1
        )

    status = "pending"
    ready_lane = factory.SelfAttribute("queue")


class ArchivedJobFactory(BaseJobFactory):
    """A completed job, archived at once."""

    class Meta:
        model = ArchivedJob

    status = "complete"
    started_at = NOW
    completed_at = NOW
    archived_at = NOW


class JobDependencyFactory(DjangoModelFactory):
    class Meta:
        model = JobDependency

    namespace = "default"
    job_id = factory.LazyFunction(new_id)
    parent_id = factory.LazyFunction(new_id)
    is_open = True


class DeadLetterFactory(DjangoModelFactory):
    class Meta:
        model = DeadLetter

    id = factory.LazyFunction(new_id)
    namespace = "default"
    original_job_id = factory.LazyFunction(new_id)
    queue = "default"
    task_name = "app.tasks.work"
    payload = NO_ARGUMENTS
    error = "ValueError: bad"
    retry_count = 3
    max_retries = 3
    failed_at = NOW


class JobErrorFactory(DjangoModelFactory):
    class Meta:
        model = JobError

    id = factory.LazyFunction(new_id)
    namespace = "default"
    job_id = factory.LazyFunction(new_id)
    attempt = 0
    error = "ValueError: bad"
    failed_at = NOW


class TaskLogFactory(DjangoModelFactory):
    class Meta:
        model = TaskLog

    id = factory.LazyFunction(new_id)
    namespace = "default"
    job_id = factory.LazyFunction(new_id)
    task_name = "app.tasks.work"
    level = "info"
    message = "a line"
    logged_at = NOW


class TaskMetricFactory(DjangoModelFactory):
    class Meta:
        model = TaskMetric

    namespace = "default"
    task_name = "app.tasks.work"
    job_id = factory.LazyFunction(new_id)
    duration_ms = 12.5
    succeeded = True
    recorded_at = NOW


class ReplayHistoryFactory(DjangoModelFactory):
    class Meta:
        model = ReplayHistory

    id = factory.LazyFunction(new_id)
    namespace = "default"
    original_job_id = factory.LazyFunction(new_id)
    replay_job_id = factory.LazyFunction(new_id)
    replayed_at = NOW


class QueueStateFactory(DjangoModelFactory):
    """A paused queue."""

    class Meta:
        model = QueueState

    namespace = "default"
    name = "default"
    paused_at = NOW


class TaskStateFactory(DjangoModelFactory[TaskState]):
    """A task something was said about."""

    class Meta:
        model = TaskState

    namespace = "default"
    name = "app.tasks.work"


class PeriodicTaskFactory(DjangoModelFactory):
    """An hourly schedule, due at `NOW`."""

    class Meta:
        model = PeriodicTask

    namespace = "default"
    name = factory.Sequence(lambda number: f"schedule-{number}")
    task_name = "app.tasks.work"
    cron = "0 * * * *"
    timezone = "UTC"
    payload = NO_ARGUMENTS
    misfire_policy = "once"
    misfire_window_ms = 3_600_000
    next_run_at = NOW
    declared_at = NOW


class WorkerFactory(DjangoModelFactory):
    """A live worker."""

    class Meta:
        model = Worker

    id = factory.Sequence(lambda number: f"worker-{number}")
    namespace = "default"
    hostname = "host"
    pid = 42
    queues = "null"
    executor = "threads"
    concurrency = 8
    version = "0"
    config = "{}"
    state = "running"
    started_at = NOW
    heartbeat_at = NOW
    turned_at = NOW
    lease_at = later(60)
