"""The OpenAPI description: complete, and true of the surface that serves it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

from flexiq_django.http.endpoints import ENDPOINTS, REQUEUE
from flexiq_django.store.browse import REACH
from tests.factories import ArchivedJobFactory, JobFactory
from tests.http.conftest import Caller, token
from tests.http.test_reading import STATES

pytestmark = pytest.mark.django_db


def test_it_is_served_to_operators_and_names_every_endpoint(admin: Caller, surface: Any) -> None:
    response = admin.get("openapi.json")
    found = response.json()

    assert response.status_code == 200
    assert found["openapi"] == "3.1.0"
    assert {path: list(each) for path, each in found["paths"].items()} == {
        f"/queue/{each.path}": [each.method.lower()] for each in ENDPOINTS
    }
    described = found["paths"]["/queue/jobs"]["get"]["parameters"]
    assert {each["name"]: each["schema"].get("default") for each in described} == {
        "status": None, "limit": 20, "page": 1, "sort_by": "created_at", "sort_order": "desc",
    }  # fmt: skip
    for endpoint in ENDPOINTS:
        operation = found["paths"][f"/queue/{endpoint.path}"][endpoint.method.lower()]
        assert {"200", "401", "403", "503"} <= set(operation["responses"])


@pytest.fixture
def kept_connection() -> Iterator[None]:
    """Requests through the application itself leave the connection of the test open."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.slow
@pytest.mark.usefixtures("kept_connection")
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_the_running_surface_does_what_the_description_says(surface: Any, endpoint: Any) -> None:
    surface.ALLOWED_HOSTS = ["localhost"]
    jobs = [JobFactory(**fields) for fields in STATES.values()]
    jobs.append(JobFactory(ended=True, status="dead", completed_at=datetime.now(UTC)))
    ids = [str(job.id) for job in (*jobs, ArchivedJobFactory(status="dead"))]
    headers = {"Authorization": f"Bearer {token('admin', 'view_payload')}"}
    schema = schemathesis.openapi.from_wsgi(
        "/queue/openapi.json", get_wsgi_application(), headers=headers
    )
    operation = schema[f"/queue/{endpoint.path}"][endpoint.method]
    cases = st.one_of(
        operation.as_strategy(generation_mode=mode)
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    )
    # Every request here carries a good token and often the id of a job, also where a bad one was
    # drawn; bad values have tests of their own. And a request that is well formed is refused all
    # the same where the job is not one to be requeued.
    unasked = [checks.ignored_auth, checks.negative_data_rejection]
    if endpoint is REQUEUE:
        unasked.append(checks.positive_data_acceptance)
    seen: set[int] = set()

    @given(case=cases, known=st.sampled_from([None, *ids]))
    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any, known: str | None) -> None:
        if known is not None and "job_id" in case.path_parameters:
            case.path_parameters["job_id"] = known  # else hardly any request would meet a job
        page, limit = (case.query.get(name) for name in ("page", "limit"))
        if str(page).isdigit() and str(limit or 20).isdigit():
            assume((int(page) - 1) * int(limit or 20) < REACH)  # what no schema can say
        response = case.call(headers=headers)
        seen.add(response.status_code)
        case.validate_response(response, excluded_checks=unasked)

    check()
    assert 200 in seen
    assert not {500, 503} & seen
