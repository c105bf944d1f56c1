"""Periodic tasks."""

from datetime import UTC, datetime
from typing import Any

from .bench import Bench, Facts, raised

FIELDS = {"name", "task_name", "cron_expr", "queue", "enabled", "last_run", "next_run", "timezone"}


def fields(row: Any) -> dict[str, Any]:
    """A row as a dict, which it may be already."""
    return row if isinstance(row, dict) else {name: getattr(row, name) for name in FIELDS}


def schedules(bench: Bench) -> Facts:
    queue = bench.make()

    @queue.periodic(cron="* * * * * *", name="tick")
    def tick() -> int:
        return 1

    before = queue.list_periodic()
    bench.run(queue, until=lambda: queue.stats()["completed"])
    (found,) = queue.list_periodic()
    row = fields(found)
    job = queue.list_jobs(status="complete")[-1].to_dict()
    return {
        "before a worker": before,
        "a row is a dict": isinstance(found, dict),
        "fields": set(row) >= FIELDS,
        "row": [row[name] for name in ("name", "cron_expr", "queue", "enabled", "timezone")],
        "times": row["next_run"] > row["last_run"] > 10**12,
        "whole seconds": row["next_run"] % 1000,
        "job": [job[name] for name in ("priority", "max_retries", "timeout_ms", "queue")],
        "key": job["unique_key"].rpartition(":")[0],
        "runs its task": [job["task_name"] == row["task_name"], tick()],
    }


def schedules_by_hand(bench: Bench) -> Facts:
    queue = bench.make()
    queue.periodic(cron="0 0 2 * * *", name="nightly")(lambda: 1)
    bench.run(queue, until=queue.list_periodic)

    def enabled() -> list[bool]:
        return [fields(row)["enabled"] for row in queue.list_periodic()]

    facts: Facts = {"unknown": [verb("none") for verb in verbs_of(queue)]}
    facts["paused"] = [queue.pause_periodic("nightly"), queue.pause_periodic("nightly"), enabled()]
    facts["resumed"] = [
        queue.resume_periodic("nightly"), queue.resume_periodic("nightly"), enabled()
    ]  # fmt: skip
    facts["deleted"] = [
        queue.delete_periodic("nightly"), queue.delete_periodic("nightly"), enabled()
    ]  # fmt: skip
    return facts


def verbs_of(queue: Any) -> list[Any]:
    return [queue.pause_periodic, queue.resume_periodic, queue.delete_periodic]


def cron_texts(bench: Bench) -> Facts:
    def declared(cron: str) -> Any:
        queue = bench.make()
        queue.periodic(cron=cron, name="asked")(lambda: 1)
        bench.run(queue, until=queue.list_periodic)
        return datetime.fromtimestamp(fields(queue.list_periodic()[0])["next_run"] / 1_000, UTC)

    texts = ("0 0 2 * * *", "@daily", "0 0 2 * * MON", "0 0 2 * * 0", "0 2 * * *", "nonsense",
             "0 0 25 * * *", "0 0 2 1 1 * 2099")  # fmt: skip
    facts: Facts = {text: raised(lambda text=text: declared(text)) for text in texts}
    facts["day 7"] = declared("0 0 2 * * 7").strftime("%A %H")
    return facts
