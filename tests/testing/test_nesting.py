"""Jobs that are enqueued, or run, from inside the body of another."""

import pytest

from flexiq_django.testing import immediate, run_pending
from tests.testapp.models import Mark
from tests.testing.tasks import lab, note, pass_on, ping, run_another, yearly

pytestmark = pytest.mark.django_db


def keys() -> list[str]:
    return list(Mark.objects.order_by("pk").values_list("key", flat=True))


def test_a_body_keeps_its_job_after_it_has_run_others() -> None:
    inner, outer = note.apply_async(["inner"], queue="b"), run_another.apply_async(priority=1)

    run_pending(queue=lab)

    assert inner.status == "complete"
    assert outer.result(timeout=1) == [outer.id, outer.id]


def test_a_body_that_run_pending_runs_enqueues_for_afterwards() -> None:
    job = pass_on.delay("after")
    with immediate():
        assert [each.task_name for each in run_pending(queue=lab)] == [pass_on.name, note.name]
    assert keys() == ["before the end", "after"]
    assert job.result(timeout=1) == "pending"


def test_immediate_runs_the_jobs_of_every_queue_that_is_met() -> None:
    with immediate():
        ping.delay(3)
    assert keys() == ["ping 3", "pong 2", "ping 1", "pong 0"]
    assert [job.status for job in (*lab.list_jobs(), *yearly.list_jobs())] == ["complete"] * 4


def test_a_run_in_immediate_mode_goes_on_with_other_queues_too() -> None:
    ping.delay(2)
    with immediate():
        assert len(run_pending(queue=lab)) == 1
        assert keys() == ["ping 2", "pong 1", "ping 0"]


def test_a_limit_holds_in_immediate_mode() -> None:
    pass_on.delay("after")
    with immediate():
        assert len(run_pending(queue=lab, limit=1)) == 1
        assert keys() == ["before the end"]
