"""Our times are instants, whatever the project's zone, the connection's or the session's."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings as django_settings
from django.db import connections
from django.db.models import Max, Min
from django.db.models.functions import Coalesce
from django.test import override_settings

from flexiq_django.models import Job
from flexiq_django.models.fields import UtcDateTimeField, to_naive_text
from flexiq_django.store import inspect
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from tests.factories import JobFactory

MOMENT = datetime(2026, 7, 1, 22, 30, 15, 123456, tzinfo=UTC)
# The hour that New York's clock shows twice: as local wall time the two would be one.
FIRST_PASS = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
SECOND_PASS = datetime(2026, 11, 1, 6, 30, tzinfo=UTC)

ZONES = [
    pytest.param({"USE_TZ": True, "TIME_ZONE": "UTC"}, None, id="aware"),
    pytest.param({"USE_TZ": True, "TIME_ZONE": "America/New_York"}, None, id="aware-new-york"),
    pytest.param({"USE_TZ": False, "TIME_ZONE": "UTC"}, None, id="naive"),
    pytest.param({"USE_TZ": False, "TIME_ZONE": "America/New_York"}, None, id="naive-new-york"),
    pytest.param(
        {"USE_TZ": True, "TIME_ZONE": "UTC"}, "America/New_York", id="database-in-new-york"
    ),
]


def forget_zone() -> None:
    """The connection works out anew which zone it is in, and connects anew."""
    connection = connections["default"]
    connection.close()
    for name in ("timezone", "timezone_name"):
        connection.__dict__.pop(name, None)


@pytest.fixture
def zone(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[None]:
    """A project, or a database, that lives elsewhere."""
    project, database = request.param
    configured = connections["default"].settings_dict
    before = configured["TIME_ZONE"]
    with override_settings(**project):
        configured["TIME_ZONE"] = database
        forget_zone()
        yield
    configured["TIME_ZONE"] = before
    forget_zone()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "zone" in metafunc.fixturenames:
        cases = [pytest.param(tuple(case.values), id=case.id) for case in ZONES]
        metafunc.parametrize("zone", cases, indirect=True)


def test_a_moment_comes_back_aware_and_exact(zone: None) -> None:
    job = JobFactory(scheduled_at=MOMENT)

    found = Job.objects.get(id=job.id)

    assert found.scheduled_at == MOMENT
    assert found.scheduled_at.tzinfo is UTC
    assert found.scheduled_at.microsecond == 123456
    assert found.completed_at is None


def test_moments_are_compared_as_instants(zone: None) -> None:
    first = JobFactory(scheduled_at=FIRST_PASS)
    second = JobFactory(scheduled_at=SECOND_PASS)
    berlin = SECOND_PASS.astimezone(ZoneInfo("Europe/Berlin"))

    assert Job.objects.get(scheduled_at=FIRST_PASS).id == first.id
    assert Job.objects.get(scheduled_at=berlin).id == second.id
    assert Job.objects.get(scheduled_at__lt=berlin).id == first.id
    assert Job.objects.get(scheduled_at__in=[berlin]).id == second.id
    assert Job.objects.get(scheduled_at__range=(berlin, berlin)).id == second.id
    assert [job.id for job in Job.objects.order_by("scheduled_at")] == [first.id, second.id]


def test_the_verbs_and_the_models_mean_the_same_moment(zone: None) -> None:
    job = JobFactory(scheduled_at=MOMENT)
    database = open_database(Scope(now=MOMENT))

    ((raw, now),) = database.fetch(
        f"SELECT scheduled_at, {{now}} FROM flexiq_jobs WHERE scheduled_at = {database.now}"
    )
    Job.objects.filter(id=job.id).update(started_at=database.read(raw))

    assert database.read(raw) == MOMENT
    assert database.read(now) == MOMENT
    assert Job.objects.get(id=job.id).started_at == MOMENT


def test_the_clock_of_the_database_is_the_true_one(zone: None) -> None:
    there = inspect.read_clock(Scope())

    assert there.tzinfo is UTC
    assert abs(there - datetime.now(UTC)) < timedelta(minutes=5)


def test_aggregates_and_expressions_stay_instants(zone: None) -> None:
    JobFactory(scheduled_at=FIRST_PASS, started_at=None)
    JobFactory(scheduled_at=SECOND_PASS)

    ends = Job.objects.aggregate(first=Min("scheduled_at"), last=Max("scheduled_at"))
    chosen = Job.objects.annotate(moment=Coalesce("started_at", "scheduled_at"))

    assert ends == {"first": FIRST_PASS, "last": SECOND_PASS}
    assert set(chosen.values_list("moment", flat=True)) == {FIRST_PASS, SECOND_PASS}


@pytest.mark.parametrize(
    "value",
    [
        MOMENT,
        MOMENT.astimezone(ZoneInfo("Asia/Kolkata")),
        MOMENT.astimezone(timezone(timedelta(hours=-9, minutes=-30))),
        MOMENT.replace(tzinfo=None),
        "2026-07-01T22:30:15.123456+00:00",
        "2026-07-02 04:00:15.123456+05:30",
    ],
)
def test_every_spelling_of_a_moment_becomes_utc(value: Any) -> None:
    moment = UtcDateTimeField().to_python(value)

    assert moment == MOMENT
    assert moment is not None
    assert moment.tzinfo is UTC


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (MOMENT, "2026-07-01 22:30:15.123456"),
        (datetime(2026, 7, 1, tzinfo=UTC), "2026-07-01 00:00:00.000000"),
        (datetime(2026, 7, 1, tzinfo=ZoneInfo("Asia/Tokyo")), "2026-06-30 15:00:00.000000"),
    ],
)
def test_the_stored_text_sorts_as_the_moments_do(moment: datetime, text: str) -> None:
    assert to_naive_text(moment) == text


def test_the_settings_of_the_project_are_back() -> None:
    assert django_settings.TIME_ZONE == "UTC"
