"""What the checks look at: the project's queues, and the databases these live in."""

from __future__ import annotations

from django.conf import settings as django_settings
from django.db import connections

from flexiq_django.api.queue import Queue
from flexiq_django.api.registry import declared_queues
from flexiq_django.conf import find_problems, get_settings

APP = "flexiq_django"

#: The databases we can speak to, by Django's word for them.
SPOKEN = ("sqlite", "postgresql", "mysql")


def project_queues() -> list[Queue]:
    """Every queue of the project; none while the settings cannot be read."""
    bad = find_problems(getattr(django_settings, "FLEXIQ", {}))
    return [] if bad else declared_queues()


def wanted_aliases() -> list[str]:
    """Where the queues say that they live."""
    named = {queue.place.using for queue in project_queues()}
    return sorted({get_settings().DATABASE, *named}) if named else []


def our_aliases() -> list[str]:
    """The databases in which queues live, those that there are and that we can speak to."""
    return [
        alias
        for alias in wanted_aliases()
        if alias in connections and connections[alias].vendor in SPOKEN
    ]
