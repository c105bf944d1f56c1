"""Facts about the calls that both packages have. Imports neither: each brings a ``Bench``.

A scenario returns its facts by label; ``expected.py`` says what they are.
"""

import json
import threading
from collections.abc import Callable
from typing import Any, Protocol

Facts = dict[str, Any]
UNKNOWN = "0197b0a0-0000-7000-8000-000000000000"
_PAUSE = threading.Event()
_BUILTIN = (ValueError, KeyError, OverflowError, TypeError, TimeoutError, RuntimeError)


class Bench(Protocol):
    """What a package brings to the scenarios."""

    #: The class of retention windows.
    retention: Any

    def make(self, *, probe: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        """A queue with the tasks ``ok`` (returns 1) and ``bad`` (raises a ValueError).

        ``probe`` is what the task ``probe`` does with the job it runs in; retried at once, twice.
        With ``workers=1`` one job runs at a time.
        """

    def run(self, queue: Any) -> None:
        """Run every job that can run."""


def raised(call: Callable[[], Any]) -> str | None:
    """The built-in exception a call raises, by name; ``None`` if it raises nothing."""
    try:
        call()
    except Exception as error:
        return next((kind.__name__ for kind in _BUILTIN if isinstance(error, kind)), "Exception")
    return None


def done(bench: Bench, task: str = "ok", **options: Any) -> tuple[Any, Any]:
    """A queue with one job that has ended."""
    queue = bench.make()
    job = queue.enqueue(task, **options)
    bench.run(queue)
    job.refresh()
    return queue, job


# --- jobs -----------------------------------------------------------------------------------------


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
    _PAUSE.wait(0.05)
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


# --- listings -------------------------------------------------------------------------------------


def listings(bench: Bench) -> Facts:
    queue = bench.make()
    jobs = [queue.enqueue("ok", metadata=f"m{number}") for number in range(3)]
    queue.enqueue("bad", queue="mail")
    newest = [job.id for job in queue.list_jobs(limit=4)]
    page = queue.list_jobs_after(limit=2)
    second = queue.list_jobs_after(limit=2, after=page.next_cursor)
    facts: Facts = {
        "newest first": sorted(newest, reverse=True) == newest,
        "limit 0": queue.list_jobs(limit=0),
        "offset beyond": queue.list_jobs(offset=9),
        "limit -1": raised(lambda: queue.list_jobs(limit=-1)),
        "offset -1": raised(lambda: queue.list_jobs(offset=-1)),
        "by queue": len(queue.list_jobs(queue="mail")),
        "by task": len(queue.list_jobs(task_name="ok")),
        "both": len(queue.list_jobs(task_name="ok", queue="mail")),
        "unknown queue": queue.list_jobs(queue="nowhere"),
        "completed is complete": queue.list_jobs(status="completed"),
        "metadata_like": len(queue.list_jobs_filtered(metadata_like="m1")),
        "created_after": len(queue.list_jobs_filtered(created_after=0)),
        "created_before": len(queue.list_jobs_filtered(created_before=1)),
        "a float of ms": raised(lambda: queue.list_jobs_filtered(created_after=1.5)),
        "pages": [job.id for job in page] + [job.id for job in second] == newest,
        "length of a page": len(page),
        "a full last page has a cursor": second.next_cursor is not None,
        "empty page": (
            len(last := queue.list_jobs_after(limit=2, after=second.next_cursor)),
            last.next_cursor,
        ),
        "short page": queue.list_jobs_after(limit=9).next_cursor,
        "page of 0": queue.list_jobs_after(limit=0).next_cursor,
        "every namespace": len(queue.list_jobs(namespace=None)) >= len(jobs),
    }
    for word in ("canceled", "PENDING", ""):
        facts[f"status {word!r}"] = raised(lambda w=word: queue.list_jobs(status=w))
    for cursor in ("garbage", "", ":", "1:", "-1:x"):
        facts[f"cursor {cursor!r}"] = raised(lambda c=cursor: queue.list_jobs_after(after=c))
    facts["foreign cursor"] = raised(lambda: queue.list_jobs_after(after="1:x"))
    return facts


def figures(bench: Bench) -> Facts:
    queue = bench.make()
    empty = queue.metrics()
    for task in ("ok", "ok", "bad"):
        queue.enqueue(task, max_retries=0)
    bench.run(queue)
    metrics = queue.metrics()
    series = queue.metrics_timeseries()
    return {
        "nothing": empty,
        "keys": sorted(metrics["ok"]),
        "counts": [metrics[name]["count"] for name in ("ok", "bad")],
        "failures": metrics["bad"]["failure_count"],
        "one task": sorted(queue.metrics(task_name="ok")),
        "keys of a bucket": sorted(series[0]),
        "all in buckets": sum(bucket["count"] for bucket in series),
        "bucket 0": raised(lambda: queue.metrics_timeseries(bucket=0)) is not None,
        "stats": queue.stats(),
        "stats of a queue": queue.stats_by_queue("default")["completed"],
        "stats of none": sum(queue.stats_by_queue("nowhere").values()),
        "stats by queue": raised(queue.stats_by_queue),
        "every queue": queue.stats_all_queues()["default"]["dead"],
        "log of unknown": queue.task_logs(UNKNOWN),
    }


# --- dead letters and replays ---------------------------------------------------------------------


def dead_letters(bench: Bench) -> Facts:
    queue, job = done(bench, "bad", max_retries=0, metadata='{"a": 1}', priority=7)
    (letter,) = queue.dead_letters()
    facts: Facts = {
        "keys": sorted(letter),
        "ids differ": letter["id"] != letter["original_job_id"],
        "retry by the job's id": raised(lambda: queue.retry_dead(job.id)),
        "retry unknown": raised(lambda: queue.retry_dead(UNKNOWN)),
        "delete unknown": queue.delete_dead(UNKNOWN),
        "delete by the job's id": queue.delete_dead(job.id),
        "limit -1": raised(lambda: queue.dead_letters(limit=-1)),
    }
    copy = queue.get_job(queue.retry_dead(letter["id"])).to_dict()
    facts |= {
        "kept": (copy["task_name"], copy["priority"], copy["max_retries"]),
        "metadata": json.loads(copy["metadata"]),
        "expected metadata": {"a": 1, "__dlq_retry_count": 1, "__origin_job_id": job.id},
        "retried twice": raised(lambda: queue.retry_dead(letter["id"])),
        "letter gone": queue.dead_letters(),
        "no replay": queue.replay_history(job.id),
    }
    bench.run(queue)
    (letter,) = queue.dead_letters()
    facts["again"] = letter["dlq_retry_count"]
    facts["not old enough"] = queue.purge_dead(older_than=3_600)
    facts["purged"] = queue.purge_dead(older_than=-5)
    facts["job behind it"] = queue.get_job(letter["original_job_id"]) is None
    facts["age of a word"] = raised(lambda: queue.purge_dead(older_than="1"))
    facts["metadata"] = facts["metadata"] == facts.pop("expected metadata")
    return facts


def replays(bench: Bench) -> Facts:
    queue, job = done(bench, "bad", max_retries=0, metadata="m", unique_key="k", notes={"a": 1})
    copy = queue.replay(job.id)
    found = copy.to_dict()
    history = queue.replay_history(job.id)
    pending = queue.enqueue("ok")
    facts: Facts = {
        "kept": (found["task_name"], found["max_retries"], found["notes"]),
        "metadata kept": found["metadata"] == "m",
        "unique_key": found["unique_key"],
        "original": queue.get_job(job.id).status,
        "keys": sorted(history[0]),
        "ids": (history[0]["original_job_id"] == job.id, history[0]["replay_job_id"] == copy.id),
        "original error": history[0]["original_error"] is not None,
        "of a pending job": queue.replay(pending.id).id != pending.id,
        "unknown": raised(lambda: queue.replay(UNKNOWN)),
        "history of unknown": queue.replay_history(UNKNOWN),
        "history of the copy": queue.replay_history(copy.id),
    }
    bench.run(queue)
    facts["replay error filled"] = queue.replay_history(job.id)[0]["replay_error"] is not None
    return facts


# --- queues, purges, archive ----------------------------------------------------------------------


def queues(bench: Bench) -> Facts:
    queue = bench.make()
    queue.pause("mail")
    queue.pause("mail")
    facts: Facts = {"paused": queue.paused_queues(), "resume unknown": queue.resume("nowhere")}
    job = queue.enqueue("ok", queue="mail")
    facts["paused takes jobs"] = job.status
    queue.resume("mail")
    facts["resumed"] = queue.paused_queues()
    for text in ("10", "10/d", "0/s", "-1/s", "5/s/s", "2/S", "nan/s", "inf/s", ""):
        facts[f"rate {text!r}"] = raised(lambda t=text: queue.set_queue_rate_limit("q", t))
    for text in ("1/s", "1.5/sec", "1e1/second", "5/m", "5/min", "5/h", " 5 / hr "):
        facts[f"rate {text!r}"] = raised(lambda t=text: queue.set_queue_rate_limit("q", t))
    facts["concurrency 0"] = raised(lambda: queue.set_queue_concurrency("q", 0))
    return facts


def purges(bench: Bench) -> Facts:
    queue, job = done(bench)
    facts: Facts = {
        "too young": queue.purge_completed(older_than=3_600),
        "purged": queue.purge_completed(older_than=-5),
        "gone": queue.get_job(job.id) is None,
        "none of a queue": queue.purge("nowhere"),
        "none of a task": queue.revoke_task("nothing"),
    }
    pending = [queue.enqueue("ok", queue="mail") for _ in range(2)]
    facts["purge"] = queue.purge("mail")
    pending[0].refresh()
    facts["row stays"] = (pending[0].status, pending[0].error)
    doomed = queue.enqueue("ok")
    facts["revoke"] = queue.revoke_task("ok")
    doomed.refresh()
    facts["revoked"] = (doomed.status, doomed.error)
    facts["enqueue of a revoked task"] = raised(lambda: queue.enqueue("ok"))
    return facts


def archive(bench: Bench) -> Facts:
    queue, job = done(bench)
    moved = queue.archive(older_than=-5)
    return {
        "moved": moved,
        "again": queue.archive(older_than=-5),
        "archived": [found.id == job.id for found in queue.list_archived()],
        "in stats": queue.stats()["completed"],
        "in list_jobs": len(queue.list_jobs()),
        "found by id": queue.get_job(job.id).status,
        "result": queue.get_job(job.id).result(timeout=5),
        "replayed": queue.replay(job.id).status,
        "limit -1": raised(lambda: queue.list_archived(limit=-1)),
    }


# --- retention, settings, contract ----------------------------------------------------------------

_DAY = 86_400_000
_RECOMMENDED = {
    "task_logs": 3 * _DAY,
    "archived_jobs": 7 * _DAY,
    "job_errors": 7 * _DAY,
    "task_metrics": 7 * _DAY,
    "dead_letter": 30 * _DAY,
}


def retention(bench: Bench) -> Facts:
    window = bench.retention

    def preview(**options: Any) -> list[Any]:
        found = bench.make(**options).dry_run_retention()
        return [found.enabled, found.defaulted, dict(found.windows)]

    queue = bench.make()
    candidate = queue.dry_run_retention(window(task_logs=1))
    return {
        "nothing": preview(),
        "empty": preview(retention=window()),
        "one": preview(retention=window(task_logs=10)),
        "legacy": preview(result_ttl=3_600),
        "both": preview(result_ttl=3_600, retention=window(task_logs=10)),
        "candidate": [candidate.enabled, candidate.defaulted, candidate.total],
        "counts": sorted(candidate.counts),
        "before a sweep": queue.effective_retention(),
        "negative": raised(lambda: window(task_logs=-1)),
        "unknown field": raised(lambda: window(jobs=1)),
        "negative legacy": raised(lambda: bench.make(result_ttl=-1)),
    }


def settings(bench: Bench) -> Facts:
    queue = bench.make()
    key = f"k-{id(queue)}"
    return {
        "missing": queue.get_setting(key),
        "delete missing": queue.delete_setting(key),
        "set": queue.set_setting(key, ""),
        "empty value": queue.get_setting(key),
        "not a text": raised(lambda: queue.set_setting(key, 5)),
        "must be unset": queue.set_setting_if(key, None, "a"),
        "stale": queue.set_setting_if(key, "x", "a"),
        "current": queue.set_setting_if(key, "", "a"),
        "unset": queue.set_setting_if(key + "2", None, "b"),
        "listed": {name[-1]: value for name, value in queue.list_settings().items()
                   if name == key + "2"},
        "delete": queue.delete_setting(key),
    }  # fmt: skip


def contract(bench: Bench) -> Facts:
    queue = bench.make()
    return {
        "level": queue.min_contract(),
        "same": raised(lambda: queue.set_min_contract(2)),
        **{f"level {level}": raised(lambda n=level: queue.set_min_contract(n)) for level in (0, 3)},
        "migrate": queue.migrate(),
    }


def namespaces(bench: Bench) -> Facts:
    queue, job = done(bench, "bad", max_retries=0)
    other = bench.make(beside=queue)
    letter = queue.dead_letters()[0]["id"]
    return {
        "get": other.get_job(job.id) is None,
        "list": other.list_jobs(),
        "stats": sum(other.stats().values()),
        "errors": other.job_errors(job.id),
        "dead": other.dead_letters(),
        "retry": raised(lambda: other.retry_dead(letter)),
        "delete": other.delete_dead(letter),
        "replay": raised(lambda: other.replay(job.id)),
        "graph": other.job_dag(job.id),
        "parent": raised(lambda: other.enqueue("ok", depends_on=job.id)),
    }


SCENARIOS = (
    what_each_call_does_by_status,
    input_that_is_refused,
    unique_keys,
    dependencies,
    failures,
    running,
    asked_to_stop,
    retries,
    calling,
    order,
    results,
    failure_classes,
    too_late,
    document,
    listings,
    figures,
    dead_letters,
    replays,
    queues,
    purges,
    archive,
    retention,
    settings,
    contract,
    namespaces,
)
