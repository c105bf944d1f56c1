"""A background-job queue in the project's own database.

The public names are resolved on first use, so that importing the package before Django is set up is
always safe.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexiq_django.api.context import current_job as current_job
    from flexiq_django.api.cursors import Page as Page
    from flexiq_django.api.default import queue as queue
    from flexiq_django.api.default import task as task
    from flexiq_django.api.queue import Queue as Queue
    from flexiq_django.api.result import JobResult as JobResult
    from flexiq_django.api.task import Task as Task
    from flexiq_django.core.misfire import MisfirePolicy as MisfirePolicy
    from flexiq_django.core.retention import Retention as Retention
    from flexiq_django.core.status import JobStatus as JobStatus
    from flexiq_django.exceptions import FlexiQError as FlexiQError
    from flexiq_django.exceptions import JobPaused as JobPaused
    from flexiq_django.exceptions import LeaseLost as LeaseLost
    from flexiq_django.exceptions import Permanent as Permanent
    from flexiq_django.exceptions import RateLimited as RateLimited
    from flexiq_django.exceptions import TaskCancelledError as TaskCancelledError

__version__ = "0.1.0"

_HOMES = {
    "current_job": "flexiq_django.api.context",
    "Page": "flexiq_django.api.cursors",
    "queue": "flexiq_django.api.default",
    "task": "flexiq_django.api.default",
    "Queue": "flexiq_django.api.queue",
    "JobResult": "flexiq_django.api.result",
    "Task": "flexiq_django.api.task",
    "MisfirePolicy": "flexiq_django.core.misfire",
    "Retention": "flexiq_django.core.retention",
    "JobStatus": "flexiq_django.core.status",
    "FlexiQError": "flexiq_django.exceptions",
    "JobPaused": "flexiq_django.exceptions",
    "LeaseLost": "flexiq_django.exceptions",
    "Permanent": "flexiq_django.exceptions",
    "RateLimited": "flexiq_django.exceptions",
    "TaskCancelledError": "flexiq_django.exceptions",
}

__all__ = [
    "FlexiQError",
    "JobPaused",
    "JobResult",
    "JobStatus",
    "LeaseLost",
    "MisfirePolicy",
    "Page",
    "Permanent",
    "Queue",
    "RateLimited",
    "Retention",
    "Task",
    "TaskCancelledError",
    "current_job",
    "queue",
    "task",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(home), name)
