"""The edges of single calls: types, numbers, moments."""

from datetime import UTC, datetime
from typing import Any

from .bench import UNKNOWN, Bench, Facts, done, raised, raises


def types_of_options(bench: Bench) -> Facts:
    queue = bench.make()
    pending = queue.enqueue("ok").id

    def progress(value: Any) -> bool | str:
        return raises(TypeError, lambda: queue.update_progress(pending, value))

    def enqueue(**options: Any) -> Any:
        return queue.enqueue("ok", **options).to_dict()

    return {
        "timeout 1.5": raises(TypeError, lambda: enqueue(timeout=1.5)),
        "metadata {}": raises(TypeError, lambda: enqueue(metadata={"a": 1})),
        "priority 2**31": raises(OverflowError, lambda: enqueue(priority=2**31)),
        "priority -2**31": raises(OverflowError, lambda: enqueue(priority=-(2**31) - 1)),
        "priorities": [enqueue(priority=n)["priority"] for n in (2**31 - 1, 1 - 2**31)],
        "delay 0.5": 499 <= (job := enqueue(delay=0.5))["scheduled_at"] - job["created_at"] <= 501,
        "max_retries 0": enqueue(max_retries=0)["max_retries"],
        "notes {}": enqueue(notes={})["notes"],
        "no notes": enqueue(notes=None)["notes"],
        "notes are no dict": raised(lambda: enqueue(notes=[1])),
        "note of infinity": raised(lambda: enqueue(notes={"a": float("inf")})),
        "result_ttl 0": raised(lambda: enqueue(result_ttl=0)),
        "expires 0": raised(lambda: enqueue(expires=0)),
        "unique_key wins": enqueue(unique_key="u", idempotency_key="i")["unique_key"],
        "progress 1.5": progress(1.5),
        "progress '5'": progress("5"),
        "progress None": progress(None),
        "progress 100": queue.update_progress(pending, 100),
        "progress of unknown": raised(lambda: queue.update_progress(UNKNOWN, 100)),
        "level -1": raises(OverflowError, lambda: queue.set_min_contract(-1)),
        "retry -1 of a queue": raised(lambda: bench.make(default_retry=-1)),
        "outside a job": [
            raised(lambda: bench.current_job.id),
            raised(lambda: bench.current_job.update_progress(5)),
            raised(lambda: bench.current_job.log("x")),
            raised(bench.current_job.check_cancelled),
        ],
    }


def idempotent(bench: Bench) -> Facts:
    queue = bench.make()

    @queue.task(name="once", idempotent=True)
    def once(*_args: Any, **_kwargs: Any) -> None: ...

    @queue.task(name="often")
    def often(*_args: Any) -> None: ...

    first = once.delay(1, a=2)
    key = first.to_dict()["unique_key"]
    return {
        "key": [key[:5], len(key)],
        "same arguments": once.delay(1, a=2).id == first.id,
        "other arguments": once.delay(2, a=2).id == first.id,
        "not this time": once.apply_async((1,), {"a": 2}, idempotent=False).id == first.id,
        "a key of its own": once.apply_async(
            (1,), {"a": 2}, unique_key="k"
        ).to_dict()["unique_key"],
        "without": often.delay(1).id == often.delay(1).id,
        "this time": often.apply_async((1,), idempotent=True).id
        == often.apply_async((1,), idempotent=True).id,
        "another task": often.apply_async((1,), idempotent=True).id == first.id,
    }  # fmt: skip


def ages(bench: Bench) -> Facts:
    queue, job = done(bench, "bad", max_retries=0)
    completed = queue.enqueue("ok")
    bench.run(queue)
    calls = {"purge_completed": queue.purge_completed, "purge_dead": queue.purge_dead,
             "archive": queue.archive}  # fmt: skip
    facts: Facts = {}
    for name, call in calls.items():
        facts[f"{name} None"] = raised(lambda call=call: call(older_than=None))
        facts[f"{name} '1'"] = raised(lambda call=call: call(older_than="1"))
        facts[f"{name} 99.5"] = raised(lambda call=call: call(older_than=99.5))
        facts[f"{name} huge"] = call(older_than=10**9)
    queue.purge_completed(older_than=-5)
    facts["dead ones stay"] = [queue.get_job(completed.id), queue.get_job(job.id).status]
    return facts


def moments(bench: Bench) -> Facts:
    queue = bench.make()
    job = queue.enqueue("ok").to_dict()
    aware = datetime(2001, 1, 1, tzinfo=UTC)

    def found(**times: Any) -> int:
        return len(queue.list_jobs_filtered(**times))

    return {
        "this millisecond and after": found(created_after=job["created_at"]),
        "this millisecond and before": found(created_before=job["created_at"]),
        "later": found(created_after=job["created_at"] + 1),
        "earlier": found(created_before=job["created_at"] - 1),
        "aware": raised(lambda: found(created_after=aware)),
        "naive": raised(lambda: found(created_after=aware.replace(tzinfo=None))) is not None,
        "a word": raised(lambda: found(created_after="today")) is not None,
    }
