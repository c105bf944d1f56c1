"""The pages in a real browser, under a strict content security policy, in light and dark."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.admin import rows
from tests.admin.conftest import MODELS

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
#: Where pictures of the pages go, for a person to look at; nowhere when unset.
PICTURES = os.environ.get("FLEXIQ_TEST_PICTURES")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.mechanics,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


class StrictPolicy:
    """Middleware: nothing inline, nothing from elsewhere."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        response = self.get_response(request)
        response["Content-Security-Policy"] = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
            " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        return response


@pytest.fixture
def site(settings: Any, tmp_path: Path, django_db_setup: None, live_server: Any) -> str:
    """The address of a running server that also serves the static files of the apps.

    The test database comes first: a server that starts before sees the project's own, in memory,
    and would let all its threads share one connection.
    """
    for app in ("admin", "flexiq_django"):
        folder = Path(apps.get_app_config(app).path) / "static"
        shutil.copytree(folder, tmp_path / "static", dirs_exist_ok=True)
    settings.STATIC_ROOT = str(tmp_path / "static")
    settings.MIDDLEWARE = ["tests.admin.test_browser.StrictPolicy", *settings.MIDDLEWARE]
    return str(live_server.url)


def paths_of_busy_system() -> dict[str, str]:
    """Store a bit of everything; the pages to look at."""
    parent = rows.make_archived(task_name="shop.tasks.import_file")
    running = rows.make_job("running", progress=40, task_name="shop.tasks.draw_map", queue="images")
    waiting = rows.make_job(ready_lane=None, task_name="shop.tasks.send_summary")
    rows.make_edge(waiting, running)
    rows.make_edge(running, parent, is_open=False)
    for status in ("pending", "complete", "paused", "cancelled", "dead"):
        rows.make_job(status)
    dead = rows.make_job("dead", error=rows.failure("no such address"))
    rows.make_job("complete", task_name=rows.HOSTILE, queue=rows.HOSTILE)
    for attempt in range(3):
        rows.make_error(dead, attempt)
    rows.make_log(dead, "looked up the address", extra='{"host": "mx.example.org"}')
    rows.make_edge(rows.make_job(ready_lane=None), dead)
    letter = rows.make_dead_letter(dead)
    rows.make_dead_letter(error=rows.failure(f"bad {rows.HOSTILE}"))
    worker = rows.make_worker()
    schedule = rows.make_schedule()
    rows.pause_queue()
    for number in range(200):
        rows.make_metric(ago=number * 17, ms=5 + number % 40, succeeded=number % 9 > 0)
    pages = {
        "index": reverse("admin:index"),
        "overview": reverse("admin:flexiq_django_overview"),
        "app": reverse("admin:app_list", args=["flexiq_django"]),
    }
    rows.make_task()
    for model in MODELS:
        pages[f"{model}-list"] = reverse(f"admin:flexiq_django_{model}_changelist")
    shown = {"job": dead, "deadletter": letter, "archivedjob": parent, "worker": worker}
    for model, row in {**shown, "periodictask": schedule}.items():
        pages[model] = reverse(f"admin:flexiq_django_{model}_change", args=[row.pk])
    pages["running"] = reverse("admin:flexiq_django_job_change", args=[running.pk])
    return pages


def complaint(message: Any) -> Iterator[str]:
    """A line on the browser's console, unless it is about the icon that every browser asks for."""
    place = message.location["url"]
    if not place.endswith("/favicon.ico"):
        yield f"{message.type}: {message.text} ({place})"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_in_a_browser(site: str, theme: str) -> None:
    user = User.objects.create_superuser("root")
    client = Client()
    client.force_login(user)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site}
    pages = paths_of_busy_system()
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = browser.new_context(
            color_scheme=theme, viewport={"width": 1440, "height": 900}, bypass_csp=False
        )
        context.add_cookies([cookie])
        page = context.new_page()
        page.on("console", lambda message: complaints.extend(complaint(message)))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        background = ""
        for name, path in pages.items():
            answer = page.goto(site + path)
            assert answer.status == 200, path
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            if PICTURES:
                page.screenshot(path=f"{PICTURES}/{name}-{theme}.png", full_page=True)
        browser.close()
    assert not complaints
    shade = sum(int(part) for part in background.strip("rgba()").split(",")[:3])
    assert (shade > 600) == (theme == "light"), background
