"""What people do on the pages: who may, what is asked, what happens, what is said and logged."""

import re
from typing import Any, NamedTuple

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from flexiq_django.models import (
    DeadLetter,
    Job,
    PeriodicTask,
    QueueState,
    ReplayHistory,
    Setting,
    TaskState,
)
from tests.admin import rows
from tests.admin.conftest import SignIn

pytestmark = pytest.mark.django_db


class Case(NamedTuple):
    """A verb on a row of a model."""

    model: str
    verb: str
    permission: str
    asks: bool


ON_ROWS = [
    Case("job", "cancel", "cancel_job", True),
    Case("job", "continue", "continue_job", False),
    Case("job", "stop", "stop_job", False),
    Case("job", "requeue", "requeue_job", True),
    Case("job", "replay", "replay_job", False),
    Case("archivedjob", "replay", "replay_archivedjob", False),
    Case("deadletter", "retry", "retry_deadletter", False),
    Case("deadletter", "replay", "replay_deadletter", False),
    Case("deadletter", "delete", "delete_deadletter", True),
    Case("queuestate", "pause", "pause_queue", False),
    Case("queuestate", "resume", "resume_queue", False),
    Case("queuestate", "limit", "limit_queue", True),
    Case("queuestate", "purge", "purge_queue", True),
    Case("periodictask", "pause", "pause_schedule", False),
    Case("periodictask", "resume", "resume_schedule", False),
    Case("periodictask", "delete", "delete_schedule", True),
    Case("taskstate", "revoke", "revoke_task", True),
    Case("taskstate", "allow", "unrevoke_task", False),
    Case("setting", "edit", "change_setting", True),
    Case("setting", "delete", "delete_setting", True),
]
ABOVE = [
    Case("deadletter", "purge", "purge_deadletter", True),
    Case("queuestate", "pause", "pause_queue", True),
    Case("queuestate", "limit", "limit_queue", True),
    Case("queuestate", "purge", "purge_queue", True),
    Case("taskstate", "revoke", "revoke_task", True),
    Case("setting", "add", "add_setting", True),
]


def row_for(case: Case) -> Any:
    """A row that the verb suits."""
    if case.model == "job":
        return rows.make_job({"cancel": "pending", "continue": "paused"}.get(case.verb, "running"))
    if case.model == "archivedjob":
        return rows.make_archived()
    if case.model == "deadletter":
        return rows.make_dead_letter(rows.make_job("dead"))
    if case.model == "setting":
        return Setting.objects.create(key="theme", value="dark", updated_at=rows.NOW)
    if case.model == "periodictask":
        return rows.make_schedule(enabled=case.verb != "resume")
    if case.model == "taskstate":
        return rows.make_task(revoked_at=rows.NOW if case.verb == "allow" else None)
    return rows.pause_queue() if case.verb == "resume" else rows.open_queue()


def list_url(model: str) -> str:
    return reverse(f"admin:flexiq_django_{model}_changelist")


def page_url(model: str, row: Any) -> str:
    return reverse(f"admin:flexiq_django_{model}_change", args=[row.pk])


def do_url(case: Case, row: Any = None) -> str:
    name = f"admin:flexiq_django_{case.model}_do"
    return (
        reverse(name, args=[case.verb])
        if row is None
        else reverse(f"{name}_to", args=[row.pk, case.verb])
    )


def chosen(verb: str, *picked: Any, **data: Any) -> dict[str, Any]:
    """What the list sends when rows are ticked and a verb is chosen."""
    return {"action": verb, "_selected_action": [str(row.pk) for row in picked], **data}


