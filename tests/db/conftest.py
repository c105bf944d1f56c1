"""An open database for every test, in the namespace that the factories use."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from flexiq_django import db as jobs
from flexiq_django.models import Job

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def place(db: None) -> jobs.JobDatabase:
    """The test's database, opened."""
    return jobs.open_database()


def row_of(job: jobs.Claim | str) -> Job:
    """The stored row of a job."""
    return Job.objects.get(id=UUID(job if isinstance(job, str) else job.id))


def change(job: jobs.Claim | str, **columns: Any) -> None:
    """Write columns of a job as no function would."""
    Job.objects.filter(id=row_of(job).id).update(**columns)


def claimed(place: jobs.JobDatabase, data: Any = None, **options: Any) -> jobs.Claim:
    """Insert a job and claim it."""
    job_id = jobs.insert_job_full(place, data, **options)
    claim = jobs.claim(place, "me")
    assert claim is not None
    assert claim.id == job_id
    return claim


def outlive_lease(job: jobs.Claim | str) -> None:
    """The lease of a job has run out long ago, and nobody has heard of it since."""
    change(job, lease_at=LONG_AGO, updated_at=LONG_AGO)
