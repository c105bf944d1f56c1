"""A worker and its producers behind PgBouncer in transaction mode: no state of a session counts."""

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction

from flexiq_django import queue
from flexiq_django.models import Job
from tests.conftest import configured_vendor
from tests.flows import tasks
from tests.flows.conftest import Workers
from tests.flows.evidence import assert_quiet, keys, values
from tests.flows.private_servers import free_port
from tests.flows.test_limits import most_at_once
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.flows,
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.django_db(transaction=True),
]

CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 100
log_connections = 0
log_disconnections = 0
"""


@pytest.fixture
def pooler(transactional_db: None) -> Iterator[str]:
    """The test database behind a pooler with four connections for all, for us too; its URL."""
    if configured_vendor() != "postgresql":
        pytest.skip("PgBouncer is for PostgreSQL")
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("pgbouncer is not installed here")
    there, port = connection.settings_dict, free_port()
    folder = Path(tempfile.mkdtemp(prefix="flexiq-pooler-"))
    with (folder / "pgbouncer.ini").open("w") as file:
        file.write(
            CONFIGURATION.format(
                host=there["HOST"] or "127.0.0.1",
                port=there["PORT"] or 5432,
                user=there["USER"],
                listen_port=port,
            )
        )
    user = None
    if os.geteuid() == 0:  # which it refuses to be
        user = "postgres"
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, str(folder / "pgbouncer.ini")], user=user, stdout=log, stderr=log
        )
    connection.close()
    before = dict(there)
    there.update(HOST="127.0.0.1", PORT=str(port), DISABLE_SERVER_SIDE_CURSORS=True)
    try:
        wait_until(answers, 20, "the pooler to answer")
        yield (
            f"postgres://{there['USER']}@127.0.0.1:{port}/{there['NAME']}"
            "?DISABLE_SERVER_SIDE_CURSORS=true"
        )
    finally:
        connection.close()
        there.update(before)
        process.terminate()
        process.wait(20)
        print((folder / "log").read_text())  # noqa: T201 - shown when the test failed
        shutil.rmtree(folder)


def answers() -> bool:
    try:
        connection.ensure_connection()
    except DatabaseError:
        return False
    return True


def test_all_that_a_queue_does(pooler: str, workers: Workers, namespace: str) -> None:
    environment = {"FLEXIQ_TEST_DATABASE_URL": pooler, "FLEXIQ_TEST_TICKING": "1"}
    fleet = [
        workers.start("--concurrency", "4", environment=environment, LISTEN=False, POLL_SECONDS=0.2)
        for _ in range(2)
    ]
    many = queue.enqueue_many(tasks.note, [(f"note {number}",) for number in range(300)])
    couples = queue.enqueue_many(tasks.couple, [(0.02,)] * 12)
    together = queue.enqueue_many(
        tasks.add_note_together, [(f"together {number}",) for number in range(20)]
    )
    with transaction.atomic():
        unique = [
            queue.enqueue(tasks.note, ("unique",), unique_key="once", delay=0.5) for _ in range(5)
        ]
    with contextlib.suppress(ZeroDivisionError), transaction.atomic():
        queue.enqueue(tasks.note, ("rolled back",))
        raise ZeroDivisionError
    child = queue.enqueue(tasks.give, (7,), depends_on=[many[0], together[0]])
    retried = queue.enqueue(tasks.fail_until, (2,))

    assert child.result(30) == 7
    assert retried.result(30) == "attempt 2"
    for job in (*many, *couples, *together, *unique):
        job.result(30)

    assert len({job.id for job in unique}) == 1
    assert {key: count for key, count in keys().items() if key.startswith(("note", "tog"))} == (
        Counter(f"note {number}" for number in range(300))
        + Counter(f"together {number}" for number in range(20))
    )
    assert (keys()["unique"], keys()["rolled back"]) == (1, 0)
    assert most_at_once(json.loads(span) for span in values("couple")) <= 2
    ticks = Job.objects.filter(namespace=namespace, schedule="ticking", status="complete")
    wait_until(lambda: ticks.count() >= 2, 20, "the schedule to fire twice")
    for worker in fleet:
        assert worker.terminate() == 0
        assert "is away" not in worker.log
    assert_quiet(*fleet)
