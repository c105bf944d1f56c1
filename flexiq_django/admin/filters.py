"""The filters of the lists. Choices come from small tables and from the code, never from jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from flexiq_django.admin import texts
from flexiq_django.api.registry import declared_queues
from flexiq_django.conf import get_settings
from flexiq_django.core.status import TERMINAL, JobStatus
from flexiq_django.models import QueueState, Worker
from flexiq_django.models.job import STATUS_CHOICES


class StatusFilter(admin.SimpleListFilter):
    """Jobs in one state."""

    title = _("status")
    parameter_name = "status"
    #: ``failed`` is reserved and never stored.
    statuses: Iterable[JobStatus] = [each for each in JobStatus if each != JobStatus.FAILED]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        words = dict(STATUS_CHOICES)
        return [(each.value, words[each.value]) for each in self.statuses]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        if value == JobStatus.RUNNING:
            # The same rows, by the index of leases.
            return queryset.filter(lease_at__isnull=False)
        return queryset.filter(status=value)


class EndedStatusFilter(StatusFilter):
    """Archived jobs by how they ended."""

    statuses = [each for each in JobStatus if each in TERMINAL and each != JobStatus.FAILED]


class NameFilter(admin.SimpleListFilter):
    """Rows whose column of that name has one value."""

    def known(self, using: str) -> set[str]:
        """The values to offer. The page takes any other in its address as well."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        names = self.known(model_admin.get_queryset(request).db)
        chosen = self.value()
        if chosen is not None:
            names.add(chosen)
        return [(name, texts.printable(name)) for name in sorted(names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset if value is None else queryset.filter(**{str(self.parameter_name): value})


class QueueFilter(NameFilter):
    """Rows of one queue."""

    title = _("queue")
    parameter_name = "queue"

    def known(self, using: str) -> set[str]:
        names = {"default"}
        for queue in declared_queues():
            if queue.place.using == using:
                names.update(task.options.queue or "default" for task in queue.tasks.values())
        names.update(QueueState.objects.using(using).values_list("name", flat=True))
        for served in Worker.objects.using(using).values_list("queues", flat=True):
            names.update(json.loads(served) or ())
        return names


class TaskFilter(NameFilter):
    """Rows of one task."""

    title = _("task")
    parameter_name = "task_name"

    def known(self, using: str) -> set[str]:
        return {
            name
            for queue in declared_queues()
            if queue.place.using == using
            for name in queue.tasks
        }


class NamespaceFilter(NameFilter):
    """Rows of one namespace. Shown only where there are several."""

    title = _("namespace")
    parameter_name = "namespace"

    def known(self, using: str) -> set[str]:
        return known_namespaces(using)

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or self.value() is not None


def known_namespaces(using: str) -> set[str]:
    """The namespaces of the settings, of the queues in the code, and of the workers."""
    names = {queue.place.namespace for queue in declared_queues() if queue.place.using == using}
    names.add(get_settings().NAMESPACE)
    names.update(Worker.objects.using(using).values_list("namespace", flat=True))
    return names
