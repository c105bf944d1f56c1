"""The database stops and comes back: the worker stays, and every job ends well."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from flexiq_django import Queue
from flexiq_django.models import Job
from tests.conftest import configured_vendor
from tests.flows import tasks
from tests.flows.evidence import assert_quiet
from tests.flows.gates import Gate
from tests.flows.private_servers import ALIAS, SERVERS, PrivateServer, private_server
from tests.probing import Probe
from tests.processes import WorkerProcess
from tests.testapp.models import Mark
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.slow, pytest.mark.timeout(300)]

Start = Callable[..., WorkerProcess]


@pytest.fixture(scope="module")
def server(django_db_blocker: Any) -> Iterator[PrivateServer]:
    """A server that only the tests of this module use. They never touch the test database."""
    if configured_vendor() == "sqlite3":
        pytest.skip("SQLite has no server that could stop")
    with django_db_blocker.unblock(), private_server(SERVERS[configured_vendor()]) as started:
        yield started


@pytest.fixture
def there(server: PrivateServer, namespace: str, tmp_path: Path) -> Queue:
    """The queue on the private server, for this process; nothing is in it."""
    migrate = WorkerProcess(
        "--verbosity=0",
        command="migrate",
        log_path=tmp_path / "migrate.log",
        environment=environment_of(server),
    )
    assert migrate.wait(60) == 0, migrate.log
    for model in (Job, Mark):
        model.objects.using(ALIAS).all().delete()
    return Queue(namespace=namespace, using=ALIAS)


@pytest.fixture
def launch(server: PrivateServer, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Start workers on the private server; they are dead when the test ends."""
    started: list[WorkerProcess] = []

    def launch_there(*arguments: str) -> WorkerProcess:
        worker = WorkerProcess(
            *arguments,
            log_path=tmp_path / f"worker-{len(started) + 1}.log",
            settings={"NAMESPACE": namespace},
            environment=environment_of(server),
        )
        started.append(worker)
        return worker

    yield launch_there
    connections[ALIAS].close()
    for worker in started:
        worker.kill()
        print(worker.log_tail())  # noqa: T201 - captured, and shown when the test failed


@pytest.fixture
def start(launch: Start) -> Start:
    """The same, ready to claim."""

    def start_there(*arguments: str) -> WorkerProcess:
        worker = launch(*arguments)
        worker.wait_for_log(r"worker \S+ started")
        return worker

    return start_there


def environment_of(server: PrivateServer) -> dict[str, str]:
    return {
        "FLEXIQ_TEST_DATABASE_URL": server.url,
        "FLEXIQ_TEST_DATABASE_NAME": server.database,
    }


def status_of(job_id: str) -> str:
    return Job.objects.using(ALIAS).get(id=job_id).status


def test_probes_tell_an_outage_from_a_worker_that_hangs(
    server: PrivateServer, start: Start, there: Queue
) -> None:
    worker = start("--health-port", "0", "--health-host", "127.0.0.1", "--max-turn-age", "3")
    probe = Probe(worker)
    assert probe.status("/ready") == 200

    connections[ALIAS].close()
    server.stop(at_once=True)
    wait_until(lambda: probe.reasons("/ready") == ["the database is away"], 60)
    # Long after a loop that does not turn would count as hanging, a restart would still not help.
    wait_until(lambda: "next try in 3.2 s" in worker.log, 60)
    assert probe.status("/live") == 200

    server.start()
    wait_until(lambda: probe.status("/ready") == 200, 60)
    assert there.enqueue(tasks.give, (1,)).result(30) == 1
    # No other worker should be told that this one hung.
    assert there.workers()[0]["turned_at"] + 3_000 > there.workers()[0]["heartbeat_at"]


def restart(server: PrivateServer, worker: WorkerProcess, *, at_once: bool) -> None:
    """Stop the server until the worker has noticed, and start it again."""
    noticed = worker.log.count("is away")
    connections[ALIAS].close()
    server.stop(at_once=at_once)
    wait_until(lambda: worker.log.count("is away") >= noticed + 3, 60, "the worker to notice")
    server.start()


