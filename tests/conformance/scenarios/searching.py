"""Searches, cursors, figures."""

import time
from typing import Any

from .bench import PAUSE, Bench, Facts, raised


def searches(bench: Bench) -> Facts:
    queue = bench.make()
    queue.enqueue("bad", max_retries=0, metadata="Alpha 100%")
    queue.enqueue("ok", metadata="alpha_beta")
    bench.run(queue)

    def found(**wanted: Any) -> int:
        return len(queue.list_jobs_filtered(**wanted))

    return {
        "part of an error": found(error_like="ValueError"),
        "part of a traceback": found(error_like="Traceback"),
        "no error": found(error_like="KeyError"),
        "both": found(error_like="bad", metadata_like="Alpha"),
        "status too": found(error_like="bad", status="complete"),
        "case": found(metadata_like="alpha"),
        "percent": found(metadata_like="A%a"),
        "underline": found(metadata_like="alpha_beta"),
        "an underline for a blank": found(metadata_like="alpha_100"),
    }


def cursors(bench: Bench) -> Facts:
    queue = bench.make()
    for _ in range(3):
        queue.enqueue("bad", max_retries=0, metadata="m")
    bench.run(queue)
    queue.archive(older_than=-5)
    queue.enqueue("ok", metadata="m")
    listings = {
        "archived": queue.list_archived_after,
        "letters": queue.dead_letters_after,
        "filtered": lambda **page: queue.list_jobs_filtered_after(metadata_like="m", **page),
    }
    facts: Facts = {}
    for name, listing in listings.items():
        for cursor in ("garbage", "", ":", "abc:def"):
            facts[f"{name} {cursor!r}"] = raised(
                lambda listing=listing, cursor=cursor: listing(after=cursor)
            )
        facts[f"{name} limit -1"] = raised(lambda listing=listing: listing(limit=-1))
        facts[f"{name} limit 0"] = len(listing(limit=0))
        facts[f"{name} short"] = listing(limit=9).next_cursor

    def walk(listing: Any) -> list[Any]:
        found: list[Any] = []
        cursor = None
        while True:
            page = listing(limit=2, after=cursor)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found

    walked = [job.id for job in walk(listings["archived"])]
    facts["archived pages"] = [len(walked), walked == [job.id for job in queue.list_archived()]]
    letters = [letter["id"] for letter in walk(listings["letters"])]
    facts["letter pages"] = [len(letters), letters == [each["id"] for each in queue.dead_letters()]]
    facts["default limits"] = [
        len(queue.dead_letters(limit=2, offset=2)), len(queue.list_archived(limit=2, offset=2))
    ]  # fmt: skip
    return facts


def percentiles(bench: Bench) -> Facts:
    pauses = [0.0, 0.06, 0.03]
    queue = bench.make(probe=lambda _job: PAUSE.wait(pauses.pop()), workers=1)
    queue.enqueue("probe")
    queue.enqueue("probe")
    bench.run(queue)
    two = queue.metrics()["probe"]
    queue.enqueue("probe")
    bench.run(queue)
    three = queue.metrics()["probe"]
    start = queue.metrics_timeseries(bucket=3_600)[0]["timestamp"]
    return {
        "of two the upper": [two["p50_ms"] == two["max_ms"], two["min_ms"] < two["p50_ms"]],
        "of three the middle": three["min_ms"] < three["p50_ms"] < three["max_ms"],
        "the highest": three["p95_ms"] == three["p99_ms"] == three["max_ms"],
        "two decimals": all(
            round(three[name], 2) == three[name] for name in three if name.endswith("_ms")
        ),
        "since 0": queue.metrics(since=0),
        "unknown task": queue.metrics(task_name="nothing"),
        "the first begins then": abs(start - (time.time() - 3_600) * 1_000) < 60_000,
        "buckets": [bucket["count"] for bucket in queue.metrics_timeseries(bucket=3_600)],
        "pending has none": queue.enqueue("ok", delay=60).status and sorted(queue.metrics()),
    }


def empty_queues(bench: Bench) -> Facts:
    queue = bench.make()
    fresh = queue.stats_all_queues()
    queue.pause("mail")
    queue.task(name="report", queue="reports")(lambda: 1)
    queue.enqueue("ok", queue="busy")
    return {
        "of declared tasks": sorted(fresh),
        "known": sorted(queue.stats_all_queues()),
        "all zero": sum(queue.stats_all_queues().get("mail", {}).values()),
        "busy": queue.stats_all_queues()["busy"],
    }
