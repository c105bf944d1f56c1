"""The settings of the tests, under a supervisor with a fault: it cannot replace a process."""

from flexiq_django.worker.supervisor import Supervisor
from tests.settings import *  # noqa: F403


def fail(*_: object) -> None:
    """Stand for any fault of ours."""
    raise RuntimeError("a fault of the supervisor")


Supervisor._replace = fail  # type: ignore[method-assign]
