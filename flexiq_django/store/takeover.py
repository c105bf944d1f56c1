"""End attempts over the heads of those who make them, as an operator does.

Their tokens are cleared, so that whoever runs the job can write nothing more, and cannot mistake
this verdict for its own.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from flexiq_django.core.records import AutoRetry, ClaimedJob, Settlement
from flexiq_django.store import lease, verdicts
from flexiq_django.store.scope import Scope
from flexiq_django.store.settle import Settled, settle_inside
from flexiq_django.store.vendors import open_database

_RUNNING = "j.token = b.token AND j.status = 'running' AND j.namespace = %(namespace)s"

#: How often to look again for the attempt that runs, when the one that was seen ended meanwhile.
_LOOKS = 5

Decide = Callable[[ClaimedJob], Settlement]


def settle_running(
    scope: Scope, job_id: UUID, decide: Decide, *, auto_retry: AutoRetry | None = None
) -> tuple[list[Settlement], Settled]:
    """Settle whatever attempt runs a job now; nothing if it is not running."""
    database = open_database(scope)
    for _ in range(_LOOKS):
        # Not locked: whoever settles a retry takes the row of its task's budget first.
        job = lease.running(database, job_id)
        if job is None:
            break
        settlements = [decide(job)]
        with database.transaction():
            outcome = settle_inside(
                database, settlements, _RUNNING, {"token": "NULL"}, auto_retry=auto_retry
            )
        if outcome.settled:
            return verdicts.as_written(settlements, outcome.buried, outcome.stopped), outcome
    return [], Settled()


def take_back(
    scope: Scope, worker_id: str, decide: Decide, *, auto_retry: AutoRetry | None = None
) -> tuple[list[Settlement], Settled]:
    """Settle every job that runs under the name of a worker; what was settled.

    A job that the worker claims meanwhile has another token, and stays.
    """
    database = open_database(scope)
    with database.transaction():
        settlements = [decide(job) for job in lease.unknown(scope, worker_id, ())]
        outcome = settle_inside(
            database, settlements, _RUNNING, {"token": "NULL"}, auto_retry=auto_retry
        )
    written = verdicts.as_written(settlements, outcome.buried, outcome.stopped)
    return [each for each in written if each.job_id in outcome.settled], outcome
