"""Blocks that also decorate: a test is a function or a coroutine function."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from asgiref.sync import iscoroutinefunction, sync_to_async

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Block(contextlib.AbstractContextManager[T]):
    """A ``with`` block that is also a decorator, for ``def`` and for ``async def``.

    A decorated function opens a block of its own in each call.
    """

    def __init__(self, opens: Callable[[], contextlib.AbstractContextManager[T]]) -> None:
        self._opens = opens
        self._opened: list[contextlib.AbstractContextManager[T]] = []

    def __enter__(self) -> T:
        """Open the block."""
        manager = self._opens()
        value = manager.__enter__()
        self._opened.append(manager)
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Close what was opened last."""
        return self._opened.pop().__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """The function with a block around each call; around the await, if it is a coroutine.

        Around the whole life of a generator, such as a fixture's. Raises ``TypeError`` for a class:
        decorate its methods.
        """
        if isinstance(function, type):
            raise TypeError(
                f"{function.__qualname__} is a class; this decorates functions, such as its methods"
            )
        if inspect.isasyncgenfunction(function):
            return cast("F", self._around_async_generator(function))
        if inspect.isgeneratorfunction(function):
            return cast("F", self._around_generator(function))
        if iscoroutinefunction(function):
            return cast("F", self._around_coroutine(function))

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._opens():
                return function(*args, **kwargs)

        return cast("F", inside)

    def _around_coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def inside(*args: Any, **kwargs: Any) -> Any:
            with contextlib.ExitStack() as stack:
                await self._open_in(stack)
                return await function(*args, **kwargs)

        return inside

    async def _open_in(self, stack: contextlib.ExitStack) -> None:
        # In Django's thread for database work: the opening may ask the database.
        await sync_to_async(stack.enter_context)(self._opens())

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._opens():
                return (yield from function(*args, **kwargs))

        return inside

    def _around_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def inside(*args: Any, **kwargs: Any) -> Any:
            with contextlib.ExitStack() as stack:
                await self._open_in(stack)
                async with contextlib.aclosing(function(*args, **kwargs)) as values:
                    with contextlib.suppress(StopAsyncIteration):
                        value = await anext(values)
                        while True:
                            try:
                                sent = yield value
                            except Exception as error:
                                value = await values.athrow(error)
                            else:
                                value = await values.asend(sent)

        return inside


def block(function: Callable[P, Iterator[T]]) -> Callable[P, Block[T]]:
    """``contextlib.contextmanager`` whose blocks decorate coroutine functions too."""
    opens = contextlib.contextmanager(function)

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> Block[T]:
        return Block(functools.partial(opens, *args, **kwargs))

    return make
