"""Handles: what failed, what was published, what is gone; and jobs taken from their worker."""

from typing import Any

from .bench import Bench, Facts, done, raised


def failed_results(bench: Bench) -> Facts:
    queue, job = done(bench, "bad", max_retries=0)
    cancelled = queue.enqueue("ok")
    queue.cancel_job(cancelled.id)

    def failure(handle: Any) -> Any:
        try:
            handle.result(timeout=5)
        except Exception as error:
            return error
        raise AssertionError("it has a result")

    error = failure(job)
    facts: Facts = {
        "dead": type(error).__name__,
        "errtype": error.errtype,
        "traceback": error.traceback[-1].strip(),
        "job": error.job_id == job.id,
        "raw": error.raw_error == job.error,
        "cancelled": type(failure(cancelled)).__name__,
        "no error": cancelled.to_dict()["error"],
        "errors": job.errors == queue.job_errors(job.id),
        "shown": [job.id in repr(job), "dead" in repr(job)],
    }
    queue.purge_dead(older_than=-5)
    queue.purge_completed(older_than=-5)
    job.refresh()
    facts["what is gone stays as it was"] = job.status
    return facts


def odd_results(bench: Bench) -> Facts:
    values = [{1: "int key"}, (1, 2), {3}, b"bytes"]
    left = list(values)
    queue = bench.make(probe=lambda _job: left.pop(0), workers=1)
    jobs = [queue.enqueue("probe", max_retries=0) for _ in values]
    bench.run(queue)

    def answer(job: Any) -> Any:
        try:
            return job.result(timeout=5)
        except Exception as error:
            return type(error).__name__

    return {
        "int keys": [jobs[0].to_dict()["status"], answer(jobs[0]) == values[0]],
        "others": [answer(job) == value for job, value in zip(jobs[1:], values[1:], strict=True)],
    }


def streams(bench: Bench) -> Facts:
    queue = bench.make(probe=lambda job: [job.publish(None), job.publish({"a": [1]})])
    job = queue.enqueue("probe")
    bench.run(queue)
    lines = queue.task_logs(job.id)
    return {
        "first": next(iter(job.stream(timeout=5, poll_interval=0.05))),
        "each": len(list(job.stream(timeout=5, poll_interval=0.05))),
        "lines": [[line["level"], line["message"], line["extra"]] for line in lines],
        "no patience": raised(lambda: list(job.stream(timeout=0))) is not None,
    }


def log_lines(bench: Bench) -> Facts:
    levels = bench.levels

    def act(job: Any) -> str | None:
        job.log("one", level=levels.WARNING, extra={"a": 1})
        job.log("two", level=levels.ERROR)
        return raised(lambda: job.log("three", level="info"))

    queue = bench.make(probe=act)
    job = queue.enqueue("probe")
    bench.run(queue)
    lines = queue.task_logs(job.id)

    def messages(**wanted: Any) -> list[str]:
        return [line["message"] for line in queue.query_logs(**wanted)]

    return {
        "a word as level": job.result(timeout=5),
        "oldest first": [line["message"] for line in lines][:2],
        "extra": [line["extra"] for line in lines][:2],
        "levels": sorted(each.value for each in levels),
        "by level": messages(level=levels.WARNING),
        "by a word": raised(lambda: messages(level="warning")),
        "by task": messages(task_name="probe")[-1:],
        "of another task": messages(task_name="ok"),
        "at most": len(messages(limit=1)),
        "none": messages(limit=0),
    }


def taken_back(bench: Bench) -> Facts:
    facts: Facts = {}
    tries: list[str] = []

    def act(job: Any) -> str:
        tries.append(job.id)
        if len(tries) > 1:
            job.check_cancelled()  # the request went with the attempt it was for
            return "new"
        queue.update_progress(job.id, 30)
        queue.cancel_running_job(job.id)
        facts["requeue"] = queue.requeue_job(job.id)
        facts["replay"] = queue.replay(job.id).id != job.id
        return "old"

    queue = bench.make(probe=act)
    job = queue.enqueue("probe", max_retries=2)
    bench.run(queue, until=lambda: queue.stats()["completed"] == 2)
    document = job.to_dict()
    facts["end"] = [document[name] for name in ("status", "retry_count", "progress", "error")]
    facts["result"] = job.result(timeout=5)
    facts["bodies"] = tries.count(job.id)
    facts["errors"] = queue.job_errors(job.id)
    return facts


def stops(bench: Bench) -> Facts:
    tries: list[int] = []

    def act(job: Any) -> None:
        tries.append(job.retry_count)
        if len(tries) == 1:
            queue.cancel_running_job(job.id)
            raise ValueError("once")
        job.check_cancelled()

    queue = bench.make(probe=act)
    job = queue.enqueue("probe", max_retries=2)

    @queue.task(name="quitter", max_retries=2)
    def quitter() -> None:
        raise bench.cancelled("enough")

    quits = quitter.delay()
    bench.run(queue)
    document, other = job.to_dict(), quits.to_dict()
    return {
        "the request survives a retry": [document["status"], document["retry_count"], tries],
        "errors": len(queue.job_errors(job.id)),
        "by itself": [other["status"], other["retry_count"], queue.job_errors(quits.id)],
        "failures counted": queue.metrics()["quitter"]["failure_count"],
    }