@pytest.mark.parametrize("at_once", [False, True], ids=["fast", "immediate"])
def test_an_idle_worker_works_on_after_an_outage(
    server: PrivateServer, start: Start, there: Queue, at_once: bool
) -> None:
    worker = start()
    assert there.enqueue(tasks.give, (1,)).result(20) == 1

    restart(server, worker, at_once=at_once)

    assert there.enqueue(tasks.give, (2,)).result(30) == 2
    assert there.enqueue(tasks.note, ("note",), delay=0.5).result(30) is None
    assert worker.exit_code is None
    assert worker.terminate() == 0
    assert_quiet(worker)


@pytest.mark.parametrize("at_once", [False, True], ids=["fast", "immediate"])
def test_jobs_in_hand_complete_after_an_outage(
    server: PrivateServer, start: Start, there: Queue, gate: Gate, at_once: bool
) -> None:
    worker = start("--concurrency", "3")
    held = there.enqueue_many(tasks.hold, [(str(gate),)] * 2)
    waiting = there.enqueue_many(tasks.note, [(f"{number}",) for number in range(50)])
    gate.wait_until_reached()

    connections[ALIAS].close()
    server.stop(at_once=at_once)
    gate.open()  # the bodies end while there is nobody to tell
    wait_until(lambda: worker.log.count("is away") >= 3, 60)
    server.start()

    assert [job.result(40) for job in held] == ["attempt 1"] * 2
    for job in waiting:
        job.result(40)
    assert worker.exit_code is None
    marks = Mark.objects.using(ALIAS).values_list("key", flat=True)
    assert sorted(set(marks), key=int) == [f"{number}" for number in range(50)]
    assert worker.terminate() == 0


def test_a_transactional_job_survives_an_outage(
    server: PrivateServer, start: Start, there: Queue, gate: Gate
) -> None:
    worker = start("--concurrency", "1")
    job = there.enqueue(tasks.hold_first_together, (str(gate),), max_retries=3)
    gate.wait_until_reached()

    connections[ALIAS].close()
    server.stop(at_once=True)
    gate.open()
    wait_until(lambda: worker.log.count("is away") >= 3, 60)
    server.start()

    assert job.result(60) == "attempt 2"
    marks = Mark.objects.using(ALIAS).filter(key="together").values_list("value", flat=True)
    assert list(marks) == ["attempt 2"]
    assert worker.exit_code is None


def test_many_short_outages_lose_nothing(server: PrivateServer, start: Start, there: Queue) -> None:
    worker = start("--processes", "2")
    for number in range(3):
        there.enqueue_many(
            tasks.note, [(f"{number}-{each}",) for each in range(300)], max_retries=20
        )
        some = 300 * number + 50
        wait_until(lambda some=some: there.stats()["completed"] >= some, 60)
        connections[ALIAS].close()
        server.stop(at_once=number % 2 == 0)
        server.start()

    wait_until(lambda: there.stats()["completed"] == 900, 120, "all jobs to complete")
    keys = set(Mark.objects.using(ALIAS).values_list("key", flat=True))
    assert len(keys) == 900
    assert worker.exit_code is None
    assert worker.terminate() == 0


def test_a_worker_leaves_while_the_database_is_away(
    server: PrivateServer, start: Start, there: Queue, gate: Gate
) -> None:
    worker = start("--drain-timeout", "2")
    job = there.enqueue(tasks.hold, (str(gate),), max_retries=3)
    gate.wait_until_reached()
    connections[ALIAS].close()
    server.stop(at_once=True)
    wait_until(lambda: worker.log.count("is away") >= 2, 60)

    try:
        worker.terminate(40)
        assert_quiet(worker)
    finally:
        server.start()
    assert status_of(job.id) == "running"  # until its lease is over

    gate.open()
    assert there.get_job(job.id) is not None


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_started_without_a_database_says_so(
    server: PrivateServer, launch: Start, there: Queue, processes: str
) -> None:
    connections[ALIAS].close()
    server.stop(at_once=False)
    try:
        worker = launch("--processes", processes)
        assert worker.wait(60) == 1
    finally:
        server.start()

    assert "CommandError: database 'default' cannot be reached: " in worker.log
    assert "Traceback" not in worker.log
