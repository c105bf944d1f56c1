"""Defaults, names, and the async form of every call."""

import inspect
from typing import Any

from .bench import Bench, Facts, raised

#: Calls without arguments, of which the answers of both forms are compared.
_ASKED = ("stats", "stats_all_queues", "paused_queues", "metrics", "dead_letters", "list_settings")
_OTHERS = (
    *("get_job", "list_jobs", "list_jobs_filtered", "list_jobs_after", "list_jobs_filtered_after"),
    *("cancel_job", "cancel_running_job", "job_errors", "job_dag", "metrics_timeseries"),
    *("dead_letters_after", "retry_dead", "requeue_job", "delete_dead", "purge_dead", "archive"),
    *("purge_completed", "list_archived", "list_archived_after", "replay", "replay_history"),
    *("revoke_task", "pause", "resume", "effective_retention", "dry_run_retention", "enqueue"),
    *("enqueue_many", "task_logs", "query_logs", "workers", "list_periodic", "stats_by_queue"),
    *("pause_periodic", "resume_periodic", "delete_periodic"),
)
_WITHOUT = (
    *("purge", "update_progress", "get_setting", "set_setting", "delete_setting", "list_settings"),
    *("set_setting_if", "migrate", "min_contract", "set_min_contract"),
    *("set_queue_rate_limit", "set_queue_concurrency"),
)


def async_twins(bench: Bench) -> Facts:
    queue = bench.make()
    job = queue.enqueue("ok")
    bench.run(queue)
    # By name, as the reference's twins of these two take nothing else.
    first = next(iter(inspect.signature(queue.enqueue).parameters))
    other = bench.awaited(lambda: queue.aenqueue(**{first: "ok"}, priority=3))
    asked = [name for name in _ASKED if name not in _WITHOUT]
    bench.run(queue)
    return {
        "same answer": [
            name for name in asked
            if bench.awaited(getattr(queue, f"a{name}")) != getattr(queue, name)()
        ],
        "not there": [name for name in (*asked, *_OTHERS) if not hasattr(queue, f"a{name}")],
        "nor there": [name for name in _WITHOUT if not hasattr(queue, f"a{name}")],
        "what is enqueued is called": first,
        "enqueued": other.to_dict()["priority"],
        "result": bench.awaited(lambda: job.aresult(timeout=5)),
        "cancelled": bench.awaited(lambda: queue.acancel_job(job.id)),
        "in order": [
            each.to_dict()["task_name"]
            for each in bench.awaited(
                lambda: queue.aenqueue_many(**{first: "ok"}, args_list=[(), ()])
            )
        ],
    }  # fmt: skip


def default_arguments(bench: Bench) -> Facts:
    queue = bench.make()
    job = queue.enqueue("ok")
    wanted = {
        "list_jobs": ("limit", "offset"),
        "list_jobs_filtered": ("limit", "offset"),
        "list_jobs_after": ("limit", "after"),
        "list_archived": ("limit", "offset"),
        "dead_letters": ("limit", "offset"),
        "dead_letters_after": ("limit", "after"),
        "metrics": ("task_name", "since"),
        "metrics_timeseries": ("task_name", "since", "bucket"),
        "query_logs": ("task_name", "level", "since", "limit"),
        "purge_completed": ("older_than",),
        "purge_dead": ("older_than",),
        "archive": ("older_than",),
        "pause": ("queue_name",),
        "resume": ("queue_name",),
    }
    facts: Facts = {
        name: [inspect.signature(getattr(queue, name)).parameters[each].default for each in names]
        for name, names in wanted.items()
    }
    patience = inspect.signature(job.result).parameters
    facts["result"] = [
        patience[name].default for name in ("timeout", "poll_interval", "max_poll_interval")
    ]
    facts["purge without a name"] = raised(lambda: queue.purge())
    return facts


def names_and_defaults(bench: Bench) -> Facts:
    queue = bench.make(default_retry=7, default_timeout=60, default_priority=2)
    queue.task(name="plain")(lambda: 1)
    queue.task(name="own", max_retries=1, priority=9, queue="mail")(lambda: 1)

    def taken(job: Any) -> list[Any]:
        found = job.to_dict()
        return [found[name] for name in ("max_retries", "timeout_ms", "priority", "queue")]

    twin = bench.make(twin=queue)
    unknown = queue.enqueue("nobody", max_retries=0)
    bench.run(queue, until=lambda: unknown.to_dict()["status"] == "dead")
    return {
        "unknown name": taken(queue.enqueue("nobody")),
        "plain by name": taken(queue.enqueue("plain")),
        "own by name": taken(queue.enqueue("own")),
        "plain": taken(queue.task(name="plain2")(lambda: 1).delay()),
        "empty name": raised(lambda: twin.enqueue("")),
        "nobody knows it": unknown.to_dict()["error"].partition(":")[0],
        "registered again": [
            queue.task(name="twice", priority=1)(lambda: 1).delay().to_dict()["priority"],
            queue.task(name="twice", priority=2)(lambda: 2).delay().to_dict()["priority"],
        ],
        "called in place": queue.task(name="twice")(lambda: 3)(),
    }


def lists_of_options(bench: Bench) -> Facts:
    queue = bench.make()
    jobs = queue.enqueue_many(
        "ok", [(1,), (2,)], kwargs_list=None, delay_list=[None, 60], metadata_list=["a", None],
        notes_list=[{"n": 1}, None], expires_list=[60, None], result_ttl_list=[None, 5],
        unique_keys=["x", None], priority=4,
    )  # fmt: skip
    found = [job.to_dict() for job in jobs]
    refused = {
        "key of 65": {"k" * 65: 1},
        "empty key": {"": 1},
        "4,097 bytes": {f"{number}": "x" * 500 for number in range(10)},
        "not finite": {"a": float("nan")},
        "an object": {"a": object()},
    }
    return {
        "metadata": [each["metadata"] for each in found],
        "notes": [each["notes"] for each in found],
        "keys": [each["unique_key"] for each in found],
        "priority": [each["priority"] for each in found],
        "later": abs(found[1]["scheduled_at"] - found[1]["created_at"] - 60_000) <= 1,
        "ids": [len(each["id"]) == 36 and each["id"][14] == "7" for each in found],
        "in order of time": found[0]["id"] < found[1]["id"],
        **{
            f"notes: {name}": raised(lambda notes=notes: queue.enqueue("ok", notes=notes))
            for name, notes in refused.items()
        },
        "notes: key of 64": raised(lambda: queue.enqueue("ok", notes={"k" * 64: "x" * 500})),
    }
