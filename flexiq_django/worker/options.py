"""How a worker is to run."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field

from flexiq_django.store.scope import Scope


def new_worker_id() -> str:
    """A name no other boot of any worker has: host, process, and a few random letters."""
    return f"{socket.gethostname()[:100]}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOptions:
    """All a worker process needs to know, in seconds; it is handed to child processes."""

    scope: Scope
    queues: tuple[str, ...] | None = None
    concurrency: int = 8
    deployment_id: str | None = None
    burst: bool = False
    max_jobs: int | None = None
    lock_grace: float = 60
    heartbeat: float = 15
    stop_timeout: float = 30
    poll: float = 1.0
    listen: bool = True
    max_result_bytes: int = 1_048_576
    max_error_bytes: int = 65_536
    #: Values that should be the same in the whole fleet, as published in the worker's row.
    fleet_values: dict[str, object] = field(default_factory=dict)

    @property
    def lease_ms(self) -> int:
        """How long a lease lasts."""
        return round(self.lock_grace * 1000)
