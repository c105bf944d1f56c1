"""Queues, purges, the archive."""

from .bench import Bench, Facts, done, raised


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
