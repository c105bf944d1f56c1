"""The settler as the journal of the attempts: notes in order, before results, and fenced."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DataError, InterfaceError, connection

from flexiq_django.models import TaskLog
from flexiq_django.store import journal, operate
from tests.factories import at
from tests.store.acting import running, stored
from tests.worker.desk import Desk, claimed, done, failed
from tests.worker.running import make_attempt

pytestmark = pytest.mark.django_db


def test_notes_are_written_before_the_result(desk: Desk) -> None:
    job = running()
    desk.notebook.progress(job, 10)
    desk.notebook.log(job, "info", "first", None)
    desk.notebook.log(job, "result", "", '{"a":1}')
    desk.notebook.progress(job, 90)
    desk.add(failed(job, retryable=False))

    desk.write()

    row = stored(job.id)
    assert (row.status, row.progress) == ("dead", 90)
    lines = TaskLog.objects.order_by("id").values_list("level", "message", "extra")
    assert list(lines) == [("info", "first", None), ("result", "", '{"a":1}')]


def test_only_the_latest_progress_is_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def note(_scope: Any, _id: Any, _token: Any, value: int) -> bool:
        written.append(value)
        return True

    job, other = claimed(2)
    monkeypatch.setattr(journal, "set_progress", note)
    for value in range(50):
        desk.notebook.progress(job, value)
    desk.notebook.progress(other, 7)

    desk.write()

    assert written == [49, 7]


def test_late_notes_are_dropped_and_said_once(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    job = running()._replace(token=1)
    desk.notebook.progress(job, 5)
    for _ in range(3):
        desk.notebook.log(job, "info", "line", None)

    desk.write()

    assert caplog.text.count("dropped: the attempt no longer owns the job") == 1
    assert TaskLog.objects.count() == 0


def test_a_note_that_cannot_be_stored_keeps_no_result(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> bool:
        raise DataError("too large")

    monkeypatch.setattr(journal, "append_log", refuse)
    job = running()
    desk.notebook.log(job, "info", "x", None)
    desk.notebook.progress(job, 5)
    desk.add(done(job))

    desk.write()

    assert (stored(job.id).status, stored(job.id).progress) == ("complete", 5)
    assert "cannot be stored" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("runs_in", ["a function", "a coroutine"])
def test_a_look_brings_the_flags_up_to_date(desk: Desk, runs_in: str) -> None:
    async def look() -> None:
        for attempt in attempts:
            desk.notebook.look(attempt)

    calm, asked, lost = running(), running(), running()._replace(token=1)
    operate.request_cancel(at(), asked.id)
    attempts = [make_attempt(job) for job in (calm, asked, lost)]

    if runs_in == "a coroutine":
        async_to_sync(look)()
    else:
        for attempt in attempts:
            desk.notebook.look(attempt)

    assert [each.is_cancel_requested for each in attempts] == [False, True, False]
    assert [each.is_over for each in attempts] == [False, False, True]


@pytest.mark.django_db(transaction=True)
def test_a_look_that_the_driver_refuses_is_no_error_of_the_task(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_statement: Any) -> None:
        raise InterfaceError("connection already closed")

    job = running()
    attempt = make_attempt(job)

    with connection.execute_wrapper(refuse):
        desk.notebook.look(attempt)

    assert f"could not look whether job {job.id} is cancelled" in caplog.text
    assert not attempt.is_over
