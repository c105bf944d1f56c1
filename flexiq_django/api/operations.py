"""The operator methods of ``Queue``: each changes jobs by one store verb."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from flexiq_django.api import options as check
from flexiq_django.api.announce import wake_workers
from flexiq_django.api.context import check_progress
from flexiq_django.api.twins import async_twin
from flexiq_django.exceptions import JobNotActiveError
from flexiq_django.store import archive as archiving
from flexiq_django.store import link, operate

if TYPE_CHECKING:
    from flexiq_django.store.scope import Scope


class Operations:
    """What a person or a program may do to jobs."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

    def cancel_job(self, job_id: str) -> bool:
        """Cancel a pending or paused job, and every pending job that depends on it.

        False if the job is unknown, running or has ended. Cannot be undone.
        """
        key = check.parse_id(job_id)
        if key is None or not operate.cancel(self.scope, key):
            return False
        wake_workers(self.scope)  # perhaps the next job of its session may go
        return True

    def cancel_running_job(self, job_id: str) -> bool:
        """Ask a running job to stop. True means the request is recorded, not that it stopped.

        The task notices when it calls ``current_job.check_cancelled()``; one that never does runs
        to its end. False if the job is unknown or not running.
        """
        key = check.parse_id(job_id)
        return key is not None and operate.request_cancel(self.scope, key)

    def update_progress(self, job_id: str, progress: int) -> None:
        """Set the progress of a job that has not ended, from 0 to 100.

        Raises ``InvalidOptionError`` for another value and ``JobNotActiveError`` (a
        ``RuntimeError``) if the job is unknown or has ended.
        """
        value = check_progress(progress)
        key = check.parse_id(job_id)
        if key is None or not operate.set_progress(self.scope, key, value):
            raise JobNotActiveError(f"job {job_id} is unknown or has ended")

    def archive(self, older_than: float = 86_400) -> int:
        """Move jobs that ended more than ``older_than`` seconds ago to the archive; how many.

        Works in short transactions, so that it may run beside busy workers. What grows old
        meanwhile stays.
        """
        age = check.check_number("older_than", older_than)
        # Beyond a hundred years either way the answer no longer changes.
        bounded = max(-3_155_760_000.0, min(3_155_760_000.0, age))
        rest_factor = link.rest_factor(self.scope)
        batches = archiving.archive_ended(self.scope, older_than_ms=round(bounded * 1000))
        moved = 0
        while True:
            began = time.monotonic()
            batch = next(batches, None)
            if batch is None:
                return moved
            moved += batch
            # Leave the others room between two batches: on SQLite they cannot write during one.
            time.sleep(rest_factor * (time.monotonic() - began))  # noqa: TID251 - no stop to hear

    acancel_job = async_twin(cancel_job)
    acancel_running_job = async_twin(cancel_running_job)
    aupdate_progress = async_twin(update_progress)
    aarchive = async_twin(archive)
