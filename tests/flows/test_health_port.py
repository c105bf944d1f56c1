"""The HTTP endpoint of real workers: what makes probes fail, and what must not."""

import os
import signal
import socket

import pytest
from django.core.management import CommandError, call_command

from flexiq_django import queue
from flexiq_django.models import Worker
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.gates import Gate
from tests.probing import Probe
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.flows,
    pytest.mark.mechanics,
    pytest.mark.django_db(transaction=True),
]

#: Any free port of this machine.
PORT = ("--health-port", "0", "--health-host", "127.0.0.1")
BLOCKS_ITS_LOOP = {"DJANGO_SETTINGS_MODULE": "tests.flows.blocking_settings"}


def test_a_worker_at_work_is_live_and_ready_until_it_drains(workers: Workers, gate: Gate) -> None:
    worker = workers.start(*PORT)
    probe = Probe(worker)

    status, body = probe.ask("/live")
    assert status == 200
    assert 0 <= body.pop("turn_age_seconds") < 30
    assert body == {"status": "ok", "reasons": [], "processes": 1}
    assert probe.status("/ready?from=kubelet") == 200

    tasks.hold.delay(str(gate))
    gate.wait_until_reached()
    worker.send_signal(signal.SIGTERM)
    worker.wait_for_log("drains")
    assert probe.ask("/ready")[0] == 503
    assert probe.reasons("/ready") == ["draining"]
    assert probe.status("/live") == 200
    gate.open()
    assert worker.wait() == 0


def test_garbage_is_refused_and_survived(workers: Workers) -> None:
    worker = workers.start(*PORT)
    probe = Probe(worker)

    assert probe.ask("/") == (404, {"status": "refused"})
    assert probe.status("/live/../../etc/passwd") == 404
    for garbage in (
        b"\x16\x03\x01\x00\xff\xfe\r\n\r\n",
        b"POST /live HTTP/1.1\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /ready",
        b"",
    ):
        with socket.create_connection(("127.0.0.1", probe.port), 20) as client:
            client.sendall(garbage)

    assert probe.status("/live") == 200
    assert worker.terminate() == 0
    assert "Traceback" not in worker.log


def test_a_claim_loop_that_hangs_is_not_live(workers: Workers, gate: Gate) -> None:
    worker = workers.start(
        *PORT,
        "--max-turn-age",
        "1.5",
        environment={**BLOCKS_ITS_LOOP, "FLEXIQ_TEST_GATE": str(gate)},
        HEARTBEAT_SECONDS=0.3,
    )
    probe = Probe(worker)
    gate.wait_until_reached("loop")

    wait_until(lambda: probe.status("/live") == 503, 20)
    (reason,) = probe.reasons("/live")
    assert reason.startswith("the claim loop has not turned for ")
    assert probe.status("/ready") == 503
    # Its heart beats on, and tells the fleet.
    wait_until(lambda: queue.workers()[0]["turned_at"] + 1_000 < queue.workers()[0]["heartbeat_at"])

    gate.open()
    wait_until(lambda: probe.status("/live") == 200, 20)


@pytest.mark.slow
def test_a_supervisor_answers_for_all_its_processes(workers: Workers) -> None:
    fleet = workers.launch("--processes", "2", *PORT, "--max-turn-age", "6")
    probe = Probe(fleet)
    assert probe.status("/live") == 200
    wait_until(lambda: probe.status("/ready") == 200, 30)
    assert probe.ask("/ready")[1]["processes"] == 2

    first, second = fleet.children()
    os.kill(first, signal.SIGSTOP)
    wait_until(lambda: probe.status("/live") == 503, 20)
    wait_until(lambda: len(probe.reasons("/live")) == 1, 20, "the other one turns")
    os.kill(first, signal.SIGCONT)
    wait_until(lambda: probe.status("/ready") == 200, 20)

    os.kill(second, signal.SIGKILL)
    wait_until(lambda: probe.status("/ready") == 503, 20)
    wait_until(lambda: probe.status("/live") == 200, 20, "a dead process is no reason")
    wait_until(lambda: probe.status("/ready") == 200, 30)
    assert fleet.terminate() == 0


@pytest.mark.parametrize("option", ["--health-host", "--max-turn-age"])
def test_options_of_a_port_need_one(option: str) -> None:
    with pytest.raises(CommandError, match=f"^{option} needs --health-port$") as raised:
        call_command("flexiq_worker", option, "1")
    assert raised.value.returncode == 2


def test_a_port_in_use_is_one_line(workers: Workers) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = workers.launch("--health-port", str(port), "--health-host", "127.0.0.1")
        assert worker.wait() == 1
        fleet = workers.launch(
            "--processes", "2", "--health-port", str(port), "--health-host", "127.0.0.1"
        )
        assert fleet.wait() == 1
    for log in (worker.log, fleet.log):
        assert f"cannot answer probes on 127.0.0.1 port {port}: Address already in use" in log
        assert log.count("\n") == 1
    assert not Worker.objects.exists()
