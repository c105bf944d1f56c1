"""The operator surface walked as curl would: over the network, beside a worker at work."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from flexiq_django import queue
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import keys
from tests.http.conftest import RULES, token
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

Answer = tuple[int, Any]


class Curl:
    """Sends requests to a server, each with its own headers."""

    def __init__(self, base: str) -> None:
        self._base = base

    def __call__(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """The status, and what the JSON says."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self._base}/queue/{path}", method=method, headers=named
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.fixture
def curl(transactional_db: None, namespace: str, settings: Any) -> Iterator[Curl]:
    """A server with the surface switched on.

    Started here and not by pytest-django's fixture: that one may start before the test database is
    there, would take it for one in memory, and would share one connection between threads.
    """
    settings.FLEXIQ = {**settings.FLEXIQ, "OPERATOR": RULES}
    settings.ALLOWED_HOSTS = ["localhost"]
    server = LiveServer("localhost")
    yield Curl(server.url)
    server.stop()


@pytest.fixture
def admin(curl: Curl) -> Callable[..., Answer]:
    """The same with a token that has the scope."""
    return lambda path, method="GET": curl(path, method, Authorization=f"Bearer {token('admin')}")


def wait_for(admin: Callable[..., Answer], job_id: str, **fields: Any) -> dict[str, Any]:
    """The job, once the server says this of it."""

    def look() -> dict[str, Any] | None:
        _, job = admin(f"jobs/{job_id}")
        return job if all(job[name] == value for name, value in fields.items()) else None

    return wait_until(look, 30, f"job {job_id} with {fields}")


def test_a_crash_a_forced_requeue_and_a_cancel(
    workers: Workers, admin: Callable[..., Answer]
) -> None:
    workers.start()

    # A job crashes and is in the dead-letter list.
    crashed = tasks.raise_one.delay("ValueError").id
    job = wait_for(admin, crashed, status="failed")
    assert (job["attempt"], job["max_attempts"], job["error"]) == (1, 1, "ValueError: plain")
    status, listed = admin("jobs?status=failed")
    assert (status, [each["id"] for each in listed["data"]]) == (200, [crashed])

    # Too early; forced; it runs once more, and no more than that.
    status, refused = admin(f"jobs/{crashed}/requeue", "POST")
    assert (status, "may still be executing it" in refused["detail"]) == (409, True)
    status, job = admin(f"jobs/{crashed}/requeue?force=true", "POST")
    assert (status, job["max_attempts"]) == (200, 2)
    job = wait_for(admin, crashed, status="failed", attempt=2)
    assert job["max_attempts"] == 2

    # A job is cancelled; requeued it is cancelled again, visibly; cleared it runs.
    cancelled = tasks.note.apply_async(("ran",), delay=3600).id
    assert queue.cancel_job(cancelled)
    assert admin(f"jobs/{cancelled}/requeue", "POST")[0] == 200
    job = wait_for(admin, cancelled, status="cancelled", attempt=1)
    assert job["error"] == "cancelled by request"
    assert keys() == {}
    assert admin(f"jobs/{cancelled}/requeue?clear_cancellation=true", "POST")[0] == 200
    wait_for(admin, cancelled, status="completed", attempt=2)
    assert keys() == {"ran": 1}

    # What has completed gets no more.
    assert admin(f"jobs/{cancelled}/requeue", "POST")[0] == 400
    status, stats = admin("stats")
    counts = {word: number for word, number in stats["counts"].items() if number}
    assert (status, counts) == (200, {"completed": 1, "failed": 1})
    assert stats["oldest_queued_age_seconds"] is None


def session_of(*permissions: str) -> dict[str, str]:
    """The cookies and the CSRF header of a member of staff, as a browser would send them."""
    user = User.objects.create_user(f"user-{User.objects.count()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    secret = "t" * 32
    cookie = f"sessionid={client.cookies['sessionid'].value}; csrftoken={secret}"
    return {"Cookie": cookie, "X_CSRFToken": secret}


def test_who_is_let_in(curl: Curl, settings: Any) -> None:
    job = tasks.note.delay("never runs").id
    assert queue.cancel_job(job)
    requeue = f"jobs/{job}/requeue"

    assert curl("stats")[0] == 401
    assert curl(requeue, "POST")[0] == 401
    assert curl("stats", Authorization="Bearer made.up.token")[0] == 401
    assert curl("stats", Authorization=f"Bearer {token('read')}")[0] == 403
    assert curl("stats", **session_of())[0] == 403
    assert curl(requeue, "POST", **session_of())[0] == 403

    staff = session_of("operate_queue")
    assert curl("stats", **staff)[0] == 200
    assert curl(requeue, "POST", Cookie=staff["Cookie"])[0] == 403
    assert curl(requeue, "POST", **staff)[0] == 200

    assert curl("nothing", **staff)[0] == 404
    assert curl("stats", "DELETE", **staff)[0] == 405
    settings.FLEXIQ = {**settings.FLEXIQ, "OPERATOR": {**RULES, "ENABLED": False}}
    assert curl("stats", **staff) == (503, {"detail": "the operator surface is not enabled here"})
    assert curl(requeue, "POST", **staff)[0] == 503
