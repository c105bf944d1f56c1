"""Find the framework's tasks: by the path under which the framework stores them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from flexiq_django.api.task import Task as JobTask
    from flexiq_django.backend.framework import AnyTask
    from flexiq_django.backend.task_backend import FlexiqBackend
    from flexiq_django.store.scope import Scope

logger = logging.getLogger(__name__)

#: Names that were found to be tasks of the framework, in this process.
known_names: set[str] = set()


def load_task(path: str) -> AnyTask | None:
    """The task at ``module.name``; ``None`` if there is no task of the framework.

    Its module is imported if it has not been. Nothing but a task is ever called.
    """
    from flexiq_django.backend.framework import Task

    try:
        found = import_string(path)
    except ImportError as error:
        # That there is nothing is no news; that the module misses another one is.
        is_news = isinstance(error, ModuleNotFoundError) and not f"{path}.".startswith(
            f"{error.name}."
        )
        logger.log(logging.WARNING if is_news else logging.DEBUG, "no task at %s: %s", path, error)
        return None
    except Exception:  # whatever a module does when it is imported; the job must say so, not us
        logger.exception("the module of %s cannot be imported", path)
        return None
    return found if isinstance(found, Task) else None


def find_task(scope: Scope, name: str) -> JobTask[Any, Any] | None:
    """What a worker of ``scope`` runs for a job of this name; ``None`` if it is no Django task.

    Only where a backend in ``TASKS`` stores jobs in that scope.
    """
    backend = _backend_of(scope)
    if backend is None:
        return None
    task = load_task(name)
    if task is None:
        return None
    from flexiq_django.backend.running import job_task

    known_names.add(name)
    return job_task(scope, name, task, backend)


def flexiq_backends() -> list[FlexiqBackend]:
    """The backends of ours in ``TASKS`` that are configured well, in its order."""
    try:
        from flexiq_django.backend.framework import task_backends
        from flexiq_django.backend.options import find_problems
        from flexiq_django.backend.task_backend import FlexiqBackend
    except ImproperlyConfigured:  # no framework here
        return []
    found = []
    for alias in task_backends:
        try:
            backend = task_backends[alias]
        except ImproperlyConfigured as error:  # the system checks of its users say more
            logger.warning("TASKS[%r] cannot be used: %s", alias, error)
            continue
        if isinstance(backend, FlexiqBackend) and not find_problems(alias, backend.options):
            found.append(backend)
    return found


def _backend_of(scope: Scope) -> FlexiqBackend | None:
    """The first backend whose jobs are in ``scope``, else the first that follows the settings."""
    backends = [(each, each.flexiq_queue) for each in flexiq_backends()]
    for backend, queue in backends:
        if (queue.place.using, queue.place.namespace) == (scope.using, scope.namespace):
            return backend
    return next((backend for backend, queue in backends if queue.follows_settings), None)
