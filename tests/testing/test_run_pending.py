"""`run_pending`, `at` and `travel`, inside the transaction of a test."""

from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import TestCase
from django.utils import timezone

from flexiq_django import signals
from flexiq_django.exceptions import InvalidOptionError, MaxRetriesExceededError
from flexiq_django.testing import arun_pending, at, run_pending, travel
from tests.testapp.models import Mark
from tests.testing.tasks import (
    ask_a_person,
    be_cancelled,
    chain,
    check_in_a_coroutine,
    clash,
    crash,
    kind_of,
    lab,
    note,
    note_together,
    shout,
    succeed_at,
    write_and_fail,
    yearly,
)

pytestmark = pytest.mark.django_db


def keys() -> list[str]:
    return list(Mark.objects.order_by("pk").values_list("key", flat=True))


def test_what_is_due_runs_in_the_order_of_a_worker() -> None:
    late = note.apply_async(["late"], delay=3600)
    low = note.apply_async(["low"], priority=-1)
    high = note.apply_async(["high"], priority=9)

    assert run_pending(queue=lab) == [high, low]
    assert keys() == ["high", "low"]
    assert high.result(timeout=1) == "high"
    assert late.status == "pending"
    assert run_pending(queue=lab) == []


def test_jobs_of_a_session_run_one_after_the_other_whatever_waits_for_a_commit() -> None:
    jobs = [note.apply_async([name], session_id="ann") for name in ("first", "second", "third")]

    assert run_pending(queue=lab) == jobs
    assert keys() == ["first", "second", "third"]


def test_a_paused_job_holds_its_session_until_it_is_continued() -> None:
    asking = ask_a_person.apply_async(session_id="ann")
    behind = note.apply_async(["behind"], session_id="ann")

    assert run_pending(queue=lab) == [asking]
    assert (asking.status, behind.status) == ("paused", "pending")

    assert lab.continue_job(asking.id)
    assert run_pending(queue=lab) == [asking, behind]
    assert asking.result(timeout=1) == "allowed"


def test_a_coroutine_may_ask_whether_it_was_cancelled() -> None:
    job = check_in_a_coroutine.delay()

    run_pending(queue=lab)

    assert job.result(timeout=1) == "went on"


class InsideATestCase(TestCase):
    """The connection and the transaction of the test stay as they are."""

    def test_jobs_run_in_the_transaction_of_the_test(self) -> None:
        before = connection.connection
        job, together = note.delay("plain"), note_together.delay("together")
        with transaction.atomic():
            run_pending(queue=lab)
        assert connection.connection is before
        assert connection.in_atomic_block
        assert keys() == ["plain", "together"]
        assert [job.status, together.status] == ["complete", "complete"]
        assert [line["message"] for line in lab.task_logs(together.id)] == ["inside"]

    def test_nothing_of_it_is_left(self) -> None:
        assert keys() == []
        assert lab.list_jobs() == []


def test_jobs_that_jobs_enqueue_run_too_up_to_a_limit() -> None:
    chain.delay(5)
    assert len(run_pending(queue=lab, limit=2)) == 2
    assert keys() == ["depth 5", "depth 4"]
    assert len(run_pending(queue=lab)) == 4


def test_a_failure_is_settled_as_a_worker_does() -> None:
    job = crash.delay()
    assert run_pending(queue=lab) == [job]
    with pytest.raises(MaxRetriesExceededError, match="LookupError: nothing there"):
        job.result(timeout=1)
    assert [each["original_job_id"] for each in lab.dead_letters()] == [job.id]


def test_a_body_that_breaks_the_transaction_takes_only_its_own_writes_along() -> None:
    note("before")
    broken, kept, after = clash.delay("a"), write_and_fail.delay("b"), note.delay("after")
    run_pending(queue=lab)
    assert [broken.status, kept.status, after.status] == ["dead", "dead", "complete"]
    assert "IntegrityError" in broken.error
    assert keys() == ["before", "b", "after"]


def test_a_running_job_that_is_asked_to_stop_is_cancelled() -> None:
    job = be_cancelled.delay()
    run_pending(queue=lab)
    assert job.status == "cancelled"


def test_retries_wait_unless_they_are_asked_for() -> None:
    job = succeed_at.delay(3)
    assert run_pending(queue=lab) == [job]
    assert (job.status, job.retry_count) == ("pending", 1)

    ran = run_pending(queue=lab, until=119)
    assert ran == [job]
    job.refresh()
    assert (job.status, job.retry_count) == ("pending", 2)

    with travel(200):
        assert run_pending(queue=lab) == [job]
    assert job.result(timeout=1) == 3
    assert job.progress == 10
    assert [line["message"] for line in lab.task_logs(job.id)] == [
        "attempt 1", "attempt 2", "attempt 3",
    ]  # fmt: skip

    other = succeed_at.delay(4)
    assert run_pending(queue=lab, retries=True) == [other] * 4
    assert other.result(timeout=1) == 4


