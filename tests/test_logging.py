"""The filter and the formatter that a project names in its LOGGING."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from flexiq_django.api.context import set_current
from flexiq_django.core.records import ClaimedJob
from flexiq_django.logging import JobContextFilter, JsonFormatter, about, log_to_stderr, set_worker
from tests.worker.running import make_attempt

JOB = ClaimedJob(
    id=uuid4(), queue="mail", task_name="shop.send", payload="", attempt=3, retry_count=2,
    max_retries=3, timeout_ms=None, deployment_id=None, metadata=None, session_id=None,
    is_expired=False, token=1, lane="mail",
)  # fmt: skip


class Line:
    """A logger whose only line is read as JSON."""

    def __init__(self, *filters: logging.Filter) -> None:
        self.out = io.StringIO()
        handler = logging.StreamHandler(self.out)
        handler.setFormatter(JsonFormatter())
        for each in filters:
            handler.addFilter(each)
        self.logger = logging.Logger("shop")  # noqa: LOG001 - one that nobody else has
        self.logger.addHandler(handler)

    def read(self) -> dict[str, Any]:
        assert self.out.getvalue().count("\n") == 1
        found: dict[str, Any] = json.loads(self.out.getvalue())
        return found


@pytest.fixture
def in_job() -> Iterator[None]:
    """This thread runs the body of the job, in a worker."""
    set_worker("host-1")
    set_current(make_attempt(JOB))
    yield
    set_current(None)
    set_worker(None)


CONTEXT = {
    "job_id": str(JOB.id), "task": "shop.send", "queue": "mail", "attempt": 3, "worker": "host-1",
}  # fmt: skip


def test_a_line_in_a_body_is_about_its_job(in_job: None) -> None:
    line = Line(JobContextFilter())
    line.logger.info("hello %s", "there")

    found = line.read()
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "INFO", "logger": "shop", "message": "hello there", "exception": None, **CONTEXT,
    }  # fmt: skip


def test_a_line_elsewhere_is_about_none() -> None:
    line = Line(JobContextFilter())
    line.logger.info("hello")

    assert {line.read()[key] for key in CONTEXT} == {None}


def test_what_a_line_says_itself_stays(in_job: None) -> None:
    line = Line(JobContextFilter())
    line.logger.info("hello", extra=about(JOB._replace(attempt=9)))

    assert line.read()["attempt"] == 9


def test_without_the_filter_the_keys_are_the_same() -> None:
    line = Line()
    line.logger.info("hello", extra=about(JOB))

    assert {**line.read(), "worker": "host-1"}.items() >= CONTEXT.items()


def test_anything_is_one_line_of_json() -> None:
    line = Line(JobContextFilter())
    try:
        raise ValueError("bad\nworse \ud800")
    except ValueError:
        line.logger.exception("two\nlines", extra={"queue": object()})

    found = line.read()
    assert found["message"] == "two\nlines"
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith("ValueError: bad\nworse \ud800")


def test_the_module_needs_no_django_to_be_set_up() -> None:
    program = "import flexiq_django.logging, sys; sys.exit('flexiq_django.models' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_second_worker_in_a_process_gets_its_own_format(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("flexiq_django")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", False)
    for form in (None, "json", "text"):
        log_to_stderr(1, form)
        logger.warning("hello")

    first, second, third = capsys.readouterr().err.splitlines()
    assert first.endswith("WARNING hello")
    assert json.loads(second)["message"] == "hello"
    assert third.endswith("WARNING hello")
