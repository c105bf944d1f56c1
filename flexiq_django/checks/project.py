"""The settings and the set-up of the project: no database is asked."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connections, router

from flexiq_django.api.auto_retry import find_doubts
from flexiq_django.api.task import Task
from flexiq_django.checks.subjects import APP, our_aliases, project_queues, wanted_aliases
from flexiq_django.conf import Settings, find_problems, get_settings
from flexiq_django.store.vendors import dialect


@register
def check_settings(**_: Any) -> list[CheckMessage]:
    """The ``FLEXIQ`` setting by itself."""
    problems = find_problems(getattr(django_settings, "FLEXIQ", {}))
    if problems:
        hint = "Correct FLEXIQ in the settings; the documentation lists every key."
        return [Error(text, hint=hint, id="flexiq.E001") for text in problems]
    settings = get_settings()
    return [*_times(settings), *_tokens(settings)]


def _times(settings: Settings) -> Iterable[CheckMessage]:
    grace = settings.LOCK_GRACE_SECONDS
    if settings.heartbeat_seconds >= grace:
        yield Error(
            f"The heartbeat ({settings.heartbeat_seconds:g} s) is not shorter than the lock grace"
            f" ({grace:g} s): running jobs would be taken from healthy workers.",
            hint="Leave HEARTBEAT_SECONDS out, which takes a quarter of LOCK_GRACE_SECONDS.",
            id="flexiq.E004",
        )
    stop = settings.STOP_TIMEOUT_SECONDS
    if stop >= grace:
        yield Error(
            f"The stop timeout ({stop:g} s) is not below the lock grace"
            f" ({grace:g} s): jobs of a worker that is stopping would be taken from it.",
            hint="Lower STOP_TIMEOUT_SECONDS or raise LOCK_GRACE_SECONDS.",
            id="flexiq.E005",
        )


def _tokens(settings: Settings) -> Iterable[CheckMessage]:
    if settings.operator.JWT is not None and importlib.util.find_spec("jwt") is None:
        yield Error(
            "FLEXIQ['OPERATOR']['JWT'] is set, but PyJWT is not installed.",
            hint="Install the extra: pip install flexiq-django[jwt].",
            id="flexiq.E019",
        )


@register
def check_auto_retry(**_: Any) -> list[CheckMessage]:
    """That retrying dead letters by themselves makes sense."""
    doubts = find_doubts(queues) if (queues := project_queues()) else ()
    return [Warning(text, hint=hint, id="flexiq.W018") for text, hint in doubts]


@register
def check_alias(**_: Any) -> list[CheckMessage]:
    """The databases that the queues name."""
    found: list[CheckMessage] = []
    for alias in wanted_aliases():
        if alias not in connections:
            text = f"A queue lives in the database {alias!r}, which DATABASES does not have."
            hint = f"Use one of {', '.join(sorted(connections))}, or add {alias!r}."
            found.append(Error(text, hint=hint, id="flexiq.E002"))
            continue
        try:
            dialect(connections[alias].vendor)
        except NotImplementedError as error:
            hint = "Put the queue into a supported database: set DATABASE in FLEXIQ to its alias."
            found.append(Error(f"{error}.", hint=hint, id="flexiq.E003"))
    return found


@register
def check_router(**_: Any) -> list[CheckMessage]:
    """That a router leaves our tables together, in the queue's database."""
    found: list[CheckMessage] = []
    models = list(apps.get_app_config(APP).get_models())
    for alias in our_aliases():
        missing = [one for one in models if not router.allow_migrate_model(alias, one)]
        away = [one for one in models if router.db_for_write(one) != alias]
        if missing:
            names = ", ".join(one.__name__ for one in missing)
            text = f"A database router keeps {names} out of {alias!r}, where a queue lives."
            hint = f"Let allow_migrate() allow the app {APP} on {alias!r}, all of it."
            found.append(Error(text, hint=hint, id="flexiq.E006"))
        elif away and router.routers and alias == get_settings().DATABASE:
            place = f"{away[0].__name__} to {router.db_for_write(away[0])!r}"
            text = f"A database router sends {place}, but the queue lives in {alias!r}."
            hint = f"Route the app {APP} to the alias that FLEXIQ['DATABASE'] names."
            found.append(Warning(text, hint=hint, id="flexiq.W007"))
    return found


@register
def check_transactional_tasks(**_: Any) -> list[CheckMessage]:
    """That a task that commits with its job writes to the database of its job."""
    return [
        Warning(
            f"The task {task.name} is transactional in the database {alias!r}, but the app"
            f" {config.label} writes to {away!r}: what it does there does not commit together with"
            " its job.",
            hint="Declare the task on a queue in the database it writes to, or without"
            " transactional=True.",
            id="flexiq.W008",
        )
        for alias, task in _transactional_tasks()
        if (config := apps.get_containing_app_config(task.function.__module__)) is not None
        if (away := _written_elsewhere(config, alias)) is not None
    ]


@register
def check_twin(**_: Any) -> list[CheckMessage]:
    """That no other app owns the name of our worker command."""
    if not apps.is_installed("flexiq.contrib.django"):
        return []
    return [
        Warning(
            "Both flexiq_django and flexiq.contrib.django are installed; each has a command"
            " flexiq_worker, and the app that comes first in INSTALLED_APPS wins.",
            hint="Remove flexiq.contrib.django from INSTALLED_APPS. FLEXIQ is the only setting"
            " that flexiq_django reads.",
            id="flexiq.W009",
        )
    ]


def _transactional_tasks() -> list[tuple[str, Task[Any, Any]]]:
    found = [
        (queue.place.using, task)
        for queue in project_queues()
        for task in queue.tasks.values()
        if task.options.transactional
    ]
    return sorted(found, key=lambda pair: pair[1].name)


def _written_elsewhere(config: AppConfig, alias: str) -> str | None:
    """The database, not ``alias``, that a model of the app is written to."""
    written = (router.db_for_write(model) for model in config.get_models())
    return next((other for other in written if other != alias), None)
