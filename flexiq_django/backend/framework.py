"""The task framework there is: Django's own from 6.0 on, else the backport ``django_tasks``.

Importing this module raises ``ImproperlyConfigured`` where there is neither.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured


def _find() -> str:
    for name in ("django.tasks", "django_tasks"):
        if find_spec(name) is not None:
            return name
    raise ImproperlyConfigured(
        "flexiq_django.backend needs a task framework: Django 6.0 or newer has one; for Django 5.2"
        " install the package django-tasks"
    )


#: The package of the framework.
NAME = _find()

if TYPE_CHECKING:
    from django.tasks import task_backends as task_backends
    from django.tasks.backends.base import BaseTaskBackend as BaseTaskBackend
    from django.tasks.base import Task as Task
    from django.tasks.base import TaskContext as TaskContext
    from django.tasks.base import TaskError as TaskError
    from django.tasks.base import TaskResult as TaskResult
    from django.tasks.base import TaskResultStatus as TaskResultStatus
    from django.tasks.exceptions import InvalidTask as InvalidTask
    from django.tasks.exceptions import TaskResultDoesNotExist as TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued as task_enqueued
    from django.tasks.signals import task_finished as task_finished
    from django.tasks.signals import task_started as task_started

    def normalize_json(value: Any) -> Any:
        """The value in JSON types."""

    AnyTask = Task[..., Any]
    AnyResult = TaskResult[..., Any]
else:
    task_backends = import_module(NAME).task_backends
    BaseTaskBackend = import_module(f"{NAME}.backends.base").BaseTaskBackend
    _base = import_module(f"{NAME}.base")
    Task, TaskContext, TaskError = _base.Task, _base.TaskContext, _base.TaskError
    TaskResult, TaskResultStatus = _base.TaskResult, _base.TaskResultStatus
    AnyTask, AnyResult = Task, TaskResult
    normalize_json = _base.normalize_json
    _errors = import_module(f"{NAME}.exceptions")
    # The backport ends the name in Error.
    InvalidTask = getattr(_errors, "InvalidTask", None) or _errors.InvalidTaskError
    TaskResultDoesNotExist = _errors.TaskResultDoesNotExist
    _signals = import_module(f"{NAME}.signals")
    task_enqueued, task_started = _signals.task_enqueued, _signals.task_started
    task_finished = _signals.task_finished
