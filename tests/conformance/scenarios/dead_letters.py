"""Dead letters and replays."""

import json

from .bench import UNKNOWN, Bench, Facts, done, raised


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
