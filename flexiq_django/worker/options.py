"""How a worker is to run."""

from __future__ import annotations

from dataclasses import dataclass, field

from flexiq_django.core.records import AutoRetry
from flexiq_django.core.retention import RetentionPolicy
from flexiq_django.store.scope import Scope

#: See ``WorkerOptions.silence``, in seconds.
LONGEST_SILENCE = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOptions:
    """All a worker process needs to know, in seconds; it is handed to child processes."""

    scope: Scope
    queues: tuple[str, ...] | None = None
    executor: str = "threads"
    concurrency: int = 8
    deployment_id: str | None = None
    burst: bool = False
    max_jobs: int | None = None
    #: Bytes of resident memory above which the process is recycled; ``None``: it may grow.
    max_rss: int | None = None
    verbosity: int = 1
    #: ``text`` or ``json``; ``None`` if it was not asked for.
    log_format: str | None = None
    lock_grace: float = 60
    heartbeat: float = 15
    stop_timeout: float = 30
    #: Seconds after which a body that should have ended counts as one that never will.
    stray_grace: float = 5
    poll: float = 1.0
    listen: bool = True
    #: Most seconds between two turns of the claim loop before a probe is told that it hangs.
    max_turn_age: float = 60
    max_result_bytes: int = 1_048_576
    max_error_bytes: int = 65_536
    #: When dead letters are retried by themselves; ``None``: never.
    auto_retry: AutoRetry | None = None
    #: How long history is kept; ``None`` sweeps nothing, lifetimes of single jobs included.
    retention: RetentionPolicy | None = None
    #: When an ended job moves to the archive; ``None`` never moves one.
    archive_after: float | None = None
    #: Values that should be the same in the whole fleet, as published in the worker's row.
    fleet_values: dict[str, object] = field(default_factory=dict)

    @property
    def most_claims(self) -> int | None:
        """After how many jobs the worker leaves; with child processes, only these are replaced."""
        return None if self.executor == "processes" else self.max_jobs

    @property
    def most_rss(self) -> int | None:
        """With how much memory the worker leaves; with child processes, only these are replaced."""
        return None if self.executor == "processes" else self.max_rss

    @property
    def silence(self) -> float:
        """Seconds of silence after which a connection of the worker's own counts as broken.

        Well below the lease, so that a worker that is reached by another way keeps its jobs.
        """
        return min(LONGEST_SILENCE, max(2.0, self.lock_grace / 3))

    @property
    def lease_ms(self) -> int:
        """How long a lease lasts."""
        return round(self.lock_grace * 1000)
