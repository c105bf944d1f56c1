"""Listings and figures."""

from .bench import UNKNOWN, Bench, Facts, raised


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
