"""``OPTIONS`` of a backend in the ``TASKS`` setting."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings as django_settings

from flexiq_django.api import options as check
from flexiq_django.exceptions import ConfigurationError, FlexiQError

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendOptions:
    """Every key of ``OPTIONS`` with its default. Times are seconds."""

    #: Alias of the database that holds the jobs; ``None``: that of ``FLEXIQ``.
    DATABASE: str | None = None
    #: Namespace of the jobs; ``None``: that of ``FLEXIQ``.
    NAMESPACE: str | None = None
    #: Attempts allowed after the first failed one.
    MAX_RETRIES: int = 0
    #: How long one attempt may take; ``None``: ``DEFAULT_TIMEOUT`` of ``FLEXIQ``.
    TIMEOUT: float | None = None
    #: How long after its end a job and its result are deleted; ``None``: as ``RETENTION`` says.
    RESULT_TTL: float | None = None


def read_options(alias: str, given: Any) -> BackendOptions:
    """The options of a backend. Raises ``ConfigurationError`` if they are wrong."""
    problems = find_problems(alias, given)
    if problems:
        raise ConfigurationError(" ".join(problems))
    return BackendOptions(**given)


def find_problems(alias: str, given: Any) -> list[str]:
    """What is wrong with ``OPTIONS``, a sentence each; empty when nothing is."""
    where = f"TASKS[{alias!r}]['OPTIONS']"
    if not isinstance(given, dict):
        return [f"{where} is a {type(given).__name__}; it must be a dict."]
    known = [field.name for field in fields(BackendOptions)]
    unknown = sorted(str(key) for key in given if key not in known)
    if unknown:
        return [f"{where} has unknown keys {', '.join(unknown)}; known are {', '.join(known)}."]
    return [problem for name in given if (problem := _problem(where, name, given[name]))]


def _problem(where: str, name: str, value: Any) -> str | None:
    if value is None and name != "MAX_RETRIES":
        return None
    place = f"{where}[{name!r}]"
    try:
        # As a list: a value that cannot be hashed is asked for as well.
        if name == "DATABASE" and value not in list(django_settings.DATABASES):
            known = ", ".join(sorted(django_settings.DATABASES))
            return f"{place} is {value!r}; allowed is an alias of DATABASES ({known}) or None."
        if name == "NAMESPACE":
            check.check_name(place, value, longest=100)
        elif name == "MAX_RETRIES":
            check.check_whole(place, value, least=0, most=2**31 - 1)
        elif name == "TIMEOUT":
            check.check_seconds(place, value, above_zero=True)
        elif name == "RESULT_TTL":
            check.check_seconds(place, value)
    except FlexiQError as error:
        return f"{error}."
    return None


def queue_for(options: BackendOptions) -> Queue:
    """The queue that stores the jobs of a backend with these options."""
    from flexiq_django.api.default import queue

    if options.NAMESPACE is None and options.DATABASE is None:
        return queue
    return _own_queue(options.NAMESPACE, options.DATABASE)


@lru_cache(maxsize=100)  # a backend is made anew in every thread
def _own_queue(namespace: str | None, using: str | None) -> Queue:
    from flexiq_django.api.queue import Queue

    return Queue(namespace, using=using)
