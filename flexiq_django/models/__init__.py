"""Keep: the schema. Rows are written by ``flexiq_django.store`` only."""

from flexiq_django.models.control import (
    Lease,
    PeriodicTask,
    QueueState,
    Setting,
    TaskState,
    Worker,
)
from flexiq_django.models.dead_letter import DeadLetter
from flexiq_django.models.dependency import JobDependency
from flexiq_django.models.history import JobError, ReplayHistory, TaskLog, TaskMetric
from flexiq_django.models.job import ArchivedJob, Job

__all__ = [
    "ArchivedJob",
    "DeadLetter",
    "Job",
    "JobDependency",
    "JobError",
    "Lease",
    "PeriodicTask",
    "QueueState",
    "ReplayHistory",
    "Setting",
    "TaskLog",
    "TaskMetric",
    "TaskState",
    "Worker",
]
