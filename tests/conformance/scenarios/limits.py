"""Rate and concurrency limits while jobs run."""

import threading
from typing import Any

from .bench import PAUSE, Bench, Facts, raised


def rate_limits(bench: Bench) -> Facts:
    queue = bench.make()
    queue.set_queue_rate_limit("default", "2/h")
    jobs = [queue.enqueue("ok") for _ in range(3)]
    bench.run(queue, stays=True)
    held = [job.to_dict() for job in jobs if job.to_dict()["status"] == "pending"]
    facts: Facts = {
        "of a queue": queue.stats()["completed"],
        "held": [[each["retry_count"], each["started_at"]] for each in held],
        "no failure": queue.job_errors(held[0]["id"]),
    }

    queue = bench.make()

    @queue.task(name="scarce", rate_limit="1/h")
    def scarce() -> int:
        return 1

    jobs = [scarce.delay(), scarce.delay(), queue.enqueue("ok")]
    bench.run(queue, stays=True)
    facts["of a task"] = sorted(job.to_dict()["status"] for job in jobs)
    facts["others go on"] = jobs[2].to_dict()["status"]

    def declare() -> None:
        queue = bench.make()
        queue.task(name="wrong", rate_limit="10/d")(lambda: 1)
        queue.enqueue("ok")
        bench.run(queue)

    facts["a task's wrong limit"] = raised(declare)
    return facts


def limits_of_another_object(bench: Bench) -> Facts:
    queue = bench.make()
    queue.set_queue_rate_limit("default", "1/h")
    twin = bench.make(twin=queue)
    for _ in range(2):
        twin.enqueue("ok")
    bench.run(twin, stays=True)
    return {"jobs that ran": twin.stats()["completed"]}


def concurrency_limits(bench: Bench) -> Facts:
    lock = threading.Lock()
    running: dict[str, int] = {}
    most: dict[str, int] = {}

    def body(name: str) -> None:
        with lock:
            running[name] = running.get(name, 0) + 1
            most[name] = max(most.get(name, 0), running[name])
        PAUSE.wait(0.1)
        with lock:
            running[name] -= 1

    def run(queue: Any, name: str) -> None:
        for _ in range(2):
            queue.enqueue(name)
        bench.run(queue)

    queue = bench.make(probe=lambda _job: body("of a queue"))
    queue.set_queue_concurrency("default", 1)
    run(queue, "probe")
    facts: Facts = {"counts": [queue.stats()["completed"], queue.dead_letters()]}
    queue = bench.make(probe=lambda _job: body("without"), workers=4)
    queue.task(name="alone", max_concurrent=1)(lambda: body("of a task"))
    queue.enqueue_many("alone", [(), ()])
    run(queue, "probe")
    return {**facts, **most}
