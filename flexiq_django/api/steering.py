"""The methods of ``Queue`` that steer queues and tasks: pause, limit, purge, revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexiq_django.api import options as check
from flexiq_django.api.announce import wake_workers
from flexiq_django.api.twins import async_twin
from flexiq_django.core.rates import parse_rate_limit
from flexiq_django.store import inspect, steer

if TYPE_CHECKING:
    from flexiq_django.store.scope import Scope


class Steering:
    """What holds for a queue or a task as a whole, in every worker of the namespace at once."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

    # --- queues -----------------------------------------------------------------------------------

    def pause(self, queue_name: str = "default") -> None:
        """Stop starting jobs of a queue until it is resumed; running jobs go on.

        In force at the next claim of every worker, and across restarts. Jobs may still be enqueued.
        Raises ``InvalidOptionError`` for a name no queue can have.
        """
        steer.pause(self.scope, _queue(queue_name))

    def resume(self, queue_name: str = "default") -> None:
        """Start jobs of a paused queue again. One that is not paused stays as it is."""
        if steer.resume(self.scope, _queue(queue_name)):
            wake_workers(self.scope)

    def paused_queues(self) -> list[str]:
        """The names of the paused queues, in order."""
        return inspect.paused_queues(self.scope)

    def set_queue_rate_limit(self, queue_name: str, rate_limit: str | None) -> None:
        """Start at most so many jobs of a queue in a time, over all workers: ``"100/m"``.

        A number from 1, a slash and a unit (``s``, ``m``, ``h``, or ``second``, ``minute``,
        ``hour``). A token bucket keeps it: after a quiet time so many may start at once. ``None``
        lifts the limit. Raises ``InvalidLimitError``.
        """
        if rate_limit is not None:
            parse_rate_limit("rate_limit", rate_limit)
        steer.set_queue(self.scope, _queue(queue_name), rate_limit=rate_limit)
        wake_workers(self.scope)

    def set_queue_concurrency(self, queue_name: str, max_concurrent: int | None) -> None:
        """Run at most so many jobs of a queue at the same time, over all workers.

        ``None`` lifts the limit. Raises ``InvalidLimitError`` below 1: pause a queue to stop it.
        """
        if max_concurrent is not None:
            check.check_concurrency("max_concurrent", max_concurrent)
        steer.set_queue(self.scope, _queue(queue_name), max_concurrent=max_concurrent)
        wake_workers(self.scope)

    def purge(self, queue_name: str) -> int:
        """Cancel every pending job of a queue, and all that depend on one; how many of the queue.

        The rows stay, with the error ``purged``. Running jobs go on.
        """
        return steer.cancel_pending(self.scope, error="purged", queue=_queue(queue_name))

    # --- tasks ------------------------------------------------------------------------------------

    def revoke_task(
        self, task_name: str, *, cancel_pending: bool = True, block: bool = True
    ) -> int:
        """Cancel the pending jobs of a task and refuse new ones; how many were cancelled.

        New ones raise ``TaskRevokedError`` until :meth:`unrevoke_task`. Each half can be had alone:
        ``cancel_pending=False`` leaves the pending jobs, ``block=False`` allows new ones. Cancelled
        jobs carry the error ``revoked``; what depends on them is cancelled too.
        """
        name = check.check_name("task_name", task_name, longest=200)
        cancels = check.check_flag("cancel_pending", cancel_pending)
        if check.check_flag("block", block):
            steer.revoke(self.scope, name)
        return steer.cancel_pending(self.scope, error="revoked", task_name=name) if cancels else 0

    def unrevoke_task(self, task_name: str) -> bool:
        """Allow new jobs of a revoked task again. False if it was not revoked."""
        return steer.unrevoke(self.scope, check.check_name("task_name", task_name, longest=200))

    def revoked_tasks(self) -> list[str]:
        """The names of the tasks of which no new job is taken, in order."""
        return steer.revoked_tasks(self.scope)

    apause = async_twin(pause)
    aresume = async_twin(resume)
    apaused_queues = async_twin(paused_queues)
    aset_queue_rate_limit = async_twin(set_queue_rate_limit)
    aset_queue_concurrency = async_twin(set_queue_concurrency)
    apurge = async_twin(purge)
    arevoke_task = async_twin(revoke_task)
    aunrevoke_task = async_twin(unrevoke_task)
    arevoked_tasks = async_twin(revoked_tasks)


def _queue(name: str) -> str:
    return check.check_name("queue_name", name, longest=100)
