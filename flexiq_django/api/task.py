"""Tasks: a function, how it is tried, and the calls that store a job of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from flexiq_django.api.twins import async_twin
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.exceptions import InvalidArgumentsError

if TYPE_CHECKING:
    from flexiq_django.api.jobs import EnqueueOptions
    from flexiq_django.api.queue import Queue
    from flexiq_django.api.result import JobResult

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOptions:
    """What a task brings to each of its jobs; ``None`` takes the queue's default. In seconds."""

    queue: str | None = None
    priority: int | None = None
    max_retries: int | None = None
    timeout: float | None = None
    soft_timeout: float | None = None
    result_ttl: float | None = None
    transactional: bool = False
    idempotent: bool = False
    rate_limit: str | None = None
    max_concurrent: int | None = None
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(max_retries=0))

    @property
    def is_limited(self) -> bool:
        """Whether jobs of the task start under a limit of its own."""
        return self.rate_limit is not None or self.max_concurrent is not None

    @property
    def limits(self) -> dict[str, Any]:
        """What holds for all jobs of the task together."""
        return {
            "rate_limit": self.rate_limit,
            "max_concurrent": self.max_concurrent,
            "retry_budget": self.retry.budget,
        }


class Task(Generic[P, R]):
    """A declared task. Calling it runs the function in place; the other calls store a job."""

    def __init__(
        self, function: Callable[P, R], *, name: str, queue: Queue, options: TaskOptions
    ) -> None:
        self.function = function
        self.name = name
        self.queue = queue
        self.options = options
        #: Whether calling the function gives a coroutine.
        self.is_async = inspect.iscoroutinefunction(function)
        self._signature = inspect.signature(function)
        update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function here and now, as if it were no task."""
        return self.function(*args, **kwargs)

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> JobResult:
        """Store a job that calls the function with these arguments."""
        return self.queue.enqueue(self, args, kwargs)

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> JobResult:
        """Async twin of :meth:`delay`."""
        return await self.queue.aenqueue(self, args, kwargs)

    def apply_async(
        self,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> JobResult:
        """Store a job with options of its own; see :meth:`Queue.enqueue`."""
        return self.queue.enqueue(self, args, kwargs, **options)

    aapply_async = async_twin(apply_async)

    def map(self, calls: Iterable[Sequence[Any]]) -> list[JobResult]:
        """Store one job for each tuple of positional arguments, all at once."""
        return self.queue.enqueue_many(self, list(calls))

    amap = async_twin(map)

    def check_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise ``InvalidArgumentsError`` if the function cannot be called like this."""
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArgumentsError(
                f"{self.name}{self._signature} cannot be called like this: {error}"
            ) from None
