"""What becomes of a job when those it waits for end."""

from typing import Any

from .bench import PAUSE, Bench, Facts


def cascades(bench: Bench) -> Facts:
    def act(job: Any) -> None:
        queue.cancel_running_job(job.id)
        job.check_cancelled()

    queue = bench.make(probe=act)
    parents = {
        "expired": queue.enqueue("ok", expires=0.001),
        "asked to stop": queue.enqueue("probe"),
        "revoked": queue.enqueue("bad"),
    }
    children = {name: queue.enqueue("ok", depends_on=job.id) for name, job in parents.items()}
    queue.revoke_task("bad")
    done = queue.enqueue("ok")
    waiting = queue.enqueue("ok", depends_on=done.id)
    PAUSE.wait(0.01)
    bench.run(queue, stays=True)
    facts: Facts = {
        name: [job.to_dict()["status"], children[name].to_dict()["status"]]
        for name, job in parents.items()
    }
    facts["completed"] = [waiting.to_dict()["status"], waiting.dependencies == [done.id]]
    facts["dependents"] = done.dependents == [waiting.id]
    late = queue.enqueue("ok", depends_on=[done.id, waiting.id])
    bench.run(queue, until=lambda: late.to_dict()["status"] == "complete")
    facts["after completed ones"] = late.to_dict()["status"]
    facts["whole graph"] = sorted(
        node["id"] for node in queue.job_dag(waiting.id)["nodes"]
    ) == sorted([done.id, waiting.id, late.id])
    facts["starts with the job"] = queue.job_dag(waiting.id)["nodes"][0]["id"] == waiting.id
    return facts
