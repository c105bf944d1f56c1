"""Jobs as a process with an older version of the code stores them."""

from flexiq_django import JobResult, queue
from flexiq_django.core.payload import encode_call
from flexiq_django.store.enqueue import insert_jobs
from tests.factories import NewJobFactory


def enqueue_unfit(task_name: str, *args: object, max_retries: int = 2) -> JobResult:
    """Store a call that fits the task as it was there."""
    payload = encode_call(args, {}, limit_bytes=10_000)
    job = NewJobFactory(task_name=task_name, payload=payload, max_retries=max_retries)
    insert_jobs(queue.scope, [job])
    found = queue.get_job(str(job.id))
    assert found is not None
    return found
