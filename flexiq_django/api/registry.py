"""The queues that the code of this process has declared."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from flexiq_django.store.scope import Scope

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue

_queues: weakref.WeakSet[Queue] = weakref.WeakSet()


def register(queue: Queue) -> None:
    """Remember a queue for as long as somebody holds it."""
    _queues.add(queue)


def declared_queues() -> list[Queue]:
    """Every queue this process declared."""
    return list(_queues)


def queues_of(scope: Scope) -> list[Queue]:
    """The queues whose tasks a worker of ``scope`` runs, those of its own namespace first.

    A queue that follows the settings lends its tasks to every namespace: a worker started with
    ``--namespace`` or ``--database`` runs the same code on other jobs.
    """
    own = [each for each in _queues if each.place == scope]
    return own + [each for each in _queues if each.follows_settings and each not in own]
