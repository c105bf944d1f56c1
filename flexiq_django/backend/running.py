"""Run a task of the framework as the body of a job."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async

from flexiq_django.api.context import current_job
from flexiq_django.api.task import Task as JobTask
from flexiq_django.api.task import TaskOptions
from flexiq_django.backend import results, telling
from flexiq_django.backend.framework import AnyResult, AnyTask, TaskContext, task_started
from flexiq_django.backend.values import to_json
from flexiq_django.exceptions import LeaseLost
from flexiq_django.store.scope import Scope

if TYPE_CHECKING:
    from flexiq_django.backend.task_backend import FlexiqBackend


def job_task(scope: Scope, name: str, task: AnyTask, backend: FlexiqBackend) -> JobTask[Any, Any]:
    """A task of ours that runs one of the framework's."""
    telling.listen()
    body = _Body(scope, task)
    function = body.arun if iscoroutinefunction(task.func) else body.run
    return JobTask(function, name=name, queue=backend.flexiq_queue, options=TaskOptions())


class _Body:
    """What a worker calls. The job it runs for is the current one."""

    def __init__(self, scope: Scope, task: AnyTask) -> None:
        self._scope, self._task = scope, task

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The body of a plain function."""
        result = self._begin()
        with telling.remembering(result.id):
            return to_json(self._task.func(*self._args(result, args), **kwargs))

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """The body of a coroutine function."""
        result = await sync_to_async(self._begin)()
        with telling.remembering(result.id):
            return to_json(await self._task.func(*self._args(result, args), **kwargs))

    def _begin(self) -> AnyResult:
        result = results.read_result(self._scope, UUID(current_job.id))
        if result is None:  # the job has been deleted meanwhile
            raise LeaseLost
        telling.tell(task_started, result)
        return result

    def _args(self, result: AnyResult, args: Sequence[Any]) -> Sequence[Any]:
        if not self._task.takes_context:
            return args
        return (TaskContext(task_result=result), *args)
