"""What an attempt notes down is kept only while it owns its job."""

from uuid import UUID

import pytest
from django.db import transaction

from flexiq_django.core.records import ClaimedJob
from flexiq_django.models import TaskLog
from flexiq_django.store import journal, lease, operate, settle
from flexiq_django.store.ids import new_id
from flexiq_django.store.scope import Scope
from tests.factories import at, later
from tests.store.acting import claim_one, running, settlement, stored

pytestmark = pytest.mark.django_db


def log(job: ClaimedJob, message: str = "a line", scope: Scope | None = None) -> bool:
    return journal.append_log(
        scope or at(), job.id, job.token, task_name=job.task_name, level="info",
        message=message, extra=None,
    )  # fmt: skip


def progress(job: ClaimedJob, value: int = 40, scope: Scope | None = None) -> bool:
    return journal.set_progress(scope or at(), job.id, job.token, value)


def test_the_owner_notes_its_progress() -> None:
    job = running()

    assert progress(job, 40, at(5))
    assert (stored(job.id).progress, stored(job.id).updated_at) == (40, later(5))
    assert progress(job, 10)
    assert stored(job.id).progress == 10


def test_the_owner_writes_lines_in_order() -> None:
    job = running()

    assert journal.append_log(
        at(5), job.id, job.token, task_name="t", level="result", message="ü\n'%s'", extra='{"a":1}'
    )
    assert log(job, "second")

    first, second = TaskLog.objects.order_by("id")
    assert (first.job_id, first.namespace, first.task_name) == (job.id, "default", "t")
    assert (first.level, first.message, first.extra) == ("result", "ü\n'%s'", '{"a":1}')
    assert first.logged_at == later(5)
    assert (second.message, second.extra) == ("second", None)


def test_a_wrong_token_writes_nothing() -> None:
    job = running()
    stale = job._replace(token=job.token ^ 1)

    assert not progress(stale)
    assert not log(stale)
    assert stored(job.id).progress is None
    assert TaskLog.objects.count() == 0


def test_a_new_owner_silences_the_old_one() -> None:
    job = running()
    lease.release(at(), [job])
    again = claim_one()

    assert not progress(job)
    assert not log(job)
    assert progress(again)
    assert log(again)


@pytest.mark.parametrize("status", ["pending", "dead", "cancelled"])
def test_an_attempt_that_has_failed_writes_nothing_more(status: str) -> None:
    job = running()
    settle.settle(at(), [settlement(job, status)])

    assert not progress(job)
    assert not log(job)


def test_what_a_completed_attempt_noted_may_be_written_after_it() -> None:
    job = running()
    settle.settle(at(), [settlement(job)])

    assert progress(job, 100)
    assert log(job)
    assert stored(job.id).status == "complete"


def test_notes_stay_in_the_namespace() -> None:
    job = running()

    assert not progress(job, scope=at(namespace="other"))
    assert not log(job, scope=at(namespace="other"))


def seen(*jobs: ClaimedJob) -> dict[UUID, bool]:
    return journal.look(at(), [(job.id, job.token) for job in jobs])


def test_a_look_tells_who_is_asked_to_stop() -> None:
    calm, asked, lost = running(), running(), running()
    operate.request_cancel(at(), asked.id)
    settle.settle(at(), [settlement(lost, "pending", attempt_error="e")])
    unknown = calm._replace(id=new_id())

    assert seen(calm, asked, lost, unknown) == {calm.id: False, asked.id: True}
    assert seen(calm._replace(token=1)) == {}
    assert seen() == {}


@pytest.mark.django_db(transaction=True)
def test_a_look_inside_a_transaction_may_be_out_of_date() -> None:
    assert journal.can_look(at())
    with transaction.atomic():
        assert not journal.can_look(at())
