"""What the child processes do first.

They are spawned: the function below is imported before Django is set up, so this module must not
import anything that needs it.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from flexiq_django.worker.options import WorkerOptions


def run_bodies(connection: Connection, options: WorkerOptions, worker_id: str) -> None:
    """The life of a child of the process executor."""
    if hasattr(os, "setpgrp"):  # it is killed with all it started; Ctrl-C is for the worker alone
        os.setpgrp()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A handler, because what is ignored stays ignored in the programs that a body starts.
        signal.signal(number, lambda *_: None)
    import django

    django.setup()
    from flexiq_django.worker.child import serve

    serve(connection, options, worker_id)
