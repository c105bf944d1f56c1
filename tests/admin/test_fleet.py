"""The pages of workers and queues say what looks wrong in the fleet."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from flexiq_django import Queue
from tests.admin import rows

WORKERS = "admin:flexiq_django_worker_changelist"
QUEUES = "admin:flexiq_django_queuestate_changelist"


@pytest.mark.django_db
def test_a_sound_fleet_shows_no_warning(superuser: Client) -> None:
    rows.make_job()
    rows.make_worker()
    for name in (WORKERS, QUEUES):
        assert 'class="warning"' not in superuser.get(reverse(name)).text


@pytest.mark.django_db
def test_differences_skews_and_unserved_lanes(superuser: Client) -> None:
    Queue().enqueue("some.task", queue="reports", deployment_id="<gpu>")
    worker = rows.make_worker(config='{"lock_grace_seconds": 60}')
    rows.make_worker(id="other", config='{"lock_grace_seconds": 2}', clock_skew_ms=-9_000)
    detail = reverse("admin:flexiq_django_worker_change", args=[worker.pk])

    # Django begins each message with a capital.
    for page in (superuser.get(reverse(WORKERS)).text, superuser.get(detail).text):
        assert "orkers differ in lock_grace_seconds: 60 on web-1-4711-a0b1c2; 2 on other" in page
        assert "he clock of worker other is -9.0 s off the database&#x27;s" in page
        assert "obs wait in queue reports for deployment &lt;gpu&gt;" in page
    queues = superuser.get(reverse(QUEUES)).text
    assert "obs wait in queue reports for deployment &lt;gpu&gt;" in queues
    assert "lock_grace_seconds" not in queues


@pytest.mark.django_db
def test_warnings_cost_no_query_per_worker(
    superuser: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows.make_worker()
    with django_assert_num_queries(1_000, exact=False) as first:
        superuser.get(reverse(WORKERS))
    for number in range(20):
        rows.make_worker(id=f"worker-{number}", version=f"{number}")

    with django_assert_num_queries(len(first), exact=True):
        superuser.get(reverse(WORKERS))
