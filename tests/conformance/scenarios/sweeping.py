"""What happens because time passes: the sweep, lifetimes, dead letters that are retried."""

from typing import Any

from .bench import Bench, Facts


def left(bench: Bench, queue: Any, table: str) -> int:
    """How many rows of a table there are; those of a job that is gone have no other reader."""
    return int(queue.dry_run_retention(bench.retention(**{table: 0})).counts[table])


def sweeps(bench: Bench) -> Facts:
    queue = bench.make(retention=bench.retention(archived_jobs=0))
    other = bench.make(beside=queue)
    foreign = other.enqueue("ok")
    other.cancel_job(foreign.id)  # so it has ended too
    jobs = [queue.enqueue("ok"), queue.enqueue("bad", max_retries=0)]
    kept = queue.enqueue("ok", result_ttl=3_600)
    waiting = queue.enqueue("ok", delay=3_600)
    bench.run(queue, stays=True)
    bench.run(queue, until=lambda: not any(queue.get_job(job.id) for job in jobs))
    policy = queue.effective_retention()
    return {
        "its own lifetime is longer": queue.get_job(kept.id) is not None,
        "of another namespace": other.get_job(foreign.id) is not None,
        "waiting": queue.get_job(waiting.id).status,
        "errors stay": left(bench, queue, "job_errors"),
        "figures stay": [queue.metrics()[name]["count"] for name in ("ok", "bad")],
        "letters stay": [letter["original_job_id"] == jobs[1].id
                         for letter in queue.dead_letters()],
        "letter still works": queue.get_job(
            queue.retry_dead(queue.dead_letters()[0]["id"])
        ).status,
        "policy": [policy.enabled, policy.defaulted, dict(policy.windows)],
        "reported": isinstance(policy.reported_at, int),
    }  # fmt: skip


def lifetimes(bench: Bench) -> Facts:
    queue = bench.make(retention=bench.retention())
    brief = queue.enqueue("bad", max_retries=0, result_ttl=0)
    stays = queue.enqueue("bad", max_retries=0)
    bench.run(queue)
    bench.run(queue, until=lambda: not queue.get_job(brief.id) and len(queue.dead_letters()) == 1)
    preview = queue.dry_run_retention()
    return {
        "without one": queue.get_job(stays.id) is not None,
        "errors": left(bench, queue, "job_errors"),
        "figures": queue.metrics()["bad"]["count"],
        "letters": len(queue.dead_letters()),
        "nothing is left": [preview.enabled, preview.total],
    }


def previews(bench: Bench) -> Facts:
    queue = bench.make(retention=bench.retention())
    queue.enqueue("ok")
    queue.enqueue("bad", max_retries=0)
    bench.run(queue)
    own = queue.dry_run_retention()
    all_of_it = queue.dry_run_retention(
        bench.retention(archived_jobs=0, dead_letter=0, task_logs=0, task_metrics=0, job_errors=0)
    )
    some = queue.dry_run_retention(bench.retention(job_errors=0, archived_jobs=3_600))
    return {
        "own": [own.enabled, own.defaulted, own.total],
        "all": [all_of_it.defaulted, dict(sorted(all_of_it.counts.items())), all_of_it.total],
        "some": some.total,
        "time": isinstance(some.reference_time, int),
        "nothing is gone": [queue.stats()["completed"], queue.stats()["dead"]],
    }


def retried_by_itself(bench: Bench) -> Facts:
    queue = bench.make(dlq_auto_retry_delay=0, dlq_auto_retry_max=1)
    job = queue.enqueue("bad", max_retries=0)

    def retried() -> bool:
        return [letter["dlq_retry_count"] for letter in queue.dead_letters()] == [1]

    bench.run(queue, until=retried)
    bench.run(queue, stays=True)
    (letter,) = queue.dead_letters()
    return {
        "once": [letter["dlq_retry_count"], letter["original_job_id"] != job.id],
        "dead": queue.stats()["dead"],
        "the first": job.to_dict()["status"],
    }
