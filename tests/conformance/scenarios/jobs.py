"""Jobs: what is refused, what they do, how they end."""

import json
from typing import Any

from .bench import PAUSE, UNKNOWN, Bench, Facts, done, raised


def what_each_call_does_by_status(bench: Bench) -> Facts:
    queue = bench.make()
    ended = {"complete": queue.enqueue("ok"), "dead": queue.enqueue("bad", max_retries=0)}
    bench.run(queue)
    cancelled = queue.enqueue("ok")
    facts: Facts = {"cancel pending": queue.cancel_job(cancelled.id)}
    jobs = {status: job.id for status, job in ended.items()}
    jobs |= {"cancelled": cancelled.id, "unknown": UNKNOWN, "pending": queue.enqueue("ok").id}
    for status, key in jobs.items():
        facts[f"stop {status}"] = queue.cancel_running_job(key)
        facts[f"requeue {status}"] = queue.requeue_job(key)
        facts[f"progress {status}"] = raised(lambda key=key: queue.update_progress(key, 5))
        if status != "pending":
            facts[f"cancel {status}"] = queue.cancel_job(key)
    for value in (-1, 101):
        facts[f"progress of {value}"] = raised(lambda v=value: queue.update_progress(UNKNOWN, v))
    facts["get unknown"] = queue.get_job(UNKNOWN) is None
    facts["errors unknown"] = queue.job_errors(UNKNOWN)
    return facts


def input_that_is_refused(bench: Bench) -> Facts:
    queue = bench.make()
    cases: dict[str, dict[str, Any]] = {
        "delay -1": {"delay": -1},
        "delay nan": {"delay": float("nan")},
        "delay inf": {"delay": float("inf")},
        "expires -1": {"expires": -1},
        "max_retries -1": {"max_retries": -1},
        "timeout 0": {"timeout": 0},
        "timeout -1": {"timeout": -1},
        "result_ttl -1": {"result_ttl": -1},
        "empty queue": {"queue": ""},
        "empty unique_key": {"unique_key": ""},
        "16 notes": {"notes": {str(number): 1 for number in range(16)}},
        "long note": {"notes": {"a": "x" * 501}},
        "deep note": {"notes": {"a": {"b": {"c": {"d": 1}}}}},
        "unknown parent": {"depends_on": UNKNOWN},
    }
    facts: Facts = {
        name: raised(lambda options=options: queue.enqueue("ok", **options))
        for name, options in cases.items()
    }
    facts["too large"] = raised(lambda: queue.enqueue("ok", args=("x" * 1_100_000,)))
    facts["lists of two lengths"] = raised(
        lambda: queue.enqueue_many("ok", [(), ()], unique_keys=["a"])
    )
    facts["nothing to store"] = queue.enqueue_many("ok", [])
    return facts


def unique_keys(bench: Bench) -> Facts:
    queue = bench.make()
    first = queue.enqueue("ok", unique_key="k")
    facts: Facts = {
        "same key": queue.enqueue("ok", unique_key="k").id == first.id,
        "another task": queue.enqueue("bad", unique_key="k").id == first.id,
        "another queue": queue.enqueue("ok", unique_key="k", queue="mail").id == first.id,
        "its other name": queue.enqueue("ok", idempotency_key="k").id == first.id,
        "another key": queue.enqueue("ok", unique_key="K").id == first.id,
        "in bulk": raised(lambda: queue.enqueue_many("ok", [(), ()], unique_keys=["x", "x"])),
    }
    queue.cancel_job(first.id)
    facts["freed by the end"] = queue.enqueue("ok", unique_key="k").id != first.id
    return facts


