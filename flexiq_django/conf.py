"""The only reader of the Django settings: the dict ``FLEXIQ`` becomes one frozen ``Settings``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from flexiq_django.core import operator
from flexiq_django.core.operator import OperatorRules
from flexiq_django.core.retention import LONGEST_SECONDS, TABLES, Retention
from flexiq_django.exceptions import ConfigurationError


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Every key of ``FLEXIQ`` with its default."""

    #: Alias of the database that holds the jobs.
    DATABASE: str = "default"
    #: Namespace of the default queue and of a worker started without ``--namespace``.
    NAMESPACE: str = "default"
    #: Module of each app that declares tasks.
    AUTODISCOVER_MODULE: str = "tasks"
    #: Retries after a failed first attempt, for tasks that do not say.
    DEFAULT_RETRY: int = 3
    #: Seconds one attempt may take, for tasks that do not say; ``None`` sets no limit.
    DEFAULT_TIMEOUT: float | None = 300
    #: Priority of jobs that do not say; larger runs first.
    DEFAULT_PRIORITY: int = 0
    #: Seconds of history each table keeps, by the fields of ``Retention``; ``{}`` deletes nothing.
    #: ``None``, as when absent, means the recommended windows.
    RETENTION: dict[str, float | None] | None = None
    #: The coarser form of ``RETENTION``, the same window for every table. ``RETENTION`` wins.
    RESULT_TTL: float | None = None
    #: Seconds after which a dead letter is retried by itself; ``None`` leaves them to a person.
    DLQ_AUTO_RETRY_DELAY: float | None = None
    #: How often a chain of jobs may come back from a dead letter by itself.
    DLQ_AUTO_RETRY_MAX: int = 3
    #: Seconds after its end at which a job moves to the archive; ``None`` leaves it where it is.
    ARCHIVE_AFTER: float | None = 86_400
    #: Seconds without a heartbeat after which a worker's jobs are taken from it.
    LOCK_GRACE_SECONDS: float = 60
    #: Seconds between heartbeats; ``None`` means a quarter of the lock grace.
    HEARTBEAT_SECONDS: float | None = None
    #: Seconds running jobs get to finish when a worker is told to stop.
    STOP_TIMEOUT_SECONDS: float = 30
    STRAY_GRACE_SECONDS: float = 5
    #: Longest pause between two looks for work where nothing wakes the worker, in seconds.
    POLL_SECONDS: float = 1.0
    #: Use LISTEN and NOTIFY on PostgreSQL. Switch off behind a pooler in transaction mode.
    LISTEN: bool = True
    #: Most pending jobs: a number for the whole namespace, or a dict of numbers by queue, with
    #: ``"*"`` for the namespace. ``None`` sets no limit.
    MAX_QUEUE_DEPTH: int | dict[str, int] | None = None
    #: Largest encoded arguments or result, in bytes.
    MAX_PAYLOAD_BYTES: int = 1_048_576
    #: Longest stored error with its traceback, in bytes; the middle of a longer one is cut.
    MAX_ERROR_BYTES: int = 65_536
    #: Jobs enqueued here are pinned to, and a worker here also serves, this deployment.
    DEPLOYMENT_ID: str | None = None
    #: The HTTP surface for operators, by the fields of ``OperatorRules``; ``None`` is off.
    OPERATOR: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def heartbeat_seconds(self) -> float:
        """Seconds between two heartbeats."""
        return self.HEARTBEAT_SECONDS or self.LOCK_GRACE_SECONDS / 4

    @property
    def retention(self) -> Retention | None:
        """``RETENTION`` as windows."""
        return None if self.RETENTION is None else Retention(**self.RETENTION)

    @property
    def operator(self) -> OperatorRules:
        """``OPERATOR`` as rules."""
        return operator.read_rules(self.OPERATOR)


def get_settings() -> Settings:
    """The settings in force. Raises ``ConfigurationError`` for an unknown key or a bad value."""
    return _read()


@lru_cache(maxsize=1)
def _read() -> Settings:
    given = getattr(django_settings, "FLEXIQ", {})
    problems = find_problems(given)
    if problems:
        raise ConfigurationError(" ".join(problems))
    return Settings(**given)


