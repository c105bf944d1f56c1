"""Skips what needs a task framework where there is none: Django 5.2 without its backport."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from tests.docs.running import run_worker

HAS_FRAMEWORK = any(find_spec(name) for name in ("django.tasks", "django_tasks"))

if not HAS_FRAMEWORK:
    collect_ignore_glob = ["test_[!w]*.py"]  # all but test_without_framework.py


@pytest.fixture
def work(transactional_db: None) -> Callable[[], None]:
    """A worker that runs what there is, with threads of its own, in this process."""
    return run_worker


@pytest.fixture
def other_tasks_setting(settings: Any) -> Callable[..., None]:
    """Sets TASKS to one or more backends of ours by alias."""

    def use(**aliases: dict[str, Any]) -> None:
        backend = "flexiq_django.backend.FlexiqBackend"
        settings.TASKS = {
            alias: {"BACKEND": backend, **params} for alias, params in aliases.items()
        }

    return use
