"""The overview: figures, charts, tables, and the buttons of the queues."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from flexiq_django import queue
from flexiq_django.admin import charts
from flexiq_django.admin.charts import Bar, round_up
from flexiq_django.admin.overview import executions, standing
from flexiq_django.models import QueueState
from flexiq_django.store import inspect
from tests.admin import rows
from tests.admin.conftest import SignIn

pytestmark = pytest.mark.django_db

OVERVIEW = "admin:flexiq_django_overview"


def page(client: Client, **query: str) -> str:
    address = reverse(OVERVIEW) + (f"?{urlencode(query)}" if query else "")
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.text


def figures_of(text: str) -> dict[str, str]:
    """The tiles: name and figure."""
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text)
    return {name: re.sub("<.*?>", "", figure) for name, figure in found}


# --- what it shows --------------------------------------------------------------------------------


def test_an_empty_system(superuser: Client) -> None:
    text = page(superuser)

    assert figures_of(text) == {
        "Ready": "0", "Oldest ready": "-", "Due later": "0", "Waiting for others": "0",
        "Running": "0", "Paused": "0", "Dead letters": "0",
    }  # fmt: skip
    assert "0 executions, 0 of them failed" in text
    assert text.count("None.") == 4
    assert 'class="warning"' not in text


def test_jobs_are_counted_by_what_they_wait_for(superuser: Client) -> None:
    parent = rows.make_job()
    rows.make_edge(rows.make_job(ready_lane=None), parent)
    rows.make_job(ready_lane=None, promote_at=datetime(2190, 1, 1, tzinfo=UTC))
    for status in ("running", "paused", "complete", "cancelled"):
        rows.make_job(status)
    rows.make_dead_letter(rows.make_job("dead"))
    rows.make_job(namespace="other")
    rows.make_worker()
    text = page(superuser)

    found = figures_of(text)
    assert found.pop("Oldest ready").endswith(" h")  # it was due long ago
    assert found == {
        "Ready": "1", "Due later": "1", "Waiting for others": "1", "Running": "1", "Paused": "1",
        "Dead letters": "1",
    }  # fmt: skip
    assert 'flexiq-bad"><dt>Dead letters' in text
    listed = reverse("admin:flexiq_django_job_changelist")
    assert f'<a href="{listed}?status=running&amp;namespace=default">1</a>' in text


def test_charts_and_tasks_show_what_ran_lately(superuser: Client) -> None:
    for ms in (10, 20, 2_000):
        rows.make_metric(ms=ms)
    rows.make_metric("shop.tasks.fail", ms=4, succeeded=False)
    rows.make_metric(ago=2 * 3_600)
    rows.make_metric(namespace="other")
    text = page(superuser)

    assert "Executions in each 60 s" in text
    assert "4 executions, 1 of them failed" in text
    assert re.search(r"<title>\d\d:\d\d:\d\d: 4 executions, 1 failed</title>", text)
    assert re.search(r"<title>\S+: half up to 20 ms, 95 % up to 2 s</title>", text)
    tasks = re.findall(r"shop\.tasks\.\w+</a></td><td>(\d)</td><td>(\d)</td>", text)
    assert tasks == [("3", "0"), ("1", "1")]  # what took most of the time comes first


def test_many_executions_shorten_the_time_that_is_looked_at(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "MOST", 3)
    for ago in (5, 100, 200, 250, 700, 3_000):
        rows.make_metric(ago=ago)

    text = page(superuser)
    assert "Executions in each 2 s" in text  # 120 s hold two of them, 300 s would hold four
    assert "2 executions, 0 of them failed" in text


def test_the_last_bar_holds_what_ended_until_the_page_was_asked_for(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        rows.make_metric(ago=1)
    plain = inspect.read_clock

    def read_and_go_on(scope: Any) -> datetime:
        now = plain(scope)
        rows.make_metric(ms=9_000, recorded_at=now + timedelta(milliseconds=20))
        return now

    monkeypatch.setattr(inspect, "read_clock", read_and_go_on)
    text = page(superuser)

    assert "3 executions, 0 of them failed" in text
    assert "9 s" not in text


def test_so_many_dead_letters_are_not_counted(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "MOST_COUNTED", 2)
    for _ in range(2):
        rows.make_dead_letter(rows.make_job("dead"))
    assert figures_of(page(superuser))["Dead letters"] == "2"
    rows.make_dead_letter(rows.make_job("dead"))
    assert figures_of(page(superuser))["Dead letters"] == "over 2"


def test_a_worker_that_drains_serves_no_queue(superuser: Client) -> None:
    rows.make_job(queue="mail")
    rows.make_worker(state="draining")

    cells = re.findall(r"queue=mail[^>]*>mail</a></td>(.*?)</tr>", page(superuser), re.DOTALL)
    assert "<td>0</td><td>open" in cells[0].replace('<form method="post"', "open")


def test_workers_queues_and_schedules(superuser: Client) -> None:
    rows.make_job(queue="mail")
    rows.make_worker(queues='["mail", "<img>"]')
    rows.make_schedule()
    rows.pause_queue("slow")
    text = page(superuser)

    assert "web-1-4711-a0b1c2</a></td><td>running</td><td>mail, &lt;img&gt;</td>" in text
    queues = re.findall(r"<td><a [^>]*queue=[^>]*>(.*?)</a></td>", text)
    assert queues == ["&lt;img&gt;", "mail", "slow"]
    assert "nightly" in text


def test_what_looks_wrong_is_said(superuser: Client) -> None:
    rows.make_job(queue="mail")
    assert '<li class="warning">Jobs wait in queue mail, and no worker is alive' in page(superuser)
    rows.make_worker(clock_skew_ms=60_000)
    assert "he clock of worker web-1-4711-a0b1c2 is +60.0 s off" in page(superuser)


def test_another_namespace(superuser: Client) -> None:
    rows.make_job(namespace="tenant <b>")
    rows.make_worker(namespace="tenant <b>")

    assert '<a href="?namespace=tenant%20%3Cb%3E">tenant &lt;b&gt;</a>' in page(superuser)
    text = page(superuser, namespace="tenant <b>")
    assert figures_of(text)["Ready"] == "1"
    assert '<a href="?namespace=default">default</a>' in text
    assert figures_of(page(superuser, namespace="no such"))["Ready"] == "0"
    for name in ("\0", " ", "n" * 101):
        address = f"{reverse(OVERVIEW)}?{urlencode({'namespace': name})}"
        assert superuser.get(address).status_code == 404


# --- who may see what -----------------------------------------------------------------------------


def test_it_takes_the_permission_to_see_jobs(sign_in: SignIn) -> None:
    assert sign_in("view_worker").get(reverse(OVERVIEW)).status_code == 403
    assert Client().get(reverse(OVERVIEW)).status_code == 302


def test_each_part_takes_a_permission_of_its_own(sign_in: SignIn) -> None:
    rows.make_job(queue="mail")
    rows.make_worker()
    rows.make_schedule()
    rows.make_metric()
    text = page(sign_in("view_job"))

    assert "Ready" in figures_of(text)
    assert "Dead letters" not in figures_of(text)
    for part in ("flexiq-chart", "Queues", "Live workers", "Next runs", "Tasks, by"):
        assert part not in text
    parts = {"worker": "Live workers", "queuestate": "Queues", "periodictask": "Next runs"}
    for model, part in parts.items():
        assert part in page(sign_in("view_job", f"view_{model}"))
    assert "flexiq-chart" in page(sign_in("view_job", "view_taskmetric"))


def test_the_start_page_of_the_app_leads_there(superuser: Client, sign_in: SignIn) -> None:
    index = reverse("admin:app_list", args=["flexiq_django"])

    assert f'<a href="{reverse(OVERVIEW)}">Overview</a>' in superuser.get(index).text
    assert reverse(OVERVIEW) not in sign_in("view_worker").get(index).text


# --- what can be done there -----------------------------------------------------------------------


def press(client: Client, text: str, label: str) -> None:
    """Send the form of the first button of that name, with all its fields."""
    form = next(
        each for each in re.findall(r"<form.*?</form>", text, re.DOTALL) if f">{label}<" in each
    )
    action = re.search(r'action="(.*?)"', form)
    assert action
    fields = dict(re.findall(r'name="(.*?)" value="(.*?)"', form))
    assert client.post(action[1], fields).status_code == 302


def test_a_queue_is_paused_and_resumed(superuser: Client) -> None:
    rows.make_job(queue="mail")

    press(superuser, page(superuser), "Pause")
    assert queue.paused_queues() == ["mail"]
    press(superuser, page(superuser), "Resume")
    assert queue.paused_queues() == []
    assert LogEntry.objects.count() == 2
    assert QueueState.objects.count() == 1


def test_buttons_are_for_those_who_may_and_for_the_namespace_they_act_in(
    sign_in: SignIn, superuser: Client
) -> None:
    rows.make_job(queue="mail")
    rows.make_job(queue="mail", namespace="other")
    looking = ("view_job", "view_queuestate")

    assert "<form" not in page(sign_in(*looking)).partition("flexiq-tiles")[2]
    assert ">Pause<" in page(sign_in(*looking, "pause_queue"))
    assert ">Pause<" not in page(superuser, namespace="other")
    rows.pause_queue(namespace="other")
    press(superuser, page(superuser, namespace="other"), "Resume")
    assert not QueueState.objects.filter(paused_at__isnull=False).exists()


# --- cost -----------------------------------------------------------------------------------------


def test_the_number_of_queries_does_not_grow(
    superuser: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows.make_job(queue="mail", scheduled_at=datetime.now(UTC))
    rows.make_worker()
    rows.make_metric()
    with django_assert_num_queries(1_000, exact=False) as first:
        page(superuser)
    for number in range(10):
        rows.make_job(queue=f"queue-{number}", scheduled_at=datetime.now(UTC))
        rows.make_worker(id=f"worker-{number}")
        rows.pause_queue(f"queue-{number}")
        rows.make_metric(f"task-{number}")

    with django_assert_num_queries(len(first), exact=True):
        page(superuser)


# --- drawing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "top"),
    [(0, 1), (0.3, 0.5), (1, 1), (1.2, 2), (3, 5), (7, 10), (10, 10), (11, 20), (4_100, 5_000)],
)
def test_a_scale_ends_at_a_round_number(number: float, top: float) -> None:
    assert round_up(number) == pytest.approx(top)


def test_bars_are_as_high_as_their_values_say() -> None:
    drawn = charts.bars(
        [Bar(10, 5, "first"), Bar(0, 0, "none"), Bar(5, 0, "<last>")], told='a "chart"', scale=str
    )

    heights = re.findall(r'class="flexiq-behind".*?height="(.*?)"', drawn)
    assert [float(each) for each in heights] == [138, 0, 69]
    before = re.findall(r'class="flexiq-before".*?height="(.*?)"', drawn)
    assert [float(each) for each in before] == [69, 0, 0]
    assert 'aria-label="a &quot;chart&quot;"' in drawn
    assert "<title>&lt;last&gt;</title>" in drawn
    assert re.findall(r'flexiq-scale".*?>(.*?)<', drawn) == ["0", "5.0", "10.0"]


def test_no_bars_at_all() -> None:
    draw: Callable[..., str] = charts.bars
    assert "<svg" in draw([], told="nothing", scale=str)