def said(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def log() -> list[tuple[str, str]]:
    return list(LogEntry.objects.order_by("id").values_list("object_repr", "change_message"))


# --- who may --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ON_ROWS, ids=lambda case: f"{case.model}-{case.verb}")
def test_a_button_for_those_who_may_and_403_for_the_others(sign_in: SignIn, case: Case) -> None:
    row = row_for(case)
    before = type(row).objects.filter(pk=row.pk).values().get()
    button = f'action="{do_url(case, row)}"'
    allowed = sign_in(f"view_{case.model}", case.permission)
    refused = sign_in(f"view_{case.model}")

    assert button in allowed.get(page_url(case.model, row)).text
    assert f'<option value="{case.verb}">' in allowed.get(list_url(case.model)).text
    assert button not in refused.get(page_url(case.model, row)).text
    assert f'value="{case.verb}"' not in refused.get(list_url(case.model)).text
    for data in ({}, {"confirmed": "yes"}):
        assert refused.post(do_url(case, row), data).status_code == 403
        answer = refused.post(list_url(case.model), chosen(case.verb, row, **data))
        assert answer.status_code == 403
    assert refused.get(do_url(case, row)).status_code == 403
    assert type(row).objects.filter(pk=row.pk).values().get() == before
    assert log() == []


@pytest.mark.parametrize("case", ABOVE, ids=lambda case: f"{case.model}-{case.verb}")
def test_a_link_above_the_list_for_those_who_may(sign_in: SignIn, case: Case) -> None:
    allowed = sign_in(f"view_{case.model}", case.permission)
    refused = sign_in(f"view_{case.model}")

    assert f'href="{do_url(case)}"' in allowed.get(list_url(case.model)).text
    assert allowed.get(do_url(case)).status_code == 200
    assert do_url(case) not in refused.get(list_url(case.model)).text
    assert refused.get(do_url(case)).status_code == 403
    assert refused.post(do_url(case), {"confirmed": "yes"}).status_code == 403


def test_the_permission_alone_does_not_open_the_page(sign_in: SignIn) -> None:
    job = rows.make_job()
    client = sign_in("cancel_job")

    assert client.post(do_url(ON_ROWS[0], job), {"confirmed": "yes"}).status_code == 403
    job.refresh_from_db()
    assert job.status == "pending"


def test_a_verb_that_is_not_there(superuser: Client) -> None:
    job = rows.make_job()
    name = "admin:flexiq_django_job_do_to"

    assert superuser.post(reverse(name, args=[job.pk, "explode"])).status_code == 404
    assert superuser.post(reverse(name, args=[rows.new_id(), "cancel"])).status_code == 404
    assert superuser.post(reverse("admin:flexiq_django_job_do", args=["cancel"])).status_code == 404


# --- what is asked --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ON_ROWS, ids=lambda case: f"{case.model}-{case.verb}")
def test_nothing_happens_by_a_look(superuser: Client, case: Case) -> None:
    row = row_for(case)

    answer = superuser.get(do_url(case, row), {"confirmed": "yes"})

    assert answer.status_code == 200
    assert 'method="post"' in answer.text
    assert log() == []


@pytest.mark.parametrize(
    "case", [case for case in ON_ROWS if case.asks], ids=lambda case: f"{case.model}-{case.verb}"
)
def test_what_loses_something_asks_first(superuser: Client, case: Case) -> None:
    row = row_for(case)

    answer = superuser.post(do_url(case, row))

    assert answer.status_code == 200
    assert 'name="confirmed"' in answer.text
    assert log() == []


def test_the_question_names_count_and_rows(superuser: Client) -> None:
    jobs = [rows.make_job(task_name=f"shop.task_{number}") for number in range(25)]

    answer = superuser.post(list_url("job"), chosen("cancel", *jobs))

    assert "Cancel 25 jobs?" in answer.text
    assert "and 5 more" in answer.text
    assert answer.text.count('name="_selected_action"') == 25
    assert Job.objects.filter(status="cancelled").count() == 0


def test_purging_a_queue_asks_with_the_number_of_its_jobs(superuser: Client) -> None:
    for _ in range(3):
        rows.make_job(queue="mail")
    rows.make_job("complete", queue="mail")
    url = reverse("admin:flexiq_django_queuestate_do", args=["purge"])

    first = superuser.post(url, {"confirmed": "no", "name": "mail"})
    assert "Cancel 3 pending jobs" in first.text
    assert re.search(r'type="hidden" name="name" value="mail"', first.text)
    answer = superuser.post(url, {"confirmed": "yes", "name": "mail"})

    assert said(answer) == ["3 pending jobs were cancelled."]
    assert Job.objects.filter(status="cancelled", error="purged").count() == 3


# --- what happens ---------------------------------------------------------------------------------


def test_cancel_from_the_list_says_what_was_done_and_what_was_skipped(superuser: Client) -> None:
    pending = [rows.make_job(), rows.make_job()]
    ended = rows.make_job("complete")

    answer = superuser.post(
        list_url("job"), chosen("cancel", *pending, ended, confirmed="yes"), follow=True
    )

    assert answer.status_code == 200
    assert "2 jobs were cancelled." in answer.text
    assert "1 was skipped: neither pending nor paused, or not any more" in answer.text
    assert Job.objects.filter(status="cancelled").count() == 2
    assert {message for _, message in log()} == {"Cancel"}
    assert LogEntry.objects.count() == 2
    assert str(pending[0].pk) in LogEntry.objects.values_list("object_id", flat=True)


def test_the_log_names_the_actor(sign_in: SignIn) -> None:
    job = rows.make_job("running")
    client = sign_in("view_job", "stop_job")

    answer = client.post(do_url(Case("job", "stop", "", False), job), follow=True)

    assert answer.redirect_chain[-1][0] == page_url("job", job)
    job.refresh_from_db()
    assert job.cancel_requested_at is not None
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.change_message) == ("user-0", "Ask to stop")


