"""Helpers for the tests of projects: run jobs inside a ``TestCase``, look at what was enqueued.

They work on the connection and inside the transaction of the test, with the verbs that workers use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexiq_django.testing.immediate import immediate as immediate
    from flexiq_django.testing.moving import at as at
    from flexiq_django.testing.moving import travel as travel
    from flexiq_django.testing.running import arun_pending as arun_pending
    from flexiq_django.testing.running import run_pending as run_pending
    from flexiq_django.testing.watching import assert_enqueued as assert_enqueued
    from flexiq_django.testing.watching import captured_jobs as captured_jobs

_HOMES = {
    "immediate": "flexiq_django.testing.immediate",
    "at": "flexiq_django.testing.moving",
    "travel": "flexiq_django.testing.moving",
    "arun_pending": "flexiq_django.testing.running",
    "run_pending": "flexiq_django.testing.running",
    "assert_enqueued": "flexiq_django.testing.watching",
    "captured_jobs": "flexiq_django.testing.watching",
}

__all__ = [
    "arun_pending",
    "assert_enqueued",
    "at",
    "captured_jobs",
    "immediate",
    "run_pending",
    "travel",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = getattr(import_module(_HOMES[name]), name)
    globals()[name] = attribute  # a submodule of the same name must not take its place
    return attribute
