"""What the flows leave behind, as the tests read it."""

import json
from collections import Counter, defaultdict
from itertools import combinations
from typing import NamedTuple

from flexiq_django.models import Job, JobError, TaskLog, TaskMetric
from tests.processes import WorkerProcess
from tests.testapp.models import Mark


class Run(NamedTuple):
    """One run of a witness's body. `ended` is None unless the attempt still owned its job then."""

    job_id: str
    attempt: int
    began: float
    ended: float | None


def keys() -> Counter[str]:
    """How often each key was marked."""
    return Counter(Mark.objects.values_list("key", flat=True))


def values(key: str) -> list[str]:
    """The values marked under a key, oldest first."""
    return list(Mark.objects.filter(key=key).order_by("id").values_list("value", flat=True))


def witnessed() -> dict[str, list[Run]]:
    """The runs of every witness by job, in the order they began."""
    begun: dict[tuple[str, int], float] = {}
    ended: dict[tuple[str, int], float] = {}
    marks = Mark.objects.filter(key__in=("begin", "end"))
    for key, value in marks.values_list("key", "value"):
        job_id, attempt, moment = json.loads(value)
        (begun if key == "begin" else ended)[job_id, attempt] = moment
    runs: dict[str, list[Run]] = defaultdict(list)
    for (job_id, attempt), began in begun.items():
        runs[job_id].append(Run(job_id, attempt, began, ended.get((job_id, attempt))))
    return {job_id: sorted(found, key=lambda run: run.began) for job_id, found in runs.items()}


def overlaps(runs: list[Run]) -> list[tuple[Run, Run]]:
    """Pairs of runs of one job of which the earlier still owned it when the later had begun."""
    return [
        (earlier, later)
        for earlier, later in combinations(runs, 2)
        if earlier.ended is not None and earlier.ended > later.began
    ]


def job_row(job_id: str) -> Job:
    """The stored job."""
    return Job.objects.get(id=job_id)


def successes() -> Counter[str]:
    """How many successful executions were recorded for each job."""
    rows = TaskMetric.objects.filter(succeeded=True)
    return Counter(str(key) for key in rows.values_list("job_id", flat=True))


def errors_of(job_id: str) -> list[str]:
    """The error texts of a job's failed attempts, oldest first."""
    rows = JobError.objects.filter(job_id=job_id).order_by("id")
    return list(rows.values_list("error", flat=True))


def log_lines_of(job_id: str) -> list[str]:
    """What a job's attempts logged, oldest first."""
    rows = TaskLog.objects.filter(job_id=job_id).order_by("id")
    return list(rows.values_list("message", flat=True))


def assert_quiet(*workers: WorkerProcess) -> None:
    """No worker printed a traceback."""
    for worker in workers:
        assert "Traceback" not in worker.log, worker.log_tail()
