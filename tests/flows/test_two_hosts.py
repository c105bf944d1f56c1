"""Two hosts work on one PostgreSQL; one is cut off from the network, and comes back."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from flexiq_django import Queue
from flexiq_django.models import Job, TaskLog
from tests.conftest import configured_vendor
from tests.flows import tasks
from tests.flows.conftest import SHORT_LEASE
from tests.flows.evidence import assert_quiet
from tests.flows.gates import Gate
from tests.flows.hosts import Host, two_hosts
from tests.flows.private_servers import ALIAS, PrivatePostgreSQL, PrivateServer, private_server
from tests.processes import WorkerProcess
from tests.testapp.models import Mark
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.slow, pytest.mark.timeout(180)]

Start = Callable[[Host], WorkerProcess]


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    if configured_vendor() != "postgresql":
        pytest.skip("one server is enough to show it")
    with two_hosts() as built:
        yield built


@pytest.fixture
def server(hosts: tuple[Host, Host], django_db_blocker: Any) -> Iterator[PrivateServer]:
    """A server that both hosts reach, each at its own address."""

    class OpenPostgreSQL(PrivatePostgreSQL):
        addresses = {host.ours: host.network for host in hosts}

    with django_db_blocker.unblock(), private_server(OpenPostgreSQL) as started:
        yield started


@pytest.fixture
def start(server: PrivateServer, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Start a worker on a host; the tables are there."""
    started: list[WorkerProcess] = []

    def run(host: Host, command: str, *arguments: str) -> WorkerProcess:
        url = server.url.replace("127.0.0.1", host.ours)
        started.append(
            WorkerProcess(
                *arguments,
                command=command,
                log_path=tmp_path / f"process-{len(started) + 1}.log",
                settings={"NAMESPACE": namespace, **SHORT_LEASE},
                environment={
                    "FLEXIQ_TEST_DATABASE_URL": url,
                    "FLEXIQ_TEST_DATABASE_NAME": server.database,
                },
                prefix=host.prefix,
            )
        )
        return started[-1]

    def start_there(host: Host) -> WorkerProcess:
        if not started:
            migrate = run(host, "migrate", "--verbosity=0")
            assert migrate.wait(60) == 0, migrate.log
        worker = run(host, "flexiq_worker", "--concurrency", "1")
        worker.wait_for_log(r"worker \S+ started")
        return worker

    yield start_there
    connections[ALIAS].close()
    for process in started:
        process.kill()
        print(process.log_tail())  # noqa: T201 - captured, and shown when the test failed


def sessions_of(host: Host) -> int:
    """How many connections the server still holds for a host."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE client_addr = %s::inet", [host.address]
        )
        return int(cursor.fetchone()[0])


def test_a_host_vanishes_and_comes_back(
    hosts: tuple[Host, Host], start: Start, namespace: str, gate: Gate
) -> None:
    lost_host, other_host = hosts
    lost = start(lost_host)
    there = Queue(namespace=namespace, using=ALIAS)
    there.enqueue_many(tasks.quick, [()] * 300)  # quick ones: from now on it fetches many
    wait_until(lambda: there.stats()["completed"] == 300, 30)
    job = there.enqueue(tasks.hold_first, (str(gate),), priority=5, delay=0.5, max_retries=3)
    notes = there.enqueue_many(tasks.note, [(f"{number}",) for number in range(20)], delay=0.5)
    gate.wait_until_reached()

    lost_host.cut_off()
    held = Job.objects.using(ALIAS).filter(id__in=[each.id for each in notes], status="running")
    assert held.count() > 0  # fetched in advance, and now out of reach
    other = start(other_host)

    assert job.result(30) == "attempt 2"
    for each in notes:
        each.result(20)
    wait_until(lambda: sessions_of(lost_host) == 0, 20, "the server to give the lost host up")
    wait_until(lambda: "is away" in lost.log, 20, "the lost worker to give the server up")
    gate.open()  # its body ends, and its slot is free for what it holds
    assert other.terminate() == 0
    lost_host.join_again()

    assert there.enqueue(tasks.give, (7,)).result(30) == 7
    assert lost.exit_code is None
    wait_until(lambda: f"late result of job {job.id}" in lost.log, 20)
    assert lost.log.count(f"late result of job {job.id}") == 1
    assert job.result() == "attempt 2"
    assert job.progress == 20
    lines = TaskLog.objects.using(ALIAS).filter(job_id=job.id)
    assert list(lines.values_list("message", flat=True)) == ["attempt 2"]
    keys = list(Mark.objects.using(ALIAS).values_list("key", flat=True))
    assert sorted(keys, key=int) == [f"{number}" for number in range(20)]
    assert lost.terminate() == 0
    assert_quiet(lost, other)