def test_requeue(superuser: Client) -> None:
    job = rows.make_job("running")

    superuser.post(do_url(Case("job", "requeue", "", True), job), {"confirmed": "yes"})

    job.refresh_from_db()
    assert (job.status, job.token) == ("pending", None)


def test_a_paused_job_says_why_and_is_continued_or_cancelled(superuser: Client) -> None:
    one, other = (rows.make_job("paused", pause_reason="<b>who pays?</b>") for _ in range(2))

    assert "paused: &lt;b&gt;who pays?&lt;/b&gt;" in superuser.get(page_url("job", one)).text
    found = superuser.get(list_url("job"), {"status": "paused"}).text
    assert str(one.pk) in found
    assert str(other.pk) in found
    superuser.post(list_url("job"), chosen("continue", one))
    again = superuser.post(list_url("job"), chosen("continue", one))
    superuser.post(list_url("job"), chosen("cancel", other, confirmed="yes"))

    assert said(again)[-1] == "1 was skipped: not paused, or not any more"
    one.refresh_from_db()
    other.refresh_from_db()
    assert (one.status, one.pause_reason) == ("pending", None)
    assert (other.status, other.pause_reason) == ("cancelled", "<b>who pays?</b>")
    assert [message for _, message in log()] == ["Continue", "Cancel"]


@pytest.mark.parametrize("model", ["job", "archivedjob"])
def test_replay_keeps_the_actor(superuser: Client, model: str) -> None:
    row = rows.make_job("complete") if model == "job" else rows.make_archived()

    answer = superuser.post(do_url(Case(model, "replay", "", False), row))

    assert said(answer) == ["1 new job with the same arguments was enqueued."]
    history = ReplayHistory.objects.get()
    assert (history.original_job_id, history.actor) == (row.pk, "user-0")
    assert Job.objects.get(pk=history.replay_job_id).status == "pending"


def test_retry_and_delete_of_dead_letters(superuser: Client) -> None:
    first, second, third = (rows.make_dead_letter(rows.make_job("dead")) for _ in range(3))

    answer = superuser.post(list_url("deadletter"), chosen("retry", first, second))
    assert said(answer) == ["2 jobs were enqueued again; their dead letters are gone."]
    assert Job.objects.filter(status="pending").count() == 2
    answer = superuser.post(
        do_url(Case("deadletter", "delete", "", True), third), {"confirmed": "yes"}
    )

    assert answer.url == list_url("deadletter")
    assert not DeadLetter.objects.exists()
    assert [message for _, message in log()] == ["Retry", "Retry", "Delete"]


def test_purge_of_old_dead_letters(superuser: Client) -> None:
    for _ in range(2):
        rows.make_dead_letter(rows.make_job("dead"))
    url = reverse("admin:flexiq_django_deadletter_do", args=["purge"])

    wrong = superuser.post(url, {"confirmed": "no", "days": "soon"})
    assert "Enter a number." in wrong.text
    first = superuser.post(url, {"confirmed": "no", "days": "0"})
    assert "Delete 2 dead letters" in first.text
    answer = superuser.post(url, {"confirmed": "yes", "days": "0"})

    assert said(answer) == ["2 dead letters were deleted."]
    assert not DeadLetter.objects.exists()
    assert not Job.objects.exists()
    assert "days: 0" in log()[0][1]


def test_queues_are_paused_resumed_and_limited(superuser: Client) -> None:
    do = "admin:flexiq_django_queuestate_do"
    superuser.post(reverse(do, args=["pause"]), {"confirmed": "yes", "name": "mail"})
    state = QueueState.objects.get()
    assert state.paused_at is not None

    again = superuser.post(reverse(f"{do}_to", args=[state.pk, "pause"]))
    assert said(again)[-1] == "1 was skipped: already paused"
    superuser.post(reverse(f"{do}_to", args=[state.pk, "resume"]))
    state.refresh_from_db()
    assert state.paused_at is None

    url = reverse(f"{do}_to", args=[state.pk, "limit"])
    wrong = superuser.post(url, {"confirmed": "yes", "rate_limit": "10", "max_concurrent": "0"})
    assert "such as &#x27;100/m&#x27;" in wrong.text
    assert "greater than or equal to 1" in wrong.text
    superuser.post(url, {"confirmed": "yes", "rate_limit": "10/m", "max_concurrent": "4"})
    state.refresh_from_db()
    assert (state.rate_limit, state.max_concurrent) == ("10/m", 4)
    form = superuser.post(url)
    assert 'value="10/m"' in form.text
    superuser.post(url, {"confirmed": "yes", "rate_limit": "", "max_concurrent": ""})
    state.refresh_from_db()
    assert (state.rate_limit, state.max_concurrent) == (None, None)


