"""The executor of docs/howto/own-executor.md, as it stands there: killed, frozen, exactly once."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from flexiq_django import db as jobs
from flexiq_django.models import TaskMetric
from tests.docs.pages import DOCS, Block, read_items
from tests.flows.evidence import keys
from tests.flows.gates import Gate
from tests.processes import ROOT, WorkerProcess
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

#: What the executor is to do here; the page has a shorter one.
RENDERING = """
import os

from tests.flows.gates import Gate
from tests.testapp.models import Mark


def render(data, lost):
    Mark.objects.create(key=data["name"])
    if data["gate"]:
        Gate(data["gate"]).pass_through(os.getpid())
    return data["name"]
"""


@pytest.fixture
def start_executor(
    tmp_path: Path, start_worker: Callable[..., WorkerProcess]
) -> Callable[[], WorkerProcess]:
    """Start the executor of the page."""
    (script,) = (
        item.text
        for item in read_items(DOCS / "howto" / "own-executor.md")
        if isinstance(item, Block) and item.path == "shop/executor.py"
    )
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "executor.py").write_text(script)
    (folder / "rendering.py").write_text(RENDERING)
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "LEASE": "2"}
    return lambda: start_worker(program=("-m", "shop.executor"), environment=environment)


def test_every_job_ends_once_though_executors_are_killed_and_frozen(
    start_executor: Callable[[], WorkerProcess], gate: Gate, second_gate: Gate
) -> None:
    place = jobs.open_database(namespace="pictures")
    hard = jobs.insert_job(place, {"name": "hard", "gate": str(gate)}, priority=1)
    easy = [jobs.insert_job(place, {"name": f"easy-{n}", "gate": None}) for n in range(3)]

    killed = start_executor()
    gate.wait_until_reached(killed.pid)
    killed.send_signal(signal.SIGKILL)
    frozen = start_executor()
    gate.wait_until_reached(frozen.pid)
    frozen.freeze()
    last = start_executor()
    gate.wait_until_reached(last.pid)
    gate.open()
    wait_until(lambda: jobs.count_by_status(place, "completed") == 4)
    last.wait_for_log(f"{hard} attempt 3 kept")
    frozen.thaw()
    frozen.wait_for_log(f"{hard} attempt 2 refused")

    details = jobs.get_job_details(place, hard)
    assert details is not None
    assert (details.status, details.result, details.worker_id) == (
        "completed", "hard", f"executor-{last.pid}"
    )  # fmt: skip
    assert [each.worker_id for each in details.failed_attempts] == [
        f"executor-{killed.pid}", f"executor-{frozen.pid}"
    ]  # fmt: skip
    assert keys() == {"hard": 3, "easy-0": 1, "easy-1": 1, "easy-2": 1}
    assert sorted(map(str, TaskMetric.objects.values_list("job_id", flat=True))) == sorted(
        [hard, *easy]
    )

    asked = jobs.insert_job(place, {"name": "asked", "gate": str(second_gate)}, queue="other")
    wait_until(lambda: second_gate.arrivals() == 1)
    assert place.queue.cancel_running_job(asked)
    wait_until(lambda: jobs.count_by_status(place, "cancelled") == 1)
    second_gate.open()
    wait_until(lambda: f"{asked} attempt 1 refused" in last.log + frozen.log)


def test_the_script_is_as_short_as_promised() -> None:
    (script,) = (
        item.text
        for item in read_items(DOCS / "howto" / "own-executor.md")
        if isinstance(item, Block) and item.path == "shop/executor.py"
    )
    assert len([line for line in script.splitlines() if line.strip()]) <= 41  # with its file name
