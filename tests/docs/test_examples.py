"""The Python on every page works, and gives what the page says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client, RequestFactory

from flexiq_django import queue
from tests.conftest import configured_vendor
from tests.docs.pages import DOCS, README, Block, all_pages, page_name, read_items
from tests.docs.running import Page
from tests.docs.shop import Order

TUTORIAL = DOCS / "tutorial.md"  # has a test of its own, in an empty project


def has_python(page: Path) -> bool:
    return any(isinstance(item, Block) and item.language == "python" for item in read_items(page))


@pytest.mark.flows
@pytest.mark.parametrize(
    "path", [path for path in all_pages() if path != TUTORIAL and has_python(path)], ids=page_name
)
def test_the_code_of_the_page_works(path: Path, run_page: Callable[[Path], Page]) -> None:
    run_page(path)


def test_the_view_of_the_readme_stores_order_and_job_together(
    run_page: Callable[[Path], Page],
) -> None:
    page = run_page(README)
    before = len(queue.list_jobs())
    request = RequestFactory().post("/", {"email": "ada@example.org", "total": "9.50"})
    assert page.modules["shop.views"].checkout(request).status_code == 200
    assert Order.objects.filter(email="ada@example.org").exists()
    assert queue.list_jobs()[0].task_name == "shop.tasks.send_receipt"
    assert len(queue.list_jobs()) == before + 1


def test_the_figures_of_the_page_on_deploying_can_be_read(
    run_page: Callable[[Path], Page],
) -> None:
    page = run_page(DOCS / "howto" / "deploy.md")

    answer = page.modules["shop.views"].metrics(RequestFactory().get("/"))

    lines = answer.content.decode().splitlines()
    assert 'flexiq_jobs{state="pending"} 0' in lines
    assert "flexiq_live_workers 0" in lines


def test_the_settings_the_urls_and_the_token_of_the_http_page_fit_together(
    run_page: Callable[[Path], Page], settings: Any
) -> None:
    page = run_page(DOCS / "howto" / "http.md")
    settings.FLEXIQ = {**settings.FLEXIQ, **page.modules["mysite.settings"].FLEXIQ}
    settings.ROOT_URLCONF = page.modules["mysite.urls"]
    client = Client(headers={"Authorization": f"Bearer {page.names['token']}"})
    assert client.get("/queue/stats").json()["counts"]["completed"] == 1


def test_every_block_says_what_it_is() -> None:
    known = {"python", "console", "sql", "ini", "dockerfile", "yaml", "html", "text", "json"}
    found = [
        f"{item} has the language {item.language!r}"
        for page in all_pages()
        for item in read_items(page)
        if isinstance(item, Block) and item.language not in known
    ]
    assert not found, f"Give each code block one of {sorted(known)}:\n" + "\n".join(found)


@pytest.mark.parametrize("path", [DOCS / "operations.md", DOCS / "runbook.md"], ids=page_name)
def test_the_sql_of_the_page_works(path: Path, db: None) -> None:
    statements = [
        item.text for item in read_items(path) if isinstance(item, Block) and item.language == "sql"
    ]
    assert statements
    for statement in statements:
        if "interval '" in statement and configured_vendor() != "postgresql":
            continue  # the page says so
        with connection.cursor() as cursor:
            cursor.execute(statement)
            cursor.fetchall()
