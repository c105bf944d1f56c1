"""``FlexiqBackend``: what Django's task framework calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core.checks import CheckMessage, Error

from flexiq_django.api import options as check
from flexiq_django.backend.framework import AnyResult, AnyTask, BaseTaskBackend, InvalidTask
from flexiq_django.backend.options import BackendOptions, find_problems, queue_for, read_options
from flexiq_django.exceptions import InvalidOptionError

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue


class FlexiqBackend(BaseTaskBackend):
    """Stores the tasks of Django's task framework as jobs, in the caller's transaction.

    ``flexiq_worker`` runs them. ``OPTIONS`` may name ``DATABASE``, ``NAMESPACE``, ``MAX_RETRIES``
    (0 unless given), ``TIMEOUT`` and ``RESULT_TTL`` (seconds); with none of them jobs go where the
    ``FLEXIQ`` setting says.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    # Rooms that need models are imported on use: tasks may be declared before the apps are ready.

    @property
    def flexiq_options(self) -> BackendOptions:
        """``OPTIONS``, checked. Raises ``ConfigurationError``."""
        return read_options(self.alias, self.options)

    @property
    def flexiq_queue(self) -> Queue:
        """The ``Queue`` that holds the jobs: for whatever the framework has no word for."""
        return queue_for(self.flexiq_options)

    def validate_task(self, task: AnyTask) -> None:
        """Raises ``InvalidTask`` for a task that the framework or the queue does not allow."""
        super().validate_task(task)
        try:
            check.check_name("task", task.module_path, longest=200)
            check.check_name("queue_name", task.queue_name, longest=100)
            check.check_moment("run_after", task.run_after)
        except InvalidOptionError as error:
            raise InvalidTask(str(error)) from None

    def enqueue(  # type: ignore[override] # its types tie arguments to the function
        self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AnyResult:
        """Store a job that calls the task; it exists exactly when the caller's transaction commits.

        Raises ``TypeError`` for arguments that are no JSON, ``InvalidTask`` for a task that a
        worker could not find, and what ``Queue.enqueue`` raises.
        """
        self.validate_task(task)
        from flexiq_django.backend import jobs

        return jobs.enqueue(self, task, args, kwargs)

    def get_result(self, result_id: str) -> AnyResult:
        """The result as it stands, archived or not.

        Raises ``TaskResultDoesNotExist`` if there is none, or its task is gone from the code.
        """
        from flexiq_django.backend import results

        return results.get_result(self, result_id)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """System checks of the configuration."""
        return [*super().check(**kwargs), *self._problems()]

    def _problems(self) -> Iterable[CheckMessage]:
        if not apps.is_installed("flexiq_django"):
            yield Error(
                f"TASKS[{self.alias!r}] uses FlexiqBackend, but flexiq_django is not installed.",
                hint="Add 'flexiq_django' to INSTALLED_APPS and run manage.py migrate.",
                id="flexiq.E020",
            )
        for text in find_problems(self.alias, self.options):
            yield Error(text, hint="Correct OPTIONS in TASKS.", id="flexiq.E021")
