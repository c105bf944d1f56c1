"""Tasks that take their time."""

import threading

from tests.backend.tasks import task


@task
def outlast(seconds: float) -> None:
    """Take so long."""
    threading.Event().wait(seconds)