def test_schedules_are_paused_resumed_and_deleted(superuser: Client) -> None:
    row = rows.make_schedule(next_run_at=rows.NOW)
    do = "admin:flexiq_django_periodictask_do_to"

    superuser.post(reverse(do, args=[row.pk, "pause"]))
    row.refresh_from_db()
    assert not row.enabled
    again = superuser.post(reverse(do, args=[row.pk, "pause"]))
    assert said(again)[-1] == "1 was skipped: already paused"
    superuser.post(reverse(do, args=[row.pk, "resume"]))
    row.refresh_from_db()
    assert row.enabled
    assert row.next_run_at > rows.NOW

    asked = superuser.post(reverse(do, args=[row.pk, "delete"]))
    assert "comes back within a minute" in asked.text
    superuser.post(reverse(do, args=[row.pk, "delete"]), {"confirmed": "yes"})
    assert not PeriodicTask.objects.exists()


def test_tasks_are_revoked_and_allowed_again(superuser: Client) -> None:
    job = rows.make_job(task_name="shop.tasks.pay")
    do = "admin:flexiq_django_taskstate_do"
    url = reverse(do, args=["revoke"])
    wrong = superuser.post(url, {"confirmed": "no", "name": "a\x07b"})
    assert "printable characters" in wrong.text
    asked = superuser.post(url, {"confirmed": "no", "name": "shop.tasks.pay"})
    assert "cancel its pending jobs" in asked.text
    answer = superuser.post(url, {"confirmed": "yes", "name": "shop.tasks.pay"})

    assert said(answer) == [
        "The task is revoked: 1 pending job is cancelled, new ones are refused."
    ]
    job.refresh_from_db()
    assert (job.status, job.error) == ("cancelled", "revoked")
    row = TaskState.objects.get()
    assert row.revoked_at is not None
    superuser.post(reverse(f"{do}_to", args=[row.pk, "allow"]))
    row.refresh_from_db()
    assert row.revoked_at is None


def test_settings_are_added_edited_and_deleted(superuser: Client) -> None:
    do = "admin:flexiq_django_setting_do"
    add = {"confirmed": "yes", "key": "a/b ü", "value": "1\r\n2"}
    superuser.post(reverse(do, args=["add"]), add)
    row = Setting.objects.get()
    assert (row.key, row.value) == ("a/b ü", "1\n2")
    again = superuser.post(reverse(do, args=["add"]), add)
    assert said(again)[-1] == "Nothing was done: there is a setting of this key; edit that"

    edit = do_url(Case("setting", "edit", "", True), _Quoted("a_2Fb ü"))
    superuser.post(edit, {"confirmed": "yes", "value": "3", "expected": "1\r\n2"})
    assert Setting.objects.get().value == "3"
    late = superuser.post(edit, {"confirmed": "yes", "value": "4", "expected": "1\n2"})
    assert "somebody has changed or deleted it" in said(late)[-1]
    assert Setting.objects.get().value == "3"

    superuser.post(
        do_url(Case("setting", "delete", "", True), _Quoted("a_2Fb ü")), {"confirmed": "yes"}
    )
    assert not Setting.objects.exists()


class _Quoted:
    """A row whose key stands in an address."""

    def __init__(self, pk: str) -> None:
        self.pk = pk


def test_rows_of_another_namespace_are_reached_there(superuser: Client) -> None:
    job = rows.make_job(namespace="other")

    superuser.post(do_url(ON_ROWS[0], job), {"confirmed": "yes"})

    job.refresh_from_db()
    assert job.status == "cancelled"


def test_the_whole_table_cannot_be_chosen(superuser: Client) -> None:
    first, second = rows.make_job(), rows.make_job()

    superuser.post(list_url("job"), chosen("cancel", first, confirmed="yes", select_across="1"))

    second.refresh_from_db()
    assert second.status == "pending"


def test_hostile_names_are_shown_as_text(superuser: Client) -> None:
    job = rows.make_job(task_name=rows.HOSTILE, queue=rows.HOSTILE)

    answer = superuser.post(do_url(ON_ROWS[0], job))

    assert "<script>alert(" not in answer.text
    assert "&lt;script&gt;" in answer.text
    assert "{{ 7|add:7 }}" in answer.text.replace("&#x7B;", "{")
