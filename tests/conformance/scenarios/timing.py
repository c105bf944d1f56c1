"""Timeouts, soft timeouts, and how long a retry waits."""

import threading
from typing import Any

from .bench import PAUSE, Bench, Facts


def timeouts(bench: Bench) -> Facts:
    door = threading.Event()
    begun: list[str] = []
    left: list[str] = []

    def act(job: Any) -> str:
        begun.append(job.id)
        if begun.count(job.id) > 1:
            return "second"
        door.wait(20)
        left.append(job.id)
        return "late"

    queue = bench.make(probe=act, workers=4)
    stuck = queue.enqueue("probe", timeout=bench.shortest, max_retries=0)
    again = queue.enqueue("probe", timeout=bench.shortest, max_retries=1)

    def all_over() -> bool:
        if [job.to_dict()["status"] for job in (stuck, again)] == ["dead", "complete"]:
            door.set()
        return len(left) == 2

    bench.run(queue, until=all_over)
    late = queue.enqueue("ok")
    bench.run(queue, until=lambda: late.to_dict()["status"] == "complete")
    text = f"job timed out after {round(bench.shortest * 1000)}ms"
    figures = queue.metrics("probe")["probe"]
    return {
        "no time left": [stuck.to_dict()["status"], stuck.to_dict()["error"] == text],
        "stored as it is": [error["error"] == text for error in queue.job_errors(stuck.id)],
        "letter": [letter["error"] == text for letter in queue.dead_letters()],
        "retried": [again.to_dict()["status"], again.to_dict()["retry_count"]],
        "result of the other attempt": again.result(timeout=5),
        "its errors": len(queue.job_errors(again.id)),
        "executions": [figures["count"], figures["failure_count"]],
        "its real time is measured": figures["max_ms"] >= bench.shortest * 1000,
    }


def late_but_unnoticed(bench: Bench) -> Facts:
    queue = bench.make(probe=lambda _job: PAUSE.wait(bench.shortest * 1.1), reaps=False)
    job = queue.enqueue("probe", timeout=bench.shortest, max_retries=0)
    bench.run(queue)
    return {"a body that returns too late": job.to_dict()["status"]}


def soft_timeouts(bench: Bench) -> Facts:
    queue = bench.make()

    @queue.task(name="soft", soft_timeout=0.01, max_retries=1, retry_delays=[0])
    def soft() -> None:
        bench.current_job.check_timeout()
        PAUSE.wait(0.05)
        bench.current_job.check_timeout()

    @queue.task(name="patient", soft_timeout=30)
    def patient() -> int:
        bench.current_job.check_timeout()
        return 1

    @queue.task(name="carefree")
    def carefree() -> int:
        bench.current_job.check_timeout()
        return 1

    job, patient_job, carefree_job = soft.delay(), patient.delay(), carefree.delay()
    bench.run(queue)
    return {
        "end": [job.to_dict()["status"], job.to_dict()["retry_count"]],
        "says": job.to_dict()["error"].partition(":")[0],
        "in time": patient_job.to_dict()["status"],
        "none": carefree_job.to_dict()["status"],
    }


def waits(bench: Bench) -> Facts:
    queue = bench.make(workers=4)

    def fail() -> None:
        raise ValueError("bad")

    for name, options in {
        "listed": {"retry_delays": [40]},
        "jittered": {"retry_backoff": 100},
        "capped": {"retry_backoff": 1_000, "max_retry_delay": 50},
        "beyond": {"retry_delays": [0], "retry_backoff": 1_000, "max_retry_delay": 3_000},
    }.items():
        queue.task(name=name, max_retries=2, **options)(fail)
    listed, beyond = queue.enqueue("listed", max_retries=1), queue.enqueue("beyond", max_retries=2)
    drawn = {
        name: queue.enqueue_many(name, [()] * 20, max_retries=1) for name in ("jittered", "capped")
    }
    bench.run(queue, stays=True)

    def wait(job: Any) -> float:
        """Seconds between the failure and the time the job is due."""
        between = job.to_dict()["scheduled_at"] - queue.job_errors(job.id)[-1]["failed_at"]
        return float(between / 1_000)

    found = listed.to_dict()
    names = ("status", "retry_count", "started_at", "error", "completed_at")
    jittered, capped = ([wait(job) for job in drawn[name]] for name in ("jittered", "capped"))
    return {
        "listed": round(wait(listed)),
        "between": [found[name] for name in names],
        "jittered within": all(-1 < each < 101 for each in jittered),
        "jitter begins at nothing": min(jittered) < 50,
        "jitter reaches far": max(jittered) > 50,
        "each is drawn": len(set(jittered)) > 10,
        "capped": all(-1 < each < 51 for each in capped),
        "capped but drawn": len(set(capped)) > 10,
        "past the end of the list": beyond.to_dict()["status"],
    }
