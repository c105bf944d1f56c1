"""What real workers log, line by line."""

import json
from typing import Any

import pytest

from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.gates import Gate

pytestmark = [
    pytest.mark.flows,
    pytest.mark.mechanics,
    pytest.mark.django_db(transaction=True),
]

KEYS = [
    "time", "level", "logger", "message", "job_id", "task", "queue", "attempt", "worker",
    "exception",
]  # fmt: skip


def lines_of(log: str) -> list[dict[str, Any]]:
    """The lines of a log, each of which is JSON with the same keys."""
    found = [json.loads(line) for line in log.splitlines()]
    assert {tuple(each) for each in found} == {tuple(KEYS)}
    return found


def settings_of(name: str) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": f"tests.flows.{name}"}


def test_lines_of_the_worker_name_their_job(workers: Workers, gate: Gate) -> None:
    worker = workers.start(
        "--log-format", "json", "--verbosity", "2",
        environment=settings_of("plain_logging_settings"),
    )  # fmt: skip
    job = tasks.log_and_sleep.apply_async(args=[str(gate)], queue="parcels")
    worker.wait_for_log("is given up")
    gate.open()
    worker.wait_for_log("ended: ")
    worker.terminate()

    # What others log is none of its business: Python shows their warnings as they are.
    lines = lines_of(worker.log.replace("parcel\nlost\n", ""))
    assert len({each["worker"] for each in lines} - {None}) == 1
    about = [each for each in lines if each["job_id"] == job.id]
    assert {each["message"].partition(")")[2].strip() for each in about} >= {
        "begins attempt 1", "runs longer than its 200 ms and is given up", "ended: failed",
    }  # fmt: skip
    for each in about:
        assert (each["task"], each["queue"], each["attempt"]) == (job.task_name, "parcels", 1)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_lines_of_a_task_name_its_job(workers: Workers, gate: Gate, processes: str) -> None:
    gate.open()
    job = tasks.log_and_sleep.delay(str(gate))
    worker = workers.burst(
        "--log-format", "json", "--processes", processes,
        environment=settings_of("json_logging_settings"),
    )  # fmt: skip

    lines = lines_of(worker.log)
    (own,) = [each for each in lines if each["logger"] == "shop"]
    assert (own["message"], own["job_id"], own["attempt"]) == ("parcel\nlost", job.id, 1)
    assert own["worker"]
    assert any(each["message"].startswith("--log-format changes nothing") for each in lines)
