"""The queue as plain functions, for people who write their own executor.

The same verbs, fences and tables as those of ``Queue`` and ``flexiq_worker``, with which an
executor may share a namespace. Import it once Django is set up.
"""

from __future__ import annotations

from flexiq_django.db.claiming import (
    Claim,
    claim,
    claim_next_job,
    claim_with_lease,
    get_next_pending,
    heartbeat,
    mark_processing,
)
from flexiq_django.db.database import JobDatabase, open_database
from flexiq_django.db.inserting import insert_job, insert_job_full, insert_job_with_trace
from flexiq_django.db.operating import (
    cancel_job,
    is_cancelled,
    prune_old_jobs,
    reorder_pending,
    update_canonical_lineage,
    update_priority,
)
from flexiq_django.db.reading import (
    FailedAttempt,
    JobDetails,
    JobRow,
    ListedJob,
    count_by_status,
    get_attempt_count,
    get_job,
    get_job_details,
    list_all_jobs,
)
from flexiq_django.db.recovering import reclaim_stale, requeue_interrupted
from flexiq_django.db.settling import (
    FailureClass,
    mark_completed,
    mark_completed_owned,
    mark_failed,
    mark_failed_owned,
    mark_failed_with_retry,
    mark_failed_with_retry_owned,
)
from flexiq_django.db.words import Status

__all__ = [
    "Claim",
    "FailedAttempt",
    "FailureClass",
    "JobDatabase",
    "JobDetails",
    "JobRow",
    "ListedJob",
    "Status",
    "cancel_job",
    "claim",
    "claim_next_job",
    "claim_with_lease",
    "count_by_status",
    "get_attempt_count",
    "get_job",
    "get_job_details",
    "get_next_pending",
    "heartbeat",
    "insert_job",
    "insert_job_full",
    "insert_job_with_trace",
    "is_cancelled",
    "list_all_jobs",
    "mark_completed",
    "mark_completed_owned",
    "mark_failed",
    "mark_failed_owned",
    "mark_failed_with_retry",
    "mark_failed_with_retry_owned",
    "mark_processing",
    "open_database",
    "prune_old_jobs",
    "reclaim_stale",
    "reorder_pending",
    "requeue_interrupted",
    "update_canonical_lineage",
    "update_priority",
]
