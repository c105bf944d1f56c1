"""A hand-written psycopg loop on our tables and indexes: what the database alone costs.

It claims 100 jobs with one statement, runs them in the same thread, and completes them with their
metric rows with one more. All statements are prepared, all parameters and results binary. It writes
the rows our worker writes, and can do nothing else: no leases to renew, no retries, no limits, no
second thread.
"""

import contextlib
import json
import os
import secrets
import select
import time
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.contenders import marks
from tests.benchmarks.contenders.base import Send, main
from tests.benchmarks.contenders.ours.__main__ import Ours

BATCH = 100
CHANNEL = "bench"
TASKS = {
    "tests.benchmarks.contenders.ours.tasks.noop": marks.began,
    "tests.benchmarks.contenders.ours.tasks.record": marks.ran,
}

CLAIM = """
    UPDATE flexiq_jobs SET status = 'running', ready_lane = NULL, attempt = attempt + 1,
        token = %(token)b, worker_id = %(worker)b, started_at = statement_timestamp(),
        updated_at = statement_timestamp(),
        lease_at = statement_timestamp() + interval '60 seconds'
    WHERE id = ANY(ARRAY(
        SELECT id FROM flexiq_jobs
        WHERE namespace = 'default' AND ready_lane = 'default' AND ready_lane IS NOT NULL
        ORDER BY rank, scheduled_at, id LIMIT %(batch)b FOR UPDATE SKIP LOCKED))
    RETURNING id, task_name, payload
"""
COMPLETE = """
    WITH done AS (
        UPDATE flexiq_jobs AS j SET status = 'complete', result = b.result, error = NULL,
            ready_lane = NULL, promote_at = NULL, completed_at = statement_timestamp(),
            purge_at = NULL, lease_at = NULL, active_key = NULL, expires_at = NULL,
            updated_at = statement_timestamp()
        FROM unnest(%(ids)b::uuid[], %(results)b::text[], %(ms)b::float8[]) AS b(id, result, ms)
        WHERE j.id = b.id AND j.token = %(token)b AND j.status = 'running'
        RETURNING j.id, j.namespace, j.task_name, b.ms)
    INSERT INTO flexiq_task_metrics
        (namespace, task_name, job_id, duration_ms, succeeded, recorded_at)
    SELECT namespace, task_name, id, ms, true, statement_timestamp() FROM done
"""
# The shortest form there is: row and notification in one statement, one commit, one round trip.
INSERT_AND_NOTIFY = f"""
    WITH job AS (
        INSERT INTO flexiq_jobs (id, namespace, queue, task_name, status, priority, payload,
            created_at, scheduled_at, updated_at, attempt, retry_count, max_retries, timeout_ms,
            origin, ready_lane)
        VALUES (%(id)b, 'default', 'default', %(task)b, 'pending', 0, %(payload)b,
            statement_timestamp(), statement_timestamp(), statement_timestamp(), 0, 0, 3, 300000,
            'task', 'default')
        RETURNING id)
    SELECT pg_notify('{CHANNEL}', '') FROM job
"""


class Raw(Ours):
    """Its tables and its preloaded jobs are made by our own code."""

    def work(self) -> None:
        with self._connect() as connection, connection.cursor(binary=True) as cursor:
            connection.execute(f"LISTEN {CHANNEL}")
            while True:
                if not _turn(cursor):
                    select.select([connection.fileno()], [], [], 5.0)
                    connection.pgconn.consume_input()
                    while connection.pgconn.notifies() is not None:
                        pass

    @contextlib.contextmanager
    def sender(self) -> Iterator[Send]:
        from flexiq_django.store.ids import new_id

        task = "tests.benchmarks.contenders.ours.tasks.record"
        with self._connect() as connection, connection.cursor(binary=True) as cursor:

            def send(number: int) -> None:
                payload = f"[[{number}],{{}}]"
                values = {"id": new_id(), "task": task, "payload": payload}
                cursor.execute(INSERT_AND_NOTIFY, values, prepare=True)

            yield send

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.url, autocommit=True)


def _turn(cursor: Any) -> bool:
    """Claim, run and complete one batch. False when there was nothing to claim."""
    token = secrets.randbits(63)
    claim = {"token": token, "worker": f"raw-{os.getpid()}", "batch": BATCH}
    jobs = cursor.execute(CLAIM, claim, prepare=True).fetchall()
    if not jobs:
        return False
    ids, results, times = [], [], []
    for key, task_name, payload in sorted(jobs):
        args, kwargs = json.loads(payload)
        began = time.monotonic()
        value = TASKS[task_name](*args, **kwargs)
        times.append((time.monotonic() - began) * 1000)
        results.append(None if value is None else json.dumps(value))
        ids.append(key)
    values = {"ids": ids, "results": results, "ms": times, "token": token}
    cursor.execute(COMPLETE, values, prepare=True)
    return True


if __name__ == "__main__":
    main(Raw())
