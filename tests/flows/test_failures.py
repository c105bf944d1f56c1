"""How a body can fail, and what becomes of its job."""

import pytest

from flexiq_django import Permanent, queue
from flexiq_django.core.errors import parse_error
from flexiq_django.exceptions import InvalidArgumentsError, MaxRetriesExceededError
from flexiq_django.models import DeadLetter
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, errors_of, job_row, values
from tests.flows.old_code import enqueue_unfit

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


def test_retries_wait_as_long_as_they_should(workers: Workers) -> None:
    workers.start()
    job = tasks.fail_until.delay(3)

    assert job.result(20) == "attempt 3"

    first, second, third = (float(value) for value in values(job.id))
    assert 0.4 <= second - first < 3
    assert 0.8 <= third - second < 3
    assert len(errors_of(job.id)) == 2
    row = job_row(job.id)
    assert (row.status, row.retry_count, row.attempt, row.error) == ("complete", 2, 3, None)


def test_the_last_failure_is_the_death(workers: Workers) -> None:
    workers.start()
    job = tasks.fail_until.apply_async((99,), max_retries=1)

    with pytest.raises(MaxRetriesExceededError, match="attempt 2 fails"):
        job.result(20)

    row = job_row(job.id)
    assert (row.status, row.retry_count, row.attempt) == ("dead", 1, 2)
    assert len(errors_of(job.id)) == 2
    (letter,) = DeadLetter.objects.all()
    assert (letter.original_job_id, letter.error) == (row.id, row.error)


def test_rate_limited_waits_for_what_was_asked(workers: Workers) -> None:
    workers.start()
    job = tasks.ask_to_wait.delay(0.5)

    assert job.result(20) == "attempt 2"

    first, second = (float(value) for value in values(job.id))
    assert 0.5 <= second - first < 5  # not the minute of its backoff


def test_permanent_is_dead_at_once(workers: Workers) -> None:
    job = tasks.fail_for_good.delay()
    workers.burst()

    row = job_row(job.id)
    assert (row.status, row.attempt) == ("dead", 1)
    assert parse_error(row.error).errtype.endswith(Permanent.__name__)


def test_an_unknown_task_is_dead_or_tried_again_and_says_so(workers: Workers) -> None:
    job = queue.enqueue("app.tasks.renamed", (1,), max_retries=0)
    good = tasks.give.delay(1)
    worker = workers.burst()

    row = job_row(job.id)
    assert row.status == "dead"
    assert "unknown task 'app.tasks.renamed'" in str(row.error)
    assert good.result() == 1
    assert_quiet(worker)


@pytest.mark.parametrize("name", ["add", "add_later"])
def test_a_call_that_does_not_fit_is_dead_at_once(workers: Workers, name: str) -> None:
    task = getattr(tasks, name)
    with pytest.raises(InvalidArgumentsError):
        task.delay(1)
    bad = enqueue_unfit(task.name, 1)
    good = task.delay(1, 2)
    workers.burst()

    assert good.result() == 3
    row = job_row(bad.id)
    assert (row.status, row.attempt) == ("dead", 1), row.error
    assert "missing 1 required positional argument" in str(row.error)


def test_a_type_error_inside_the_body_is_retried(workers: Workers) -> None:
    job = tasks.raise_type_error.delay()
    workers.start()

    with pytest.raises(MaxRetriesExceededError):
        job.result(20)
    assert job_row(job.id).attempt == 3


def test_every_exception_is_recorded_and_the_worker_lives(workers: Workers) -> None:
    jobs = {name: tasks.raise_one.delay(name) for name in tasks.EXCEPTIONS}
    last = tasks.give.apply_async(("still here",), priority=-1)

    worker = workers.burst("--concurrency", "2")

    assert last.result() == "still here"
    for name, job in jobs.items():
        row = job_row(job.id)
        assert row.status == "dead", name
        assert row.error, name
        assert len(row.error) <= 70_000, name
        assert errors_of(job.id) == [row.error], name
        error = parse_error(row.error)
        assert error.errtype, name
        assert queue.get_job(job.id).to_dict()["error"].startswith(error.errtype)
        with pytest.raises(MaxRetriesExceededError):
            job.result()
    found = {name: parse_error(job_row(job.id).error) for name, job in jobs.items()}
    assert found["SystemExit"].errtype == "SystemExit"
    assert found["GeneratorExit"].errtype == "GeneratorExit"
    assert found["emoji"].message == "\U0001f600"
    assert DeadLetter.objects.count() == len(jobs)
    assert_quiet(worker)


def test_results_are_kept_as_they_are_or_refused(workers: Workers) -> None:
    jobs = {name: tasks.return_one.delay(name) for name in tasks.RESULTS}
    last = tasks.give.apply_async(("still here",), priority=-1)

    worker = workers.burst("--concurrency", "2")

    assert last.result() == "still here"
    assert jobs["tuple"].result() == (1, 2)
    assert jobs["emoji"].result() == "\U0001f600"
    ends = {name: job_row(job.id).status for name, job in jobs.items()}
    for name in ("NaN", "Infinity", "object", "loop", "huge"):
        assert ends[name] == "dead", name
        with pytest.raises(MaxRetriesExceededError):
            jobs[name].result()
    for name in ("NUL", "surrogate", "int keys"):  # back as the same, or dead with a reason
        if ends[name] == "complete":
            assert jobs[name].result() == tasks.RESULTS[name]()
        else:
            assert (ends[name], bool(job_row(jobs[name].id).error)) == ("dead", True)
    assert "30000002 bytes" in str(job_row(jobs["huge"].id).error)
    assert_quiet(worker)


def test_huge_log_lines_are_cut_or_refused_and_harm_nobody(workers: Workers) -> None:
    job = tasks.log_much.delay(20_000_000)
    other = tasks.give.delay(1)

    workers.burst()

    assert job.result() == "logged"
    assert other.result() == 1
