"""Every button of the admin, clicked in a real browser, with a live worker to show its effect."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from flexiq_django import queue
from flexiq_django.models import ArchivedJob, DeadLetter, Job, QueueState, ReplayHistory, Setting
from tests.admin.test_browser import ARGUMENTS, CHROMIUM, site, sync_api
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.gates import Gate
from tests.waiting import wait_until

__all__ = ["site"]  # the fixture

pytestmark = [
    pytest.mark.flows,
    pytest.mark.slow,
    pytest.mark.mechanics,
    pytest.mark.timeout(240),
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]

HOSTILE = "<script>document.title='owned'</script>"


P = ParamSpec("P")
R = TypeVar("R")


def at_the_desk(method: Callable[Concatenate["Desk", P], R]) -> Callable[Concatenate["Desk", P], R]:
    """Run a method in the browser's thread: its driver keeps an event loop there, which Django's
    database code refuses to work beside."""

    @wraps(method)
    def call(self: "Desk", *args: P.args, **kwargs: P.kwargs) -> R:
        if threading.get_ident() == self.thread:
            return method(self, *args, **kwargs)
        return self.executor.submit(method, self, *args, **kwargs).result(60)

    return call


class Desk:
    """A person at the pages."""

    def __init__(self, executor: ThreadPoolExecutor, site: str, cookie: Any) -> None:
        self.executor = executor
        self.thread = 0
        self.complaints: list[str] = []
        self._site = site
        executor.submit(self._sit_down, cookie).result(60)

    def _sit_down(self, cookie: Any) -> None:
        self.thread = threading.get_ident()
        self._playwright = sync_api.sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = self._browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([cookie])
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def _click(self, what: Any) -> None:
        with self.page.expect_navigation():
            what.click()

    @at_the_desk
    def leave(self) -> None:
        """Close the browser."""
        self._browser.close()
        self._playwright.stop()

    @at_the_desk
    def content(self) -> str:
        """The page as HTML."""
        return str(self.page.content())

    @at_the_desk
    def title(self) -> str:
        """The title of the page."""
        return str(self.page.title())

    @at_the_desk
    def go_to(self, label: str) -> None:
        """Follow a link."""
        self._click(self.page.get_by_role("link", name=label))

    @at_the_desk
    def open(self, model: str, row: Any = None) -> None:
        """The list of a model, or the page of one row."""
        name = f"admin:flexiq_django_{model}_{'changelist' if row is None else 'change'}"
        self.page.goto(self._site + reverse(name, args=[] if row is None else [row]))

    @at_the_desk
    def press(self, label: str, *, sure: bool = False) -> str:
        """Press a button on the page of a row, and on the page that asks; what was said."""
        self._click(self.page.get_by_role("button", name=label, exact=True))
        if sure:
            self._click(self.page.get_by_role("button", name=label, exact=True))
        return self.said()

    @at_the_desk
    def choose(self, label: str, *keys: Any, sure: bool = False) -> str:
        """Tick rows of the list, choose what to do and press Go; what was said."""
        for key in keys:
            self.page.locator(f'input.action-select[value="{key}"]').check()
        self.page.locator('select[name="action"]').select_option(label=label)
        self._click(self.page.locator('button[name="index"]'))
        if sure:
            self._click(self.page.get_by_role("button", name=label, exact=True))
        return self.said()

    @at_the_desk
    def follow(self, label: str, *, sure: bool = False, **entered: str) -> str:
        """Follow a link above the list, fill the form in and send it; what was said."""
        self._click(self.page.get_by_role("link", name=label, exact=True))
        return self.send(label, sure=sure, **entered)

    @at_the_desk
    def send(self, label: str, *, sure: bool = False, **entered: str) -> str:
        """Fill the form of a verb in and send it; what was said."""
        for name, value in entered.items():
            self.page.locator(f'[name="{name}"]:visible').fill(value)
        self._click(self.page.get_by_role("button", name=label, exact=True))
        if sure:
            self._click(self.page.get_by_role("button", name=label, exact=True))
        return self.said()

    @at_the_desk
    def said(self) -> str:
        """The messages on the page."""
        return " ".join(self.page.locator(".messagelist li").all_inner_texts())


@pytest.fixture
def desk(site: str) -> Iterator[Desk]:
    """A superuser's browser."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site}
    with ThreadPoolExecutor(1, thread_name_prefix="browser") as executor:
        desk = Desk(executor, site, cookie)
        yield desk
        assert desk.title() != "owned"
        desk.leave()
    assert desk.complaints == []


def row(job_id: str) -> Job:
    return Job.objects.get(id=job_id)


def pressed() -> list[str]:
    return list(LogEntry.objects.order_by("id").values_list("change_message", flat=True))


