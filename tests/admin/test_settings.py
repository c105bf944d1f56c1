"""The page of the settings store: what is edited, what may not be, and names that are awkward."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from flexiq_django import queue
from flexiq_django.models import Setting
from tests.admin import rows
from tests.admin.conftest import SignIn
from tests.admin.test_verbs import chosen, list_url, page_url, said

pytestmark = pytest.mark.django_db

DO = "admin:flexiq_django_setting_do"


def store(key: str, value: str = "dark") -> Setting:
    return Setting.objects.create(key=key, value=value, updated_at=rows.NOW)


def edit(client: Client, row: Setting, *, seen: str, value: str) -> Any:
    """What a browser sends from the form of one row."""
    crlf = seen.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
    data = {"confirmed": "yes", "value": value, "expected": crlf}
    return client.post(reverse(f"{DO}_to", args=[row.pk, "edit"]), data)


@pytest.mark.parametrize("stored", ["a\r\nb", "a\nb\r\n", "a\rb", "\n", ""])
def test_a_value_is_edited_however_its_lines_end(superuser: Client, stored: str) -> None:
    row = store("theme", stored)

    edit(superuser, row, seen=stored, value="one\r\ntwo")
    late = edit(superuser, row, seen=stored, value="three")

    assert Setting.objects.get().value == "one\ntwo"
    assert "somebody has changed or deleted it" in said(late)[-1]


def test_a_change_between_form_and_sending_is_not_lost(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = store("theme", "a\r\nb")
    set_setting_if = queue.set_setting_if

    def too_late(*arguments: Any) -> bool:
        Setting.objects.update(value="a\nb")
        return set_setting_if(*arguments)

    monkeypatch.setattr(queue, "set_setting_if", too_late)
    answer = edit(superuser, row, seen=row.value, value="mine")

    assert "somebody has changed or deleted it" in said(answer)[-1]
    assert Setting.objects.get().value == "a\nb"


def test_editing_is_for_one_row(superuser: Client) -> None:
    empty, full = store("empty", ""), store("full", "x")
    data = {"confirmed": "yes", "value": "overwritten", "expected": ""}

    for sent in ({}, data):
        answer = superuser.post(list_url("setting"), chosen("edit", empty, full, **sent))
        assert said(answer)[-1] == "Choose one row: each needs an answer of its own."
    assert queue.list_settings() == {"empty": "", "full": "x"}
    assert not LogEntry.objects.exists()

    form = superuser.post(list_url("setting"), chosen("edit", full))
    assert ">\nx</textarea>" in form.text
    superuser.post(list_url("setting"), chosen("edit", full, **{**data, "expected": "x"}))
    assert queue.list_settings() == {"empty": "", "full": "overwritten"}


@pytest.mark.parametrize("key", ["do", "_do", "add", "do/change", "a/do/edit"])
def test_any_key_has_its_page_and_its_verbs(superuser: Client, key: str) -> None:
    superuser.post(reverse(DO, args=["add"]), {"confirmed": "yes", "key": key, "value": "1"})
    row = Setting.objects.get()
    assert row.key == key

    page = superuser.get(list_url("setting"))
    (address,) = [
        part.split('"')[0] for part in page.text.split('href="') if "/change/" in part.split('"')[0]
    ]
    assert superuser.get(address).status_code == 200
    action = address.replace("/change/", "/do/edit/")
    assert f'action="{action}"' in superuser.get(address).text
    superuser.post(action, {"confirmed": "yes", "value": "2", "expected": "1"})
    assert queue.get_setting(key) == "2"
    assert superuser.get(address.replace("/change/", "/history/")).status_code == 200
    superuser.post(address.replace("/change/", "/do/delete/"), {"confirmed": "yes"})
    assert not Setting.objects.exists()


@pytest.mark.parametrize("key", ["contract:min_sdk", "retention:effective:default"])
def test_what_the_queue_keeps_for_itself_is_deleted_but_not_written(
    sign_in: SignIn, key: str
) -> None:
    client = sign_in("view_setting", "add_setting", "change_setting", "delete_setting")
    adding = {"confirmed": "yes", "key": key, "value": "garbage"}
    added = client.post(reverse(DO, args=["add"]), adding)
    assert f"Nothing was done: key is '{key}'" in said(added)[-1]
    row = store(key, "2")

    page = client.get(reverse("admin:flexiq_django_setting_change", args=[_quoted(key)])).text
    assert "Delete" in page
    assert ">Edit<" not in page
    row.pk = _quoted(key)
    edited = edit(client, row, seen="2", value="garbage")

    assert "are the queue's own" in said(edited)[-1]
    assert queue.get_setting(key) == "2"
    client.post(reverse(f"{DO}_to", args=[row.pk, "delete"]), {"confirmed": "yes"})
    assert queue.get_setting(key) is None
    assert page_url("setting", row)


def _quoted(key: str) -> str:
    return key.replace("_", "_5F").replace(":", "_3A")
