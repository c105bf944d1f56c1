"""The page of one row: what it shows, and that no text breaks it."""

import re
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from flexiq_django.admin import texts
from flexiq_django.models import Job, JobDependency
from flexiq_django.store.ids import new_ids
from tests.admin import rows

pytestmark = pytest.mark.django_db


def address(row: Any) -> str:
    """Where a row is shown."""
    return reverse(f"admin:flexiq_django_{row._meta.model_name}_change", args=[row.pk])


def assert_harmless(page: str) -> None:
    """Nothing of the hostile text became markup, a template or an invisible mark."""
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "{{ 7|add:7 }}" in page
    # The trail above the page is the admin's own, with the name as it is.
    assert "\u202e" not in page.partition('id="content"')[2]


def test_a_job_with_everything(superuser: Client) -> None:
    parent = rows.make_archived(task_name="shop.tasks.parent")
    job = rows.make_job(
        "dead",
        progress=70,
        error=rows.failure("no such address"),
        metadata='{"order": 4711}',
        notes='{"why": "asked for"}',
        unique_key="invoice 4711",
        schedule="nightly",
        origin="periodic",
    )
    child = rows.make_job(ready_lane=None, task_name="shop.tasks.child")
    rows.make_edge(job, parent, is_open=False)
    rows.make_edge(child, job)
    rows.make_error(job, 0)
    rows.make_log(job, "looked up")
    letter = rows.make_dead_letter(job)
    page = superuser.get(address(job)).text
    assert "&#x27;ada@example.org&#x27;" in page
    assert "language=&#x27;en&#x27;" in page
    assert "ValueError: no such address" in page
    assert "Traceback (most recent call last)" in page
    assert '<progress max="100" value="70">' in page
    assert "looked up" in page
    assert "schedule: nightly" in page
    for row in (parent, child, letter):
        assert f'href="{address(row)}"' in page
    assert "shop.tasks.child" in page


def test_hostile_text_everywhere_is_only_text(superuser: Client) -> None:
    hostile = rows.HOSTILE
    names = {"task_name": hostile, "queue": hostile, "worker_id": hostile}
    job = rows.make_job(
        "dead", **names, error=hostile, metadata=hostile, notes=f'{{"a": "{hostile[:20]}"}}',
        unique_key=hostile, user_id=hostile, schedule=hostile,
        payload=rows.call(hostile, {hostile: 1}),
    )  # fmt: skip
    rows.make_error(job, error=rows.failure(hostile), worker_id=hostile)
    rows.make_log(job, hostile, extra=hostile, level="info")
    rows.make_edge(rows.make_job(task_name=hostile, queue="mail"), job)
    letter = rows.make_dead_letter(
        job, task_name=hostile, queue=hostile, error=rows.failure(hostile), metadata=hostile
    )
    archived = rows.make_archived(**names)
    worker = rows.make_worker(
        hostname=hostile, queues='["<script>alert(1)</script>"]', version="<b>"
    )
    schedule = rows.make_schedule(name=hostile, task_name=hostile, timezone="<b>", cron="<b>")
    queue = rows.pause_queue(hostile)
    for row in (job, letter, archived, schedule, queue):
        assert_harmless(superuser.get(address(row)).text)
        listing = reverse(f"admin:flexiq_django_{row._meta.model_name}_changelist")
        assert_harmless(superuser.get(listing).text)
    assert "<script>alert" not in superuser.get(address(worker)).text
    listing = reverse("admin:flexiq_django_worker_changelist")
    assert "<script>alert" not in superuser.get(listing).text
    assert "<script>alert" not in superuser.get(reverse("admin:index")).text


def test_text_that_is_no_text_is_shown_as_escapes(superuser: Client) -> None:
    job = rows.make_job(
        "complete", payload=rows.call("a\x00b", "\ud800"), result='"\\udcff\\u0000"'
    )
    rows.make_log(job, "bell \x07", extra='{"half": "\\ud800", "nul": "\\u0000"}')
    rows.make_error(job, error=rows.failure("\udcff \x00"))
    page = superuser.get(address(job)).text
    assert "a\\x00b" in page
    assert "\\ud800" in page
    assert "\\udcff\\x00" in page
    assert "bell \\u0007" in page
    assert "\\u0000" in page


