"""The queues that the code of this process has declared."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flexiq_django.store.scope import Scope

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue
    from flexiq_django.api.task import Task

_queues: weakref.WeakSet[Queue] = weakref.WeakSet()
_lock = threading.Lock()  # a set must not grow while somebody reads it
_finders: list[Callable[[Scope, str], Task[Any, Any] | None]] = []


def register(queue: Queue) -> None:
    """Remember a queue for as long as somebody holds it."""
    with _lock:
        _queues.add(queue)


def declared_queues() -> list[Queue]:
    """Every queue this process declared."""
    with _lock:
        return list(_queues)


def queues_of(scope: Scope) -> list[Queue]:
    """The queues whose tasks a worker of ``scope`` runs, those of its own namespace first.

    A queue that follows the settings lends its tasks to every namespace: a worker started with
    ``--namespace`` or ``--database`` runs the same code on other jobs.
    """
    declared = declared_queues()
    own = [each for each in declared if each.place == scope]
    return own + [each for each in declared if each.follows_settings and each not in own]


def tasks_of(scope: Scope) -> dict[str, Task[Any, Any]]:
    """The tasks that a worker of ``scope`` runs, by name; those of its own namespace win."""
    found: dict[str, Task[Any, Any]] = {}
    for queue in reversed(queues_of(scope)):
        found.update(queue.tasks)
    return found


def add_finder(find: Callable[[Scope, str], Task[Any, Any] | None]) -> None:
    """Let ``find`` look for tasks that no queue declares; adding it again changes nothing.

    It is called with the scope of a worker and the name of a job, and gives ``None`` for a name it
    does not know. It must not raise.
    """
    if find not in _finders:
        _finders.append(find)


def find_elsewhere(scope: Scope, name: str) -> Task[Any, Any] | None:
    """A task that no queue declares but a finder knows."""
    return next((task for find in _finders if (task := find(scope, name)) is not None), None)
