"""The views. Each asks the default queue; none changes a row but by a method of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from flexiq_django.api.default import queue
from flexiq_django.api.options import parse_id
from flexiq_django.conf import get_settings
from flexiq_django.core.status import JobStatus
from flexiq_django.exceptions import (
    ContractError,
    FlexiQError,
    JobMayStillRunError,
    JobNotFoundError,
    JobNotGrantableError,
    TaskRevokedError,
    UniqueKeyTakenError,
)
from flexiq_django.http import endpoints, openapi, payloads
from flexiq_django.http.access import Operator, identify
from flexiq_django.http.answers import RefusedError, answer, refusal
from flexiq_django.http.endpoints import Endpoint
from flexiq_django.http.parameters import read_query
from flexiq_django.store import backlog, browse, figures, link

logger = logging.getLogger(__name__)

Handler = Callable[..., HttpResponse]

#: The answer to each reason not to requeue a job.
_REFUSALS: Mapping[type[FlexiQError], int] = {
    JobNotFoundError: 404,
    JobNotGrantableError: 400,
    JobMayStillRunError: 409,
    TaskRevokedError: 409,
    UniqueKeyTakenError: 409,
}


def _endpoint(endpoint: Endpoint) -> Callable[[Handler], Handler]:
    """Make a view of a function that answers ``(request, operator, query, ...)``."""

    def wrap(respond: Handler) -> Handler:
        def view(request: HttpRequest, **path: str) -> HttpResponse:
            try:
                return _respond(endpoint, respond, request, path)
            except RefusedError as error:
                return refusal(error)
            except ContractError as error:
                return refusal(RefusedError(503, str(error)))
            except (DatabaseError, InterfaceError) as error:
                return refusal(_unavailable(error))

        view.__doc__ = respond.__doc__
        # Tokens need no CSRF token, sessions are checked in access.py; and who is not logged in
        # gets an answer in JSON instead of being sent to a form.
        return csrf_exempt(login_not_required(view))

    return wrap


def _respond(
    endpoint: Endpoint, respond: Handler, request: HttpRequest, path: Mapping[str, str]
) -> HttpResponse:
    rules = get_settings().operator
    if not rules.ENABLED:
        raise RefusedError(503, "the operator surface is not enabled here")
    if request.method not in endpoint.allowed:
        allowed = ", ".join(endpoint.allowed)
        raise RefusedError(
            405, f"{request.method} is not one of {allowed}", headers={"Allow": allowed}
        )
    if request.method == "OPTIONS":
        response = HttpResponse(status=204, headers={"Allow": ", ".join(endpoint.allowed)})
        response["Cache-Control"] = "no-store"
        return response
    operator = identify(request, rules)
    query = read_query(request.GET, endpoint.parameters)
    return respond(request, operator, query, **path)


def _unavailable(error: DatabaseError | InterfaceError) -> RefusedError:
    """The answer where the database is away or not migrated; any other error goes on."""
    scope = queue.place
    if link.trouble(scope, error) is not None:
        logger.warning("the operator surface cannot reach the database: %s", error)
        return RefusedError(503, "the database is not available; try again")
    try:
        is_migrated = link.has_tables(scope)
    except (DatabaseError, InterfaceError):
        raise error from None
    if is_migrated:
        raise error
    return RefusedError(503, f"the database {scope.using!r} has not been migrated")


@_endpoint(endpoints.STATS)
def stats(request: HttpRequest, operator: Operator, query: Mapping[str, Any]) -> HttpResponse:
    """Counts by status and the age of the oldest job that could be claimed."""
    scope = queue.scope
    # What failed is what has a dead letter: the letters stay when their jobs are archived.
    counts = figures.by_status(scope, [each for each in JobStatus if each is not JobStatus.DEAD])
    counts[JobStatus.DEAD.value] = backlog.count(scope)
    return answer(payloads.stats(counts, queue.oldest_ready_seconds()))


@_endpoint(endpoints.JOBS)
def jobs(request: HttpRequest, operator: Operator, query: Mapping[str, Any]) -> HttpResponse:
    """A page of jobs."""
    number, limit = query["page"], query["limit"]
    offset = (number - 1) * limit
    if offset >= browse.REACH:
        raise RefusedError(
            400,
            f"page {number} with limit {limit} lies beyond the first {browse.REACH:,} jobs that"
            " match; ask for fewer by status, or sort the other way",
        )
    scope, statuses = queue.scope, payloads.statuses_of(query["status"])
    choice: dict[str, Any] = {
        "order": payloads.ORDERS[query["sort_by"]],
        "descending": query["sort_order"] == "desc",
        "limit": min(limit, browse.REACH - offset),
        "offset": offset,
        "with_payload": operator.sees_payloads,
    }
    if statuses == payloads.FAILED:
        rows, total = backlog.pages(scope, **choice), backlog.count(scope)
    else:
        rows = browse.browse(scope, statuses, **choice)
        total = sum(figures.by_status(scope, statuses or list(JobStatus)).values())
    return answer(payloads.page(rows, number=number, limit=limit, total=total))


@_endpoint(endpoints.JOB)
def job(
    request: HttpRequest, operator: Operator, query: Mapping[str, Any], job_id: str
) -> HttpResponse:
    """One job."""
    return answer(_job(operator, job_id))


@_endpoint(endpoints.REQUEUE)
def requeue(
    request: HttpRequest, operator: Operator, query: Mapping[str, Any], job_id: str
) -> HttpResponse:
    """Grant a job one more execution."""
    try:
        queue.grant_attempt(job_id, **query)
    except tuple(_REFUSALS) as error:
        raise RefusedError(_REFUSALS[type(error)], str(error)) from error
    logger.info("job %s requeued by %s over HTTP (%s)", job_id, operator.name, dict(query))
    return answer(_job(operator, job_id))


@_endpoint(endpoints.DESCRIPTION)
def description(request: HttpRequest, operator: Operator, query: Mapping[str, Any]) -> HttpResponse:
    """The OpenAPI description of the surface."""
    base = request.path.removesuffix(endpoints.DESCRIPTION.path)
    return answer(openapi.describe(base))


@csrf_exempt
@login_not_required
def nothing_here(request: HttpRequest, **path: str) -> HttpResponse:
    """Any other path below ours."""
    if not get_settings().operator.ENABLED:
        return refusal(RefusedError(503, "the operator surface is not enabled here"))
    return refusal(RefusedError(404, "there is nothing at this path"))


def _job(operator: Operator, job_id: str) -> dict[str, Any]:
    key = parse_id(job_id)
    row = key and browse.look_up(queue.scope, key, with_payload=operator.sees_payloads)
    if not row:
        raise RefusedError(404, f"there is no job {job_id[:100]}")
    return payloads.job(row)