@pytest.mark.parametrize("stored", ["", "{", "[]", "[1, 2]", "null", '[[], {"a": ]', "[" * 5000])
def test_a_bad_stored_row_is_shown_as_it_is(superuser: Client, stored: str) -> None:
    job = rows.make_job("complete", payload=stored, result=stored, metadata=stored, notes=stored)
    rows.make_log(job, extra=stored)
    rows.make_error(job, error=stored)
    letter = rows.make_dead_letter(job, payload=stored, error=stored)
    for row in (job, letter):
        assert superuser.get(address(row)).status_code == 200


def test_huge_values_are_cut_and_said_to_be(superuser: Client) -> None:
    big = rows.call(["x" * 1000] * 3000)
    job = rows.make_job("complete", payload=big, error=rows.failure("y" * 3_000_000), metadata=big)
    page = superuser.get(address(job)).text
    assert len(page) < 250_000
    assert re.search(r"[\d,]+ further characters are not shown", page)


def test_many_attempts_lines_and_relatives_are_cut(superuser: Client) -> None:
    job = rows.make_job("dead")
    for number in range(25):
        rows.make_error(job, number, error=f"failure {number}.")
    for number in range(105):
        rows.make_log(job, f"line {number}.")
    children = [Job(**{**rows.job_fields(ready_lane=None), "id": key}) for key in new_ids(60)]
    Job.objects.bulk_create(children)
    JobDependency.objects.bulk_create(
        JobDependency(namespace="default", job_id=child.pk, parent_id=job.pk, is_open=True)
        for child in children
    )
    with CaptureQueriesContext(connections[DEFAULT_DB_ALIAS]) as log:
        page = superuser.get(address(job)).text
    assert len(log.captured_queries) <= 16
    assert "failure 24." in page
    assert "failure 4." not in page
    assert "line 104." in page
    assert "line 4." not in page
    assert page.count("/change/") < 80
    assert "There are more." in page


def test_times_are_in_the_current_zone_and_say_which(superuser: Client, settings: Any) -> None:
    job = rows.make_job("complete")
    settings.TIME_ZONE = "Asia/Kolkata"
    page = superuser.get(address(job)).text
    assert "2026-07-04 17:58:15 IST" in page
    listing = superuser.get(reverse("admin:flexiq_django_job_changelist")).text
    assert "2026-07-04 17:58:15 IST" in listing
    assert 'datetime="2026-07-04T12:28:15.250000+00:00"' in listing


def test_times_without_zone_support_say_the_zone_too(superuser: Client, settings: Any) -> None:
    job = rows.make_job("complete")
    settings.USE_TZ = False
    settings.TIME_ZONE = "Asia/Kolkata"
    assert "2026-07-04 17:58:15 IST" in superuser.get(address(job)).text


def test_a_job_that_was_archived_meanwhile_is_found(superuser: Client) -> None:
    archived = rows.make_archived()
    answer = superuser.get(reverse("admin:flexiq_django_job_change", args=[archived.pk]))
    assert answer.status_code == 302
    assert answer["Location"] == address(archived)


@pytest.mark.parametrize("key", ["01900000-0000-7000-8000-000000000000", "nonsense", "7"])
def test_an_unknown_job_is_said_to_be_none(superuser: Client, key: str) -> None:
    answer = superuser.get(reverse("admin:flexiq_django_job_change", args=[key]), follow=True)
    assert answer.redirect_chain
    assert "doesn\u2019t exist" in answer.text


def test_a_worker_whose_lease_is_over_is_not_alive(superuser: Client) -> None:
    rows.make_worker()
    rows.make_worker(id="gone", lease_at=rows.NOW.replace(year=2020))
    page = superuser.get(reverse("admin:flexiq_django_worker_changelist")).text
    assert page.count("icon-yes.svg") == 1
    assert page.count("icon-no.svg") == 1


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (None, None),
        ("", ""),
        ("worker lost", "worker lost"),
        ("z" * texts.ERROR_HEAD, "z" * 160 + "…"),
        ('{"errtype":"' + "z" * texts.ERROR_HEAD, None),
    ],
)
def test_error_lines(head: str | None, line: str | None) -> None:
    shown = texts.error_line(head and head[: texts.ERROR_HEAD])
    if line is not None:
        assert shown == line
    else:
        assert shown is None or len(shown) <= 161


@pytest.mark.parametrize("cut", range(texts.ERROR_HEAD - 20, texts.ERROR_HEAD))
def test_an_error_cut_inside_an_escape_still_reads(cut: int) -> None:
    text = '{"errtype":"KeyError","message":"' + "x" * (cut - 33) + "\\ud83d\\ude00\\n\\u00e9" * 20
    assert str(texts.error_line(text[: texts.ERROR_HEAD])).startswith("KeyError: xxx")
