"""What the pages do when the database, or the contract floor, refuses."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connections, transaction
from django.test import Client
from django.urls import reverse

from flexiq_django import Queue, queue
from flexiq_django.admin.pages import JobAdmin
from flexiq_django.models import Job, Setting
from flexiq_django.store import link
from tests.admin import rows
from tests.admin.test_verbs import (
    ABOVE,
    ON_ROWS,
    Case,
    chosen,
    do_url,
    list_url,
    log,
    page_url,
    row_for,
    said,
)

pytestmark = pytest.mark.django_db

CANCEL = Case("job", "cancel", "cancel_job", True)


@pytest.fixture
def third_fails(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The third job that is cancelled meets an error of the database; the ids that were asked."""
    asked: list[str] = []
    cancel = Queue.cancel_job

    def cancel_or_fail(self: Queue, job_id: str) -> bool:
        asked.append(job_id)
        if len(asked) == 3:
            fail()
        return cancel(self, job_id)

    monkeypatch.setattr(Queue, "cancel_job", cancel_or_fail)
    return asked


def fail(*_: Any, **__: Any) -> Any:
    """An error that ends a transaction where nobody keeps a savepoint."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT no_such_column FROM flexiq_jobs")


def cancel_five(client: Client) -> tuple[list[Job], Any]:
    jobs = [rows.make_job() for _ in range(5)]
    return jobs, client.post(list_url("job"), chosen("cancel", *jobs, confirmed="yes"))


def in_order(asked: list[str]) -> list[str]:
    return [Job.objects.get(pk=key).status for key in asked]


@pytest.mark.parametrize("own_transaction", [True, False])
def test_an_error_at_one_row_hides_nothing_of_the_others(
    superuser: Client, third_fails: list[str], caplog: pytest.LogCaptureFixture,
    own_transaction: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    settings_dict = connections[DEFAULT_DB_ALIAS].settings_dict
    monkeypatch.setitem(settings_dict, "ATOMIC_REQUESTS", own_transaction)

    _, answer = cancel_five(superuser)

    assert answer.status_code == 302
    assert in_order(third_fails) == ["cancelled"] * 2 + ["pending"] + ["cancelled"] * 2
    done, failed = said(answer)
    assert done == "4 jobs were cancelled."
    assert failed.startswith("1 failed, perhaps after a part was done: ")
    assert "no_such_column" in failed
    assert "\n" not in failed
    entries = LogEntry.objects.order_by("id").values_list("object_id", "change_message")
    assert [key for key, _ in entries] == third_fails
    assert [text.startswith("Cancel. 1 failed") for _, text in entries] == [
        False, False, True, False, False,
    ]  # fmt: skip
    assert {each.user.username for each in LogEntry.objects.all()} == {"user-0"}
    (record,) = [each for each in caplog.records if each.name == "flexiq_django.admin.performing"]
    assert record.exc_info
    assert "cancel by 'user-0'" in record.getMessage()


def test_after_an_outage_the_rest_is_not_tried(
    superuser: Client, third_fails: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "trouble", lambda *_: "outage")

    _, answer = cancel_five(superuser)

    assert in_order(third_fails) == ["cancelled", "cancelled", "pending"]
    done, failed, left = said(answer)
    assert done == "2 jobs were cancelled."
    assert failed.startswith("1 failed")
    assert left == "2 were not tried after that."
    assert [message for _, message in log()][:2] == ["Cancel", "Cancel"]


@pytest.mark.row_locks  # a server, which can end a connection
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_lost_on_the_way(
    superuser: Client, monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    asked: list[str] = []
    cancel = Queue.cancel_job
    end = {
        "postgresql": "SELECT pg_terminate_backend(pg_backend_pid())",
        "mysql": "KILL CONNECTION_ID()",
    }

    def cancel_or_end(self: Queue, job_id: str) -> bool:
        asked.append(job_id)
        if len(asked) == 3:
            with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
                cursor.execute(end[vendor])
                cursor.execute("SELECT 1")
        return cancel(self, job_id)

    monkeypatch.setattr(Queue, "cancel_job", cancel_or_end)
    _, answer = cancel_five(superuser)

    assert answer.status_code == 302
    assert [text.split(" ", 1)[0] for text in said(answer)] == ["2", "1", "2"]
    connections[DEFAULT_DB_ALIAS].close()
    assert in_order(asked) == ["cancelled", "cancelled", "pending"]
    logged = LogEntry.objects.order_by("id").values_list("object_id", "change_message")
    assert list(logged) == [(asked[0], "Cancel"), (asked[1], "Cancel")]


def test_conflicts_end_it_where_all_writers_wait_for_each_other(
    superuser: Client, third_fails: list[str], monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    monkeypatch.setattr(link, "trouble", lambda *_: "conflict")

    cancel_five(superuser)

    assert len(third_fails) == (3 if vendor == "sqlite" else 5)


def test_a_transaction_that_is_lost_is_no_success(
    superuser: Client, third_fails: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_sid: str) -> None:
        raise OperationalError("SAVEPOINT does not exist")

    monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "savepoint_rollback", refuse)
    with pytest.raises(DatabaseError, match="no_such_column"):
        cancel_five(superuser)

    assert len(third_fails) == 3
    transaction.set_rollback(False)


def test_what_was_done_and_cannot_be_logged_is_in_the_log_of_the_process(
    superuser: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = rows.make_job()
    monkeypatch.setattr(LogEntry.objects, "log_actions", fail)

    with pytest.raises(DatabaseError, match="no_such_column"), transaction.atomic():
        superuser.post(do_url(CANCEL, job), {"confirmed": "yes"})

    assert "'user-0' did it, Django's log lacks it: Cancel" in caplog.text
    assert str(job.pk) in caplog.text


def test_an_outage_on_the_page_of_a_row_leads_to_the_list(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = rows.make_job()
    get_object = JobAdmin.get_object
    looks: list[str] = []

    def get_once(*arguments: Any, **named: Any) -> Any:
        looks.append("look")
        if len(looks) > 1:
            raise OperationalError("server closed the connection")
        return get_object(*arguments, **named)

    monkeypatch.setattr(JobAdmin, "get_object", get_once)
    monkeypatch.setattr(Queue, "cancel_job", fail)
    answer = superuser.post(do_url(CANCEL, job), {"confirmed": "yes"})

    assert (answer.status_code, answer.url) == (302, list_url("job"))
    assert said(answer)[0].startswith("1 failed")


def test_a_verb_without_rows_may_have_done_a_part(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queue, "purge_dead", fail)
    url = do_url(Case("deadletter", "purge", "", True))

    answer = superuser.post(url, {"confirmed": "yes", "days": "0"})

    (text,) = said(answer)
    assert text.startswith("It failed, perhaps after a part was done: ")
    ((_, logged),) = log()
    assert logged.startswith("Purge old dead letters (days: 0.0). It failed")


def test_a_question_that_cannot_be_counted(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = rows.open_queue()
    monkeypatch.setattr(Queue, "stats_by_queue", fail)
    case = Case("queuestate", "purge", "", True)

    above = superuser.post(do_url(case), {"confirmed": "no", "name": "mail"})
    page = superuser.post(do_url(case, state))
    ticked = superuser.post(list_url("queuestate"), chosen("purge", state))

    assert [each.status_code for each in (above, page, ticked)] == [302, 302, 302]
    assert page.url == page_url("queuestate", state)
    assert all(each.startswith("Nothing was done: ") for each in said(ticked))
    assert len(said(ticked)) == 3


# --- the contract floor ---------------------------------------------------------------------------

ENTERED = {
    "value": "", "expected": "dark", "name": "mail", "rate_limit": "", "max_concurrent": "",
    "days": "1", "key": "k",
}  # fmt: skip

StoreFloor = Callable[[str], Setting]


@pytest.fixture
def store_floor(monkeypatch: pytest.MonkeyPatch) -> StoreFloor:
    """Set the floor, for a process that has not looked at it."""

    def act(text: str) -> Setting:
        monkeypatch.setattr(queue, "_open", set())
        return Setting.objects.create(key="contract:min_sdk", value=text, updated_at=rows.NOW)

    return act


@pytest.mark.parametrize("answered", ["no", "yes"])
@pytest.mark.parametrize(
    ("case", "on_row"),
    [*((case, True) for case in ON_ROWS), *((case, False) for case in ABOVE)],
    ids=lambda each: f"{each.model}-{each.verb}" if isinstance(each, Case) else str(each),
)
def test_below_the_floor_a_verb_says_what_is_wrong(
    superuser: Client, store_floor: StoreFloor, case: Case, on_row: bool, answered: str
) -> None:
    row = row_for(case) if on_row else None
    store_floor("garbage")

    answer = superuser.post(do_url(case, row), {"confirmed": answered, **ENTERED})

    assert answer.status_code in (200, 302)
    if answered == "yes":
        assert "'garbage', which is no contract level" in said(answer)[-1]
    assert log() == []


@pytest.mark.parametrize("text", ["garbage", "99"])
def test_the_floor_is_shown_and_can_be_taken_away(
    superuser: Client, store_floor: StoreFloor, text: str
) -> None:
    other = Setting.objects.create(key="theme", value="dark", updated_at=rows.NOW)
    floor = store_floor(text)
    page = reverse("admin:flexiq_django_setting_change", args=["contract_3Amin_5Fsdk"])

    assert superuser.get(list_url("setting")).status_code == 200
    assert text in superuser.get(page).text
    refused = superuser.post(list_url("setting"), chosen("delete", other, confirmed="yes"))
    assert "contract level" in said(refused)[-1]
    answer = superuser.post(list_url("setting"), chosen("delete", floor, confirmed="yes"))

    assert said(answer)[-1] == "1 setting was deleted."
    assert queue.list_settings() == {"theme": "dark"}
    assert [message for _, message in log()] == ["Delete"]
