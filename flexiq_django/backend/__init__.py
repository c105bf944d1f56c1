"""Django's task framework, run as jobs.

``TASKS = {"default": {"BACKEND": "flexiq_django.backend.FlexiqBackend"}}``. The class is made on
first use, for the framework there is: ``django.tasks`` from Django 6.0 on, else the backport
``django_tasks``. Where there is neither, using it raises ``ImproperlyConfigured``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexiq_django.backend.task_backend import FlexiqBackend as FlexiqBackend

__all__ = ["FlexiqBackend"]


def __getattr__(name: str) -> Any:
    if name != "FlexiqBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flexiq_django.backend.task_backend import FlexiqBackend

    return FlexiqBackend
