"""Tasks of the framework, as a project would write them. No worker imports them by itself."""

import asyncio
from typing import Any

from flexiq_django import current_job, queue
from flexiq_django.backend import framework

try:
    from django.tasks import TaskContext, task
except ImportError:
    from django_tasks import TaskContext, task  # type: ignore[assignment]

assert framework.TaskContext is TaskContext


@task
def nothing(*args: Any, **kwargs: Any) -> None:
    """Take whatever there is."""


@task()
async def nothing_async(*args: Any, **kwargs: Any) -> None:
    """Take whatever there is, as a coroutine."""
    await asyncio.sleep(0)


@task
def answer() -> int:
    """Give a number."""
    return 42


@task
def echo(value: Any) -> Any:
    """Give the argument back."""
    return value


@task
async def echo_async(value: Any) -> Any:
    """Give the argument back, from a coroutine."""
    return value


@task
def kind_of(value: Any) -> str:
    """The type of what arrives."""
    return type(value).__name__


@task
def refuse() -> None:
    """Fail as most tasks do."""
    raise ValueError("the task does not want to")


@task
def leave() -> None:
    """Fail as few tasks do."""
    raise SystemExit("the task wants to leave")


@task
def refuse_in_two_layers() -> None:
    """Fail with an exception whose argument is one."""
    raise ValueError(ValueError("inner"))


@task
async def refuse_async() -> None:
    """Fail in a coroutine."""
    raise LookupError("not found")


@task
def give_no_json() -> Any:
    """Return what the framework cannot store."""
    return {1, 2}


@task(takes_context=True)
def tell_id(context: TaskContext) -> str:
    """The id of the result."""
    return context.task_result.id


@task(takes_context=True)
async def tell_attempt(context: TaskContext, factor: int = 1) -> int:
    """The number of the attempt."""
    assert isinstance(context, TaskContext)
    return context.attempt * factor


@task(takes_context=True)
def succeed_at(context: TaskContext, attempt: int) -> str:
    """Fail until this attempt."""
    assert context.task_result.status == "RUNNING"
    if context.attempt < attempt:
        raise RuntimeError(f"attempt {context.attempt}")
    return "at last"


@task
def tell_job() -> list[Any]:
    """What our own context says."""
    current_job.log("from a Django task")
    return [current_job.id, current_job.task_name, current_job.queue_name]


@task
def stop_when_asked() -> None:
    """Be asked to stop, and do."""
    queue.cancel_running_job(current_job.id)
    current_job.check_cancelled()


not_a_task = answer.func
