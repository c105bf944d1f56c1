"""Which jobs a worker takes, and when; and bodies that are coroutines."""

import asyncio
from typing import Any

from .bench import Bench, Facts, raised


def dispatch(bench: Bench) -> Facts:
    queue = bench.make()
    later = queue.enqueue("ok", delay=0.3)
    mail = queue.enqueue("ok", queue="mail")
    bench.run(queue, until=lambda: later.to_dict()["status"] == "complete")
    found = later.to_dict()
    return {
        "never early": found["started_at"] >= found["scheduled_at"],
        "delay": abs(found["scheduled_at"] - found["created_at"] - 300) <= 1,
        "a queue nobody named": mail.to_dict()["status"],
    }


def paused_from_the_start(bench: Bench) -> Facts:
    queue = bench.make()
    queue.pause()
    job = queue.enqueue("ok")
    bench.run(queue, stays=True)
    facts: Facts = {
        "paused": queue.paused_queues(),
        "job": job.to_dict()["status"],
        "empty name": raised(lambda: queue.pause("")),
    }
    queue.resume()
    bench.run(queue, until=lambda: job.to_dict()["status"] == "complete")
    facts["resumed"] = job.result(timeout=5)
    return facts


def coroutines(bench: Bench) -> Facts:
    queue = bench.make()
    seen: dict[str, Any] = {}

    @queue.task(name="co", max_retries=0)
    async def co(value: int) -> int:
        await asyncio.sleep(0)
        job = bench.current_job
        seen["job"] = [job.id, job.task_name, job.retry_count, job.metadata]
        job.update_progress(50)
        job.log("from a coroutine")
        job.check_cancelled()
        return value + 1

    @queue.task(name="stop", max_retries=0)
    async def stop() -> None:
        await queue.acancel_running_job(bench.current_job.id)
        bench.current_job.check_cancelled()

    job, stopped = co.apply_async((1,), metadata="m"), stop.delay()
    bench.run(queue)
    return {
        "result": job.result(timeout=5),
        "knows its job": seen["job"] == [job.id, "co", 0, "m"],
        "progress": job.to_dict()["progress"],
        "lines": [line["message"] for line in queue.task_logs(job.id)],
        "asked to stop": stopped.to_dict()["status"],
    }
