"""What an enqueue asks reads by index: how deep a queue is, and who holds the lines of sessions."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flexiq_django.exceptions import QueueFull
from flexiq_django.models import ArchivedJob, DeadLetter, Job
from flexiq_django.store import admission, sessions
from flexiq_django.store.vendors import open_database
from tests.factories import NewJobFactory
from tests.store import crowd
from tests.store.crowd import NAMESPACES, SCOPE, TRAPS, WANTED
from tests.store.plans import Case, assert_reads_by_index

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def stored_crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    yield from crowd.stored(django_db_blocker, _store_crowd, Job, ArchivedJob, DeadLetter)


def _store_crowd() -> None:
    for namespace, share in NAMESPACES:
        crowd.store_crowd(namespace, share, datetime.now(UTC))


def count_one_queue() -> None:
    """One more may go where few are pending, whatever waits in other queues."""
    _admit("third", {"third": WANTED + 1})
    with pytest.raises(QueueFull):
        _admit("third", {"third": WANTED})


def count_a_full_queue() -> None:
    """Counting stops at the limit."""
    with pytest.raises(QueueFull):
        _admit("mail", {"mail": 100})


def count_a_namespace() -> None:
    """Jobs in every queue, of one namespace."""
    with pytest.raises(QueueFull):
        _admit("third", {"*": TRAPS + 100})


def _admit(queue: str, depths: dict[str, int]) -> None:
    with admission.admitted(open_database(SCOPE), [NewJobFactory(queue=queue)], depths):
        pass


def look_at_many_lines() -> None:
    """Forty lines that are held, and twenty in which nobody waits."""
    names = [*crowd.names(40), *(f"nobody {number}" for number in range(20))]
    assert sessions.look(SCOPE, names) == 0


def give_many_lines() -> None:
    """The holders of many lines are gone: the first in each goes."""
    Job.objects.filter(namespace="default", session_slot__in=crowd.names(50)).delete()
    assert sessions.look(SCOPE, crowd.names(50)) == 50


LINES = ("flexiq_jobs_line", "flexiq_jobs_session_slot")
CASES = [
    # MariaDB stores the rows before it counts them, and so reads each twice. The first verb steps
    # over the jobs of other queues that are due later.
    Case(verb=count_one_queue, indexes=("flexiq_jobs_claim", "flexiq_jobs_idle"), most=10_000),
    Case(verb=count_a_full_queue, indexes=("flexiq_jobs_claim",), most=300),
    Case(verb=count_a_namespace, indexes=("flexiq_jobs_claim",), most=5_000),
    Case(verb=look_at_many_lines, indexes=LINES, most=400),
    Case(verb=give_many_lines, indexes=LINES, most=1_000),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.verb.__name__)
def test_reads_by_its_index(vendor: str, case: Case) -> None:
    assert_reads_by_index(vendor, case)