def dependencies(bench: Bench) -> Facts:
    queue = bench.make()
    root = queue.enqueue("ok")
    child = queue.enqueue("ok", depends_on=root.id)
    grandchild = queue.enqueue("ok", depends_on=[child.id])
    graph = queue.job_dag(child.id)
    facts: Facts = {
        "nodes": sorted(node["id"] for node in graph["nodes"])
        == sorted([root.id, child.id, grandchild.id]),
        "edges": len({(edge["from"], edge["to"]) for edge in graph["edges"]}),
        "every edge once": len(graph["edges"]) == 2,
        "graph of unknown": queue.job_dag(UNKNOWN),
    }
    queue.cancel_job(root.id)
    for name, job in (("child", child), ("grandchild", grandchild)):
        job.refresh()
        facts[f"{name} cancelled"] = job.status
        facts[f"{name} says"] = job.error == f"dependency cancelled: {root.id}"
    facts["after a cancelled one"] = raised(lambda: queue.enqueue("ok", depends_on=root.id))
    root = queue.enqueue("bad", max_retries=0)
    child = queue.enqueue("ok", depends_on=root.id)
    bench.run(queue)
    child.refresh()
    facts["parent dead"] = (child.status, child.error == f"dependency failed: {root.id}")
    purged = queue.enqueue("ok", queue="mail")
    child = queue.enqueue("ok", depends_on=purged.id)
    queue.purge("mail")
    child.refresh()
    facts["parent purged"] = child.status
    return facts


def failures(bench: Bench) -> Facts:
    queue, job = done(bench, "bad", max_retries=0)
    (error,) = queue.job_errors(job.id)
    document = job.to_dict()
    return {
        "status": job.status,
        "keys of an error": sorted(error),
        "first attempt": error["attempt"],
        "one line": document["error"],
        "stored": json.loads(job.error)["errtype"],
        "retry_count": document["retry_count"],
        "dead counts": queue.stats()["dead"],
        "failed counts": queue.stats()["failed"],
    }


def running(bench: Bench) -> Facts:
    facts: Facts = {}

    def act(job: Any) -> int:
        facts["cancel"] = queue.cancel_job(job.id)
        facts["progress"] = raised(lambda: queue.update_progress(job.id, 40))
        facts["too much progress"] = raised(lambda: queue.update_progress(job.id, 400))
        facts["names"] = (job.task_name, job.queue_name, job.retry_count)
        job.log("first")
        job.publish({"a": 1})
        return 5

    queue = bench.make(probe=act)
    job = queue.enqueue("probe")
    bench.run(queue)
    document, lines = job.to_dict(), queue.task_logs(job.id)
    facts["end"] = (document["status"], document["progress"], job.result(timeout=5))
    facts["keys of a line"] = sorted(lines[0])
    facts["lines"] = [(line["level"], line["message"]) for line in lines]
    facts["published"] = json.loads(lines[1]["extra"])
    return facts


def asked_to_stop(bench: Bench) -> Facts:
    facts: Facts = {}

    def act(job: Any) -> None:
        facts["stop"] = queue.cancel_running_job(job.id)
        facts["stop again"] = queue.cancel_running_job(job.id)
        job.check_cancelled()

    queue = bench.make(probe=act)
    job = queue.enqueue("probe", max_retries=2)
    bench.run(queue)
    document = job.to_dict()
    facts["end"] = (document["status"], document["error"], document["retry_count"])
    facts["errors"] = queue.job_errors(job.id)
    facts["letters"] = queue.dead_letters()
    facts["failures counted"] = queue.metrics()["probe"]["failure_count"]
    facts["result"] = raised(lambda: job.result(timeout=5)) is not None

    queue = bench.make(probe=lambda job: queue.cancel_running_job(job.id))
    job = queue.enqueue("probe")
    bench.run(queue)
    facts["that never looks"] = job.to_dict()["status"]
    return facts


def retries(bench: Bench) -> Facts:
    tries: list[int] = []

    def act(job: Any) -> int:
        tries.append(job.retry_count)
        if len(tries) != 3:
            raise ValueError(f"try {len(tries)}")
        return 7

    queue = bench.make(probe=act)
    job = queue.enqueue("probe", max_retries=2)
    bench.run(queue)
    document = job.to_dict()
    facts: Facts = {
        "retry counts": list(tries),
        "end": (document["status"], document["error"], document["retry_count"]),
        "attempts": [error["attempt"] for error in queue.job_errors(job.id)],
        "executions": queue.metrics()["probe"]["count"],
    }
    job = queue.enqueue("probe", max_retries=1)
    bench.run(queue)
    facts["used up"] = (job.to_dict()["status"], len(queue.job_errors(job.id)))
    facts["letter"] = queue.dead_letters()[0]["retry_count"]
    return facts


