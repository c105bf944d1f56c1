"""Lists: what they show, how they page, and what they cost."""

import re
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from flexiq_django import Queue
from flexiq_django.models import ArchivedJob, Job
from flexiq_django.store.ids import new_ids
from tests.admin import rows

JOBS = "admin:flexiq_django_job_changelist"


def shown_keys(page: str, model: str = "job") -> list[str]:
    """The ids of the rows on a page, from top to bottom."""
    return re.findall(rf'<th[^>]*><a href="/admin/flexiq_django/{model}/([^/]+)/change/', page)


def link(page: str, word: str) -> str | None:
    """Where the link with this text leads."""
    match = re.search(rf'<a href="([^"]*)"[^>]*>{word}</a>', page)
    return match and match[1].replace("&amp;", "&")


def store_jobs(count: int, status: str = "complete", **given: Any) -> list[str]:
    """Jobs, oldest first."""
    jobs = [Job(**{**rows.job_fields(status, **given), "id": key}) for key in new_ids(count)]
    Job.objects.bulk_create(jobs, batch_size=500)
    return [str(job.pk) for job in jobs]


@pytest.mark.django_db
def test_newest_first_page_by_page_and_back(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = store_jobs(250)[::-1]
    start = reverse(JOBS)
    first = superuser.get(start).text
    assert shown_keys(first) == keys[:100]
    assert link(first, "Newer") is None
    assert link(first, "Newest") is None
    second = superuser.get(start + str(link(first, "Older"))).text
    assert shown_keys(second) == keys[100:200]
    third = superuser.get(start + str(link(second, "Older"))).text
    assert shown_keys(third) == keys[200:]
    assert link(third, "Older") is None
    back = superuser.get(start + str(link(third, "Newer"))).text
    assert shown_keys(back) == keys[100:200]
    top = superuser.get(start + str(link(back, "Newer"))).text
    assert shown_keys(top) == keys[:100]
    assert link(top, "Newer") is None
    assert shown_keys(superuser.get(start + str(link(third, "Newest"))).text) == keys[:100]


@pytest.mark.django_db
def test_rows_that_come_in_between_move_no_page(superuser: Client) -> None:
    keys = store_jobs(150)[::-1]
    first = superuser.get(reverse(JOBS)).text
    store_jobs(30)
    second = superuser.get(reverse(JOBS) + str(link(first, "Older"))).text
    assert shown_keys(second) == keys[100:]


@pytest.mark.django_db
@pytest.mark.parametrize("place", ["older=nonsense", "newer=", "p=7", "all=", "o=3.-1", "older=7"])
def test_strange_places_show_the_newest_page(superuser: Client, place: str) -> None:
    keys = store_jobs(3)[::-1]
    assert shown_keys(superuser.get(f"{reverse(JOBS)}?{place}").text) == keys


@pytest.mark.django_db
def test_filters(superuser: Client) -> None:
    running = rows.make_job("running", queue="images")
    dead = rows.make_job("dead", task_name="other.task")
    waiting = rows.make_job(ready_lane=None, namespace="elsewhere")
    for query, expected in {
        "status=running": [running],
        "status=dead": [dead],
        "status=pending": [waiting],
        "status=cancelled": [],
        "status=no-such-status": [],
        "queue=images": [running],
        "task_name=other.task": [dead],
        "namespace=elsewhere": [waiting],
        "queue=mail&status=pending": [waiting],
    }.items():
        found = shown_keys(superuser.get(f"{reverse(JOBS)}?{query}").text)
        assert found == [str(job.pk) for job in expected], query


@pytest.mark.django_db
def test_the_choices_of_the_filters_come_from_code_queues_and_workers(superuser: Client) -> None:
    queue = Queue(namespace="of-code")

    @queue.task(name="declared.task", queue="of-task")
    def task() -> None: ...

    rows.pause_queue("of-state")
    rows.make_worker(queues='["of-worker"]', namespace="of-worker-too")
    store_jobs(1, queue="of-jobs-only")
    page = superuser.get(reverse(JOBS)).text
    for name in ("of-code", "of-task", "of-state", "of-worker", "of-worker-too", "declared.task"):
        assert f">{name}</a>" in page
    assert "queue=of-jobs-only" not in page
    chosen = superuser.get(f"{reverse(JOBS)}?queue=of-jobs-only").text
    assert ">of-jobs-only</a>" in chosen


@pytest.mark.django_db
def test_a_filter_looks_at_a_part_of_the_table_at_a_time(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexiq_django.admin.calls.CallAdmin.window", 20)
    old = store_jobs(1, "dead")
    store_jobs(30)
    new = store_jobs(1, "dead")
    start = reverse(JOBS)
    first = superuser.get(f"{start}?status=dead").text
    assert shown_keys(first) == new
    assert "a part of the table" in first
    second = superuser.get(start + str(link(first, "Older"))).text
    assert shown_keys(second) == old
    assert link(second, "Older") is None
    assert "a part of the table" not in second
    between = superuser.get(start + str(link(second, "Newer"))).text
    assert shown_keys(between) == []
    assert "a part of the table" in between
    back = superuser.get(start + str(link(between, "Newer"))).text
    assert shown_keys(back) == new


@pytest.mark.django_db
@pytest.mark.parametrize("term", ["%20", "%20%20", "%09", "%00", "%C2%A0"])
def test_a_search_for_nothing_leaves_the_bound(
    superuser: Client, monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.setattr("flexiq_django.admin.calls.CallAdmin.window", 20)
    store_jobs(1, "dead")
    store_jobs(30)
    page = superuser.get(f"{reverse(JOBS)}?status=dead&q={term}").text
    assert shown_keys(page) == []
    assert "a part of the table" in page


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["", "?status=dead", "?status=running", "?queue=mail", "?q=key"])
def test_a_page_costs_a_handful_of_queries_and_counts_nothing(
    superuser: Client, query: str
) -> None:
    store_jobs(120, "dead")
    store_jobs(120, "running")
    with CaptureQueriesContext(connections[DEFAULT_DB_ALIAS]) as log:
        assert superuser.get(reverse(JOBS) + query).status_code == 200
    statements = [each["sql"] for each in log.captured_queries]
    ours = [sql for sql in statements if "flexiq_jobs" in sql]
    assert len(ours) <= 2
    assert len(statements) <= 10, statements
    for sql in ours:
        assert "COUNT(" not in sql.upper()
        assert "DISTINCT" not in sql.upper()
        assert "LIMIT" in sql.upper()
        for wide in ("payload", "result", "error", "metadata", "notes"):
            assert not re.search(rf"[\"`]{wide}[\"`]", sql)


@pytest.mark.django_db
@pytest.mark.parametrize("model", ["archivedjob", "deadletter", "worker", "periodictask"])
def test_other_lists_count_nothing_either(superuser: Client, model: str) -> None:
    for number in range(5):
        rows.make_archived()
        rows.make_dead_letter()
        rows.make_worker(id=f"worker-{number}")
        rows.make_schedule(name=f"schedule-{number}")
    with CaptureQueriesContext(connections[DEFAULT_DB_ALIAS]) as log:
        page = superuser.get(reverse(f"admin:flexiq_django_{model}_changelist")).text
    assert len(shown_keys(page, model)) == 5
    ours = [each["sql"] for each in log.captured_queries if "flexiq_" in each["sql"]]
    assert len(ours) <= 5
    assert not [sql for sql in ours if "COUNT(" in sql.upper()]


@pytest.mark.django_db
def test_search_by_id_and_by_unique_key(superuser: Client) -> None:
    keyed = rows.make_job(unique_key="invoice 4711")
    elsewhere = rows.make_job(unique_key="invoice 4711", namespace="elsewhere")
    rows.make_worker(namespace="elsewhere")
    ended = rows.make_job("complete", unique_key="invoice 1")
    start = reverse(JOBS)
    assert shown_keys(superuser.get(f"{start}?q={ended.pk}").text) == [str(ended.pk)]
    assert shown_keys(superuser.get(f"{start}?q={ended.pk.hex}").text) == [str(ended.pk)]
    found = shown_keys(superuser.get(start, {"q": " invoice 4711 "}).text)
    assert found == [str(elsewhere.pk), str(keyed.pk)]
    assert shown_keys(superuser.get(start, {"q": "invoice"}).text) == []
    assert shown_keys(superuser.get(start, {"q": "invoice 1"}).text) == []
    assert superuser.get(start, {"q": "\x00"}).status_code == 200


@pytest.mark.django_db
def test_a_unique_key_may_look_like_an_id(superuser: Client) -> None:
    named = rows.make_job("complete")
    keyed = rows.make_job(unique_key=str(named.pk))
    alone = rows.make_job(unique_key="0197B0A0000070008000000000000000")
    rows.make_job("complete", unique_key=str(named.pk))
    start = reverse(JOBS)

    assert shown_keys(superuser.get(start, {"q": alone.unique_key}).text) == [str(alone.pk)]
    with CaptureQueriesContext(connections[DEFAULT_DB_ALIAS]) as log:
        found = shown_keys(superuser.get(start, {"q": str(named.pk)}).text)
    assert found == [str(keyed.pk), str(named.pk)]
    ours = [each["sql"] for each in log.captured_queries if "flexiq_jobs" in each["sql"]]
    assert len(ours) == 2
    assert not [sql for sql in ours if " OR " in sql]
    narrowed = superuser.get(start, {"q": str(named.pk), "status": "complete"}).text
    assert shown_keys(narrowed) == [str(named.pk)]


@pytest.mark.django_db
def test_search_among_the_archived_and_the_dead(superuser: Client) -> None:
    job = rows.make_archived()
    letter = rows.make_dead_letter()
    for model, term, expected in [
        ("archivedjob", str(job.pk), [str(job.pk)]),
        ("archivedjob", "something", []),
        ("deadletter", str(letter.pk), [str(letter.pk)]),
        ("deadletter", str(letter.original_job_id), [str(letter.pk)]),
        ("deadletter", "something", []),
    ]:
        page = superuser.get(reverse(f"admin:flexiq_django_{model}_changelist"), {"q": term}).text
        assert shown_keys(page, model) == expected


@pytest.mark.django_db
def test_pending_jobs_say_what_they_wait_for(superuser: Client) -> None:
    rows.make_job()
    rows.make_job(ready_lane=None, promote_at=rows.NOW)
    rows.make_job(ready_lane=None)
    rows.make_job("running", cancel_requested_at=rows.NOW)
    page = superuser.get(reverse(JOBS)).text
    for words in ("ready", "due later", "waits for other jobs"):
        assert f"pending, {words}" in page
    assert "running, cancel requested" in page


@pytest.mark.django_db
def test_dead_letters_show_the_beginning_of_a_long_error(superuser: Client) -> None:
    rows.make_dead_letter(error=rows.failure("no\u00e9 " + "x" * 20_000))
    rows.make_dead_letter(error="worker lost")
    page = superuser.get(reverse("admin:flexiq_django_deadletter_changelist")).text
    assert "ValueError: no\u00e9 xxx" in page
    assert "worker lost" in page
    assert len(page) < 40_000


def test_only_the_queue_is_asked_for_its_database(settings: Any) -> None:
    from django.contrib import admin
    from django.test import RequestFactory

    settings.FLEXIQ = {"DATABASE": "elsewhere"}
    request = RequestFactory().get("/")
    for model in (Job, ArchivedJob):
        assert admin.site.get_model_admin(model).get_queryset(request).db == "elsewhere"
