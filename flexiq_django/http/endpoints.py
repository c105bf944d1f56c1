"""The endpoints: paths, parameters, status codes. One table for the views and the description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flexiq_django.http import payloads
from flexiq_django.http.parameters import Parameter
from flexiq_django.store.browse import REACH

PER_PAGE = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One path and the one method it takes (GET goes with HEAD).

    ``answers`` says of each status code beside those that every endpoint has when it comes;
    ``content`` names the schema of an answer with 200.
    """

    name: str
    path: str
    method: str
    summary: str
    content: str
    parameters: tuple[Parameter, ...] = ()
    answers: Mapping[int, str] = field(default_factory=dict)

    @property
    def allowed(self) -> tuple[str, ...]:
        """The methods that are answered."""
        safe = ("GET", "HEAD") if self.method == "GET" else (self.method,)
        return (*safe, "OPTIONS")


#: What each endpoint may answer.
EVERYWHERE = {
    400: "A parameter is unknown or has a value that is not allowed.",
    401: "Nobody: no session, or a token that is not valid.",
    403: "A session or token that may not do this; a session without its CSRF token on POST.",
    503: "The surface is off, the database is away, or it is not migrated.",
}

STATS = Endpoint(
    name="stats",
    path="stats",
    method="GET",
    summary="Job counts by status and the age of the oldest job that could be claimed, in seconds."
    " failed counts the dead letters, the rest the jobs that are not archived.",
    content="Stats",
)

JOBS = Endpoint(
    name="jobs",
    path="jobs",
    method="GET",
    summary="A page of the jobs that are not archived. status=failed alone is the dead-letter list:"
    " the jobs that have a dead letter, archived or not."
    f" Pages reach over the first {REACH:,} jobs that match. Sorted by anything but created_at,"
    f" they show the newest {REACH:,} in that order.",
    content="Page",
    parameters=(
        Parameter(
            name="status",
            default=(),
            choices=payloads.STATUSES,
            description="Only jobs of this status; repeat it to match several.",
        ),
        Parameter(name="limit", default=20, least=1, most=PER_PAGE, description="Jobs per page."),
        Parameter(name="page", default=1, least=1, most=REACH, description="Page number, from 1."),
        Parameter(
            name="sort_by",
            default="created_at",
            known=tuple(payloads.ORDERS),
            description=f"One of {', '.join(payloads.ORDERS)}; anything else is ignored."
            " Jobs without a value come last.",
        ),
        Parameter(
            name="sort_order", default="desc", choices=("asc", "desc"), description="asc or desc."
        ),
    ),
    answers={
        400: "A parameter is unknown or has a value that is not allowed; or the page lies out of"
        " reach."
    },
)

JOB = Endpoint(
    name="job",
    path="jobs/{job_id}",
    method="GET",
    summary="One job, archived or not.",
    content="Job",
    answers={404: "There is no such job."},
)

REQUEUE = Endpoint(
    name="requeue",
    path="jobs/{job_id}/requeue",
    method="POST",
    summary="Grant a failed or cancelled job one more execution; the job as it stands then.",
    content="Job",
    parameters=(
        Parameter(
            name="clear_cancellation",
            default=False,
            description="Forget that the job was cancelled. Without it a recorded cancel stays, and"
            " the next attempt is cancelled before its body begins.",
        ),
        Parameter(
            name="force",
            default=False,
            description="Do not wait until LOCK_GRACE_SECONDS have passed since the job failed,"
            " although its worker may still be executing it.",
        ),
    ),
    answers={
        400: "The job has neither failed nor been cancelled; or a parameter is unknown or has a"
        " value that is not allowed.",
        404: "There is no such job.",
        409: "The job failed within the last LOCK_GRACE_SECONDS, its task is revoked, or another"
        " job has taken its unique key.",
    },
)

ENDPOINTS = (STATS, JOBS, JOB, REQUEUE)

DESCRIPTION = Endpoint(
    name="openapi",
    path="openapi.json",
    method="GET",
    summary="This description.",
    content="Description",
)
