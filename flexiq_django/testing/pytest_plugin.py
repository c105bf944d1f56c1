"""Fixtures for pytest. The plugin is there wherever this package is installed beside pytest.

It imports nothing of Django before a fixture is used: pytest loads it before there are settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from flexiq_django.api.result import JobResult


@pytest.fixture
def flexiq_jobs(db: None) -> Iterator[list[JobResult]]:
    """The jobs that the test enqueues, in their order; see ``captured_jobs``."""
    from flexiq_django.testing import captured_jobs

    with captured_jobs() as jobs:
        yield jobs


@pytest.fixture
def flexiq_immediate(db: None) -> Iterator[None]:
    """Jobs of the test run where they are enqueued; see ``immediate``."""
    from flexiq_django.testing import immediate

    with immediate():
        yield


@pytest.fixture
def flexiq_run_pending(db: None) -> Callable[..., list[JobResult]]:
    """The function ``run_pending``, for a test with access to the database."""
    from flexiq_django.testing import run_pending

    return run_pending