def calling(bench: Bench) -> Facts:
    queue = bench.make()

    @queue.task(name="add", priority=5, max_retries=1, queue="sums")
    def add(first: int, second: int = 1) -> int:
        return first + second

    jobs = [add.delay(1), add.apply_async((2,), {"second": 3}, priority=9), *add.map([(4, 4)])]
    by_name = queue.enqueue("unknown task")
    many = queue.enqueue_many("ok", [(), ()], metadata_list=["a", "b"])
    facts: Facts = {
        "in place": add(1, second=2),
        "name": add.name,
        "options": [
            (job.to_dict()["priority"], job.to_dict()["max_retries"], job.to_dict()["queue"])
            for job in jobs
        ],
        "by name": (by_name.to_dict()["max_retries"], by_name.to_dict()["timeout_ms"]),
        "default queue": by_name.to_dict()["queue"],
        "in order": [job.to_dict()["metadata"] for job in many],
        "unpatient": raised(lambda: by_name.result(timeout=0.01, poll_interval=0.001)),
        "no timeout": raised(lambda: by_name.result(timeout=-1)),
    }
    queue.cancel_job(by_name.id)
    facts["cancelled"] = raised(lambda: by_name.result(timeout=1)) is not None
    return facts


def order(bench: Bench) -> Facts:
    seen: list[str] = []

    def act(job: Any) -> None:
        seen.append(queue.get_job(job.id).to_dict()["metadata"])

    queue = bench.make(probe=act, workers=1)
    for metadata, priority in (("low", -5), ("usual", 0), ("high", 5), ("usual too", 0)):
        queue.enqueue("probe", priority=priority, metadata=metadata)
    bench.run(queue)
    return {"by priority, then by age": seen}


def results(bench: Bench) -> Facts:
    values = [None, True, 5, 1.5, "ü", [1, [2]], {"a": {"b": None}}]
    left = list(values)
    queue = bench.make(probe=lambda _job: left.pop(0), workers=1)
    jobs = [queue.enqueue("probe") for _ in values]
    bench.run(queue)
    return {"round trip": [job.result(timeout=5) for job in jobs] == values}


def failure_classes(bench: Bench) -> Facts:
    queue = bench.make()

    @queue.task(name="picky", max_retries=3, retry_delays=[0], retry_on=[KeyError])
    def picky() -> None:
        raise ValueError("not one of those")

    @queue.task(name="wary", max_retries=3, retry_delays=[0], dont_retry_on=[ValueError])
    def wary() -> None:
        raise ValueError("one of those")

    jobs = {"retry_on": picky.delay(), "dont_retry_on": wary.delay()}
    bench.run(queue)
    return {
        name: (job.to_dict()["status"], job.to_dict()["retry_count"], len(queue.job_errors(job.id)))
        for name, job in jobs.items()
    }


def too_late(bench: Bench) -> Facts:
    queue = bench.make()
    job = queue.enqueue("ok", expires=0.001)
    PAUSE.wait(0.05)
    bench.run(queue)
    document = job.to_dict()
    return {
        "status": document["status"],
        "says": "expired" in document["error"],
        "began": document["started_at"],
        "letters": queue.dead_letters(),
        "executions": queue.metrics(),
    }


def document(bench: Bench) -> Facts:
    _queue, job = done(bench, notes={"b": 1, "a": "ü"}, metadata="m")
    found = job.to_dict()
    return {
        "keys": sorted(found),
        "status": found["status"],
        "notes": found["notes"],
        "parsed notes": job.notes,
        "metadata": found["metadata"],
        "progress": found["progress"],
        "times": all(isinstance(found[f"{name}_at"], int) for name in ("created", "completed")),
        "result": job.result(timeout=5),
        "no patience": raised(lambda: job.result(timeout=0)),
        "attributes": hasattr(job, "task_name"),
    }