def test_coroutines_run() -> None:
    job = shout.delay("a")
    run_pending(queue=lab)
    assert job.result(timeout=1) == "A"


@pytest.mark.django_db(transaction=True)
def test_coroutines_may_run_what_is_pending() -> None:
    async def look() -> str:
        job = await shout.adelay("b")
        assert await arun_pending(queue=lab) == [job]
        return str(await job.aresult(timeout=1))

    assert async_to_sync(look)() == "B"


def test_arguments_and_results_are_stored_for_real() -> None:
    moment = datetime(2026, 3, 4, tzinfo=UTC)
    job = kind_of.delay((moment, {1}))
    run_pending(queue=lab)
    assert job.result(timeout=1) == ("tuple", (moment, {1}))


def test_the_signals_of_a_worker_are_sent() -> None:
    told: list[str] = []

    def on_settled(status: str, namespace: str, **_: object) -> None:
        told.append(f"{status} in {namespace}")

    signals.job_settled.connect(on_settled)
    try:
        note.delay("a")
        run_pending(queue=lab)
    finally:
        signals.job_settled.disconnect(on_settled)
    assert told == ["complete in lab"]


def test_a_paused_queue_rests_and_a_cancelled_job_stays_so() -> None:
    job, other = note.delay("paused"), note.delay("cancelled")
    lab.cancel_job(other.id)
    lab.pause("default")
    assert run_pending(queue=lab) == []
    lab.resume("default")
    assert run_pending(queue=lab) == [job]


def test_time_is_lived_through_in_order() -> None:
    start = timezone.now()
    jobs = [note.apply_async([str(delay)], delay=delay) for delay in (7200, 60, 86_400 * 3, 3600)]
    assert run_pending(queue=lab, until=86_400) == [jobs[1], jobs[3], jobs[0]]
    assert keys() == ["60", "3600", "7200"]
    late = (jobs[0].started_at / 1000) - start.timestamp()
    assert 7199 < late < 7300

    run_pending(queue=lab, until=start + timedelta(days=4))
    assert keys()[-1] == str(86_400 * 3)


def test_what_expires_on_the_way_is_cancelled() -> None:
    job = note.apply_async(["too late"], delay=100, expires=50)
    assert run_pending(queue=lab, until=1000) == []
    assert job.status == "cancelled"


def test_schedules_fire_as_they_would() -> None:
    tomorrow = timezone.now().astimezone(UTC) + timedelta(days=1)
    with at(tomorrow.replace(hour=8, minute=0, second=0, microsecond=0)):
        run_pending(queue=yearly)  # what is due until then
        Mark.objects.all().delete()
        ran = run_pending(queue=yearly, until=6 * 3600)
    assert [job.task_name for job in ran] == [
        *["tests.half"] * 4, "tests.noon", *["tests.half"] * 2,
    ]  # fmt: skip
    assert keys() == [*["half"] * 4, "noon", *["half"] * 2]
    assert [datetime.fromtimestamp(job.started_at / 1000, UTC).hour for job in ran] == [
        8, 9, 10, 11, 12, 12, 13,
    ]  # fmt: skip


def test_the_clock_is_the_queues_and_comes_back() -> None:
    moment = datetime(2040, 1, 1, tzinfo=UTC)
    with at(moment):
        job = note.delay("from the future")
        inner = note.apply_async(["later still"], delay=10)
        assert job.created_at == int(moment.timestamp() * 1000)
        assert inner.scheduled_at == int(moment.timestamp() * 1000) + 10_000
        with travel(9):
            assert run_pending(queue=lab) == [job]
        with travel(10):
            assert run_pending(queue=lab) == [inner]
    now = note.delay("now")
    assert now.created_at < int(moment.timestamp() * 1000)


@pytest.mark.parametrize(
    "options",
    [{"limit": 0}, {"limit": 1.5}, {"until": -1}, {"until": datetime(2030, 1, 1)}, {"until": "x"}],  # noqa: DTZ001
    ids=str,
)
def test_what_is_not_allowed_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError):
        run_pending(queue=lab, **options)  # type: ignore[arg-type]


def test_the_past_is_refused() -> None:
    with at(datetime(2040, 1, 1, tzinfo=UTC)), pytest.raises(InvalidOptionError, match="already"):
        run_pending(queue=lab, until=datetime(2039, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidOptionError), travel(-1):
        raise AssertionError("travelled back")
