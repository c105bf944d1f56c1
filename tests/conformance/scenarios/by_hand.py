"""What a person does to letters, replays and history, one after the other."""

from .bench import Bench, Facts, done, raised


def letters_by_hand(bench: Bench) -> Facts:
    queue, job = done(bench, "bad", max_retries=0, metadata="no JSON", notes={"a": 1})
    (letter,) = queue.dead_letters()
    facts: Facts = {"deleted": queue.delete_dead(letter["id"]), "gone": queue.dead_letters()}
    facts["again"] = queue.delete_dead(letter["id"])
    facts["the job stays"] = [queue.stats()["dead"], len(queue.job_errors(job.id))]
    second = queue.enqueue("bad", max_retries=0, metadata="no JSON", unique_key="k", result_ttl=60)
    bench.run(queue)
    copy = queue.get_job(queue.retry_dead(queue.dead_letters()[0]["id"])).to_dict()
    facts["metadata that is no JSON"] = copy["metadata"]
    facts["copy"] = [copy["unique_key"], copy["retry_count"], copy["error"], copy["progress"]]
    facts["the first stays dead"] = queue.get_job(second.id).status
    return facts


def replays_by_hand(bench: Bench) -> Facts:
    queue, job = done(bench, priority=6, result_ttl=3_600)
    copies = [queue.replay(job.id).id, queue.replay(job.id).id]
    history = queue.replay_history(job.id)
    bench.run(queue)
    facts: Facts = {
        "newest first": [each["replay_job_id"] for each in history] == copies[::-1],
        "no error": [each["original_error"] for each in history],
        "priority": queue.get_job(copies[0]).to_dict()["priority"],
        "result": queue.get_job(copies[0]).result(timeout=5),
        "archived at once": len(queue.list_archived()),
    }
    queue.purge_completed(older_than=-5)
    facts["history goes with the job"] = queue.replay_history(job.id)
    facts["figures go too"] = queue.metrics()
    return facts


def odd_settings(bench: Bench) -> Facts:
    queue, job = done(bench)
    namespace = job.to_dict()["namespace"]
    facts: Facts = {"empty key": raised(lambda: queue.set_setting("", "x"))}
    queue.delete_setting("")
    key = f"retention:effective:{namespace}"
    facts["a key of the queue's own"] = raised(lambda: queue.set_setting(key, "nonsense"))
    bench.put(queue, key, "nonsense")
    facts["a report nobody can read"] = queue.effective_retention()
    queue.delete_setting(key)
    floors = {}
    for text in ("99", "nonsense"):
        bench.put(queue, "contract:min_sdk", text)
        try:
            floors[text] = raised(lambda: bench.make(twin=queue).stats())
        finally:
            queue.delete_setting("contract:min_sdk")
    facts["floors"] = floors
    facts["opens again"] = raised(lambda: bench.make(twin=queue).stats())
    facts["windows of 0"] = sorted(
        set(bench.make(result_ttl=0).dry_run_retention().windows.values())
    )
    return facts
