"""Async twins: the same method, run in Django's thread for database work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async

P = ParamSpec("P")
R = TypeVar("R")


def async_twin(method: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """The coroutine form of a method: same arguments, same answer, same errors."""

    @wraps(method)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> R:
        return await sync_to_async(method, thread_sensitive=True)(*args, **kwargs)

    twin.__name__ = f"a{method.__name__}"
    twin.__qualname__ = f"{method.__qualname__.rpartition('.')[0]}.{twin.__name__}"
    twin.__doc__ = f"Async twin of :meth:`{method.__name__}`."
    return twin
