"""Retention, settings, contract, namespaces."""

from typing import Any

from .bench import Bench, Facts, done, raised

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