def test_jobs(desk: Desk, workers: Workers, gate: Gate, second_gate: Gate) -> None:
    workers.start()
    queue.pause("later")
    waiting = queue.enqueue(tasks.give, (1,), queue="later", metadata=HOSTILE)
    endless = queue.enqueue(tasks.work_until_cancelled, (str(gate),))
    held = queue.enqueue(tasks.hold, (str(second_gate),), max_retries=3)
    gate.wait_until_reached()
    second_gate.wait_until_reached()

    desk.open("job")
    assert "1 job was cancelled." in desk.choose("Cancel", waiting.id, sure=True)
    assert row(waiting.id).status == "cancelled"

    desk.open("job", endless.id)
    assert "asked to stop" in desk.press("Ask to stop")
    wait_until(lambda: row(endless.id).status == "cancelled", 30)

    desk.open("job", held.id)
    assert "1 job is pending again." in desk.press("Requeue", sure=True)
    second_gate.open()
    assert held.result(30) == "attempt 2"

    desk.open("job", held.id)
    assert "1 new job with the same arguments" in desk.press("Replay")
    again = ReplayHistory.objects.get(original_job_id=held.id)
    assert again.actor == "root"
    wait_until(lambda: row(str(again.replay_job_id)).status == "complete", 30)

    assert queue.archive(older_than=-1) >= 3
    archived = ArchivedJob.objects.get(id=held.id)
    desk.open("archivedjob", archived.pk)
    assert "1 new job with the same arguments" in desk.press("Replay")
    wait_until(lambda: queue.stats()["completed"] == 1, 30)
    assert pressed() == ["Cancel", "Ask to stop", "Requeue", "Replay", "Replay"]


def test_dead_letters(desk: Desk, workers: Workers) -> None:
    workers.start()
    for _ in range(3):
        queue.enqueue(tasks.refuse, (HOSTILE,))
    wait_until(lambda: queue.stats()["dead"] == 3, 30)
    first, second, third = DeadLetter.objects.order_by("id")

    desk.open("deadletter")
    assert "1 job was enqueued again" in desk.choose("Retry", first.pk)
    wait_until(lambda: DeadLetter.objects.filter(dlq_retry_count=1).count() == 1, 30)

    desk.open("deadletter", second.pk)
    assert "1 new job" in desk.press("Replay the job, keep the letter")
    wait_until(lambda: queue.stats()["dead"] == 5, 30)
    assert DeadLetter.objects.filter(pk=second.pk).exists()

    desk.open("deadletter", third.pk)
    assert "1 dead letter was deleted." in desk.press("Delete", sure=True)
    assert not DeadLetter.objects.filter(pk=third.pk).exists()

    desk.open("deadletter")
    left = DeadLetter.objects.count()
    assert left == 3
    said = desk.follow("Purge old dead letters", sure=True, days="0")
    assert f"{left} dead letters were deleted." in said
    assert not DeadLetter.objects.exists()


def test_queues(desk: Desk, workers: Workers) -> None:
    workers.start()
    desk.open("queuestate")
    assert "1 queue is paused" in desk.follow("Pause a queue", name="mail")
    jobs = [queue.enqueue(tasks.give, (number,), queue="mail") for number in range(3)]
    assert queue.enqueue(tasks.give, (9,)).result(30) == 9
    assert {row(job.id).status for job in jobs} == {"pending"}
    state = QueueState.objects.get(name="mail")

    desk.open("queuestate", state.pk)
    desk.press("Set limits")
    said = desk.send("Set limits", rate_limit="100/m", max_concurrent="2")
    assert "limits of 1 queue" in said
    state.refresh_from_db()
    assert (state.rate_limit, state.max_concurrent) == ("100/m", 2)

    desk.open("queuestate")
    assert "1 queue is open again." in desk.choose("Resume", state.pk)
    assert [job.result(30) for job in jobs] == [0, 1, 2]

    desk.open("queuestate", state.pk)
    assert "1 queue is paused" in desk.press("Pause")
    doomed = [queue.enqueue(tasks.give, (1,), queue="mail") for _ in range(4)]
    desk.open("queuestate")
    assert "4 pending jobs were cancelled." in desk.follow("Purge a queue", sure=True, name="mail")
    assert {row(job.id).error for job in doomed} == {"purged"}
    queue.enqueue(tasks.give, (1,), queue="mail")
    desk.open("queuestate", state.pk)
    assert "The pending jobs of 1 queue were cancelled." in desk.press("Purge", sure=True)

    desk.open("queuestate")
    assert "limits of 1 queue" in desk.follow("Limit a queue", name="slow", rate_limit="1/h")
    slow = [queue.enqueue(tasks.give, (number,), queue="slow") for number in range(2)]
    assert slow[0].result(30) == 0
    assert queue.enqueue(tasks.give, (9,)).result(30) == 9
    assert row(slow[1].id).status == "pending"


def test_settings(desk: Desk) -> None:
    desk.open("setting")
    said = desk.follow("Add a setting", key=HOSTILE, value="one\ntwo")
    assert "1 setting was added." in said
    entry = Setting.objects.get(key=HOSTILE)
    assert entry.value == "one\ntwo"

    desk.go_to(HOSTILE)
    desk.press("Edit")
    assert "1 setting was changed." in desk.send("Edit", value="three")
    assert queue.get_setting(HOSTILE) == "three"

    assert "1 setting was deleted." in desk.press("Delete", sure=True)
    assert queue.get_setting(HOSTILE) is None


def test_pages_that_only_show(desk: Desk, workers: Workers) -> None:
    job = queue.enqueue(tasks.give, (1,))
    workers.burst()
    queue.replay(job.id)

    for model, text in (("replayhistory", job.id), ("taskmetric", "tests.flows.tasks.give")):
        desk.open(model)
        assert text in desk.content()
        assert '<select name="action"' not in desk.content()
