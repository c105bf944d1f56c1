"""What reaches over the border of a namespace."""

from .bench import Bench, Facts, done


def across_namespaces(bench: Bench) -> Facts:
    queue, job = done(bench)
    copy = queue.replay(job.id)
    bench.run(queue)
    pending = queue.enqueue("bad", queue="mail", unique_key="k")
    doomed = queue.enqueue("bad", queue="post")
    queue.pause("mail")
    queue.set_setting(f"across-{job.id}", "a")
    other = bench.make(beside=queue)
    nameless = bench.make(beside=queue, nameless=True)
    preview = other.dry_run_retention(bench.retention(archived_jobs=0))
    facts: Facts = {
        "another job of the key": other.enqueue("ok", unique_key="k").id != pending.id,
        "paused": other.paused_queues(),
        "settings": other.get_setting(f"across-{job.id}"),
        "history": len(other.replay_history(job.id)),
        "preview": preview.counts["archived_jobs"],
        "cancel": other.cancel_job(copy.id),
        "stop": other.cancel_running_job(copy.id),
        "requeue": other.requeue_job(copy.id),
        "every namespace": {found.id for found in other.list_jobs(namespace=None)}
        >= {job.id, copy.id, pending.id},
        "of a named one": len(other.list_jobs(namespace=job.to_dict()["namespace"])),
        "seen without a name": nameless.get_job(job.id) is not None,
        "counted without a name": nameless.stats()["completed"],
        "purge": other.purge("mail"),
        "purge completed": other.purge_completed(older_than=-5),
        "revoke": other.revoke_task("bad"),
    }
    facts["left"] = [
        queue.get_job(key) is not None and queue.get_job(key).status
        for key in (job.id, copy.id, pending.id, doomed.id)
    ]
    return facts
