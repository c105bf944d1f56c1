"""Who a worker is, and what it tells the others about itself."""

from __future__ import annotations

import json
import os
import secrets
import socket
from typing import Any

from flexiq_django import __version__
from flexiq_django.worker.options import WorkerOptions


def new_worker_id() -> str:
    """A name no other boot of any worker has: host, process, and a few random letters."""
    return f"{socket.gethostname()[:100]}-{os.getpid()}-{secrets.token_hex(3)}"


def describe_row(options: WorkerOptions, worker_id: str) -> dict[str, Any]:
    """The columns of the worker's row that never change."""
    return {
        "id": worker_id,
        "hostname": socket.gethostname()[:200],
        "pid": os.getpid(),
        "queues": json.dumps(options.queues),
        "executor": options.executor,
        "concurrency": options.concurrency,
        "deployment_id": options.deployment_id,
        "version": __version__,
        "config": json.dumps(options.fleet_values),
        "state": "running",
        "clock_skew_ms": 0,
    }


def describe(options: WorkerOptions) -> str:
    """What the worker does, for its log."""
    served = "all queues" if options.queues is None else f"queues {', '.join(options.queues)}"
    slots = f"{options.concurrency} {options.executor}"
    return f"namespace {options.scope.namespace}, {served}, {slots}"
