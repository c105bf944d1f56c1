"""What cancels the pending jobs of a queue or task reads these, and not all that ever ended."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flexiq_django.models import Job
from flexiq_django.store import steer
from tests.store import crowd, plans
from tests.store.crowd import HOUR, NAMESPACES, SCOPE, TRAPS, WANTED

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def stored_crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    yield from crowd.stored(django_db_blocker, _store_crowd, Job)


def _store_crowd() -> None:
    now = datetime.now(UTC)
    for namespace, share in NAMESPACES:
        fields = crowd.job_fields(namespace, now)
        ended = {**fields, "status": "complete", "attempt": 1, "completed_at": now - HOUR}
        crowd.store(Job, 10 * TRAPS // share, ended)
        for queue in ("mail", "other"):
            pending = {**fields, "queue": queue, "task_name": f"app.{queue}"}
            for state in ({"ready_lane": queue}, {"promote_at": now + HOUR}, {}):
                crowd.store(Job, WANTED // share, {**pending, **state})
        crowd.store(Job, 10 * TRAPS // share, ended)


def purge_a_queue() -> None:
    """The pending jobs of a queue."""
    assert steer.cancel_pending(SCOPE, error="purged", queue="mail") == 3 * WANTED


def revoke_a_task() -> None:
    """The pending jobs of a task."""
    assert steer.cancel_pending(SCOPE, error="revoked", task_name="app.mail") == 3 * WANTED


@pytest.mark.parametrize("verb", [purge_a_queue, revoke_a_task], ids=lambda verb: verb.__name__)
def test_reads_what_is_pending(vendor: str, verb: Callable[[], None]) -> None:
    if vendor == "sqlite":
        pytest.skip("it puts no indexes together, and walks the key: once in all, page by page")
    statements = plans.record(verb)
    if vendor == "mysql":
        read = sum(statement.rows_read for statement in statements)
        assert read <= 60 * WANTED, "\n".join(
            f"{each.rows_read}: {each.sql}" for each in statements
        )
        return
    looks = [each for each in statements if "idle_status" in each.sql]
    assert looks
    for look in looks:
        plan = plans.explain(look, bitmaps=True)
        assert plan.indexes == {
            "flexiq_jobs_claim",
            "flexiq_jobs_promote",
            "flexiq_jobs_idle",
        }, plan.text
