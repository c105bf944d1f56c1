"""What the code of the documentation runs in: a shop, and a queue that forgets it afterwards."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import django
import pytest
from django.db import connection

from flexiq_django import queue, signals
from tests.docs import shop as tables
from tests.docs.running import Page

SIGNALS = (
    signals.job_enqueued,
    signals.job_started,
    signals.job_settled,
    signals.worker_started,
    signals.worker_stopped,
)


@pytest.fixture
def mailer(settings: Any) -> None:
    """A mail backend that keeps what is sent, as Django 6.1 wants it configured."""
    if django.VERSION >= (6, 1):
        backend = "django.core.mail.backends.locmem.EmailBackend"
        settings.MAILERS = {"default": {"BACKEND": backend}}


@pytest.fixture
def shop(transactional_db: None, mailer: None) -> Iterator[None]:
    """The modules `shop`, `shop.models` and `shop.gateway`, and their tables."""
    before = set(sys.modules)
    package, gateway = ModuleType("shop"), ModuleType("shop.gateway")
    gateway.charge = lambda order_id: "paid"  # type: ignore[attr-defined]
    package.gateway, package.models = gateway, tables  # type: ignore[attr-defined]
    sys.modules.update({"shop": package, "shop.gateway": gateway, "shop.models": tables})
    with connection.schema_editor() as editor:
        for model in tables.TABLES:
            editor.create_model(model)
    yield
    with connection.schema_editor() as editor:
        for model in tables.TABLES:
            editor.delete_model(model)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {"shop", "mysite", "reports"}:
            del sys.modules[name]


@pytest.fixture
def forgetful_queue() -> Iterator[None]:
    """The default queue and the signals lose what the test declares."""
    tasks, schedules = dict(queue.tasks), dict(queue.schedules)
    receivers = [list(each.receivers) for each in SIGNALS]
    yield
    queue.tasks, queue.schedules = tasks, schedules
    for each, known in zip(SIGNALS, receivers, strict=True):
        each.receivers = known
        each.sender_receivers_cache.clear()


@pytest.fixture
def run_page(shop: None, forgetful_queue: None) -> Callable[[Path], Page]:
    """Run the code of a page; the page as it stands afterwards."""

    def run(path: Path) -> Page:
        page = Page(path)
        page.run()
        return page

    return run