def find_problems(given: Any) -> list[str]:
    """What is wrong with a value of ``FLEXIQ``, a sentence each; empty when nothing is."""
    if not isinstance(given, dict):
        return [f"FLEXIQ is a {type(given).__name__}; it must be a dict."]
    known = [each.name for each in dataclasses.fields(Settings)]
    unknown = sorted(str(key) for key in given if key not in known)
    if unknown:
        return [f"FLEXIQ has unknown keys {', '.join(unknown)}; known are {', '.join(known)}."]
    return [
        f"FLEXIQ[{name!r}] is {given[name]!r}; it must be {rule}."
        for name, (accepts, rule) in _RULES.items()
        if name in given and not accepts(given[name])
    ] + list(operator.find_problems(given.get("OPERATOR")))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return _is_number(value) and 0 < value <= LONGEST_SECONDS


def _positive_or_none(value: Any) -> bool:
    return value is None or _positive(value)


def _natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _seconds_or_none(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= LONGEST_SECONDS)


def _windows(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and set(value) <= set(TABLES)
        and all(map(_seconds_or_none, value.values()))
    )


def is_depth(value: Any) -> bool:
    """Whether the value is one of the forms of ``MAX_QUEUE_DEPTH``."""
    if isinstance(value, dict):
        return all(_name(name) and _natural(limit) and limit > 0 for name, limit in value.items())
    return value is None or (_natural(value) and value > 0)


#: What the forms of ``MAX_QUEUE_DEPTH`` are, in words.
DEPTH_RULE = (
    "a whole number above 0, a dict of such numbers by queue (with '*' for the namespace), or None"
)


def _name(value: Any) -> bool:
    return isinstance(value, str) and value == value.strip() and 0 < len(value) <= 100


_NAME_RULE = "a text of 1 to 100 characters without blanks at its ends"

_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "DATABASE": (_name, "the alias of a database in DATABASES"),
    "NAMESPACE": (_name, _NAME_RULE),
    "AUTODISCOVER_MODULE": (_name, "the name of a module, such as 'tasks'"),
    "DEFAULT_RETRY": (
        lambda value: _natural(value) and value < 2**31,
        "a whole number, 0 or more, of at most 32 bits",
    ),
    "DEFAULT_TIMEOUT": (_positive_or_none, "a number of seconds above 0, or None"),
    "DEFAULT_PRIORITY": (
        lambda value: type(value) is int and abs(value) < 2**31,
        "a whole number of at most 32 bits",
    ),
    "RETENTION": (
        _windows,
        f"a dict of windows by {', '.join(TABLES)}, each a number of seconds, 0 or more, or None",
    ),
    "DLQ_AUTO_RETRY_DELAY": (
        lambda value: value is None or (_is_number(value) and 0 <= value <= LONGEST_SECONDS),
        "a number of seconds, 0 or more, or None",
    ),
    "DLQ_AUTO_RETRY_MAX": (
        lambda value: _natural(value) and value < 2**31,
        "a whole number, 0 or more, of at most 32 bits",
    ),
    "RESULT_TTL": (_seconds_or_none, "a number of seconds, 0 or more, or None"),
    "ARCHIVE_AFTER": (_seconds_or_none, "a number of seconds, 0 or more, or None"),
    "LOCK_GRACE_SECONDS": (_positive, "a number of seconds above 0"),
    "HEARTBEAT_SECONDS": (_positive_or_none, "a number of seconds above 0, or None"),
    "STOP_TIMEOUT_SECONDS": (
        lambda value: _is_number(value) and 0 <= value <= LONGEST_SECONDS,
        "a number of seconds, 0 or more",
    ),
    "STRAY_GRACE_SECONDS": (_positive, "a number of seconds above 0"),
    "POLL_SECONDS": (_positive, "a number of seconds above 0"),
    "LISTEN": (lambda value: isinstance(value, bool), "True or False"),
    "MAX_QUEUE_DEPTH": (is_depth, DEPTH_RULE),
    "MAX_PAYLOAD_BYTES": (lambda value: _natural(value) and value > 0, "a whole number above 0"),
    "MAX_ERROR_BYTES": (lambda value: _natural(value) and value >= 200, "at least 200"),
    "DEPLOYMENT_ID": (lambda value: value is None or _name(value), f"{_NAME_RULE}, or None"),
}


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "FLEXIQ":
        _read.cache_clear()


setting_changed.connect(_forget)
