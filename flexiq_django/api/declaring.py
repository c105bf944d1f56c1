"""Declaring a task: its name and options, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flexiq_django.api import options as check
from flexiq_django.api.task import TaskOptions
from flexiq_django.core.rates import parse_rate_limit
from flexiq_django.core.retry import RetryPolicy
from flexiq_django.exceptions import ConfigurationError


def refuse_options(name: str, options: Mapping[str, Any]) -> None:
    """Raises ``TypeError`` for options that would change a task which is declared already."""
    if options:
        raise TypeError(
            f"task {name} is declared already: give {', '.join(sorted(options))} where it is"
        )


def task_options(
    function: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[str, TaskOptions]:
    """The name and the checked options of a declaration."""
    given = dict(options)
    name = given.pop("name", None)
    if name is None:
        name = f"{function.__module__}.{function.__qualname__}"
    check.check_name("name", name, longest=200)
    policy = RetryPolicy(
        max_retries=given.get("max_retries") or 0,
        backoff=given.pop("retry_backoff", 1.0),
        delays=given.pop("retry_delays", None) or (),
        max_delay=given.pop("max_retry_delay", 300.0),
        jitter=given.pop("jitter", True),
        retry_on=given.pop("retry_on", None) or (),
        dont_retry_on=given.pop("dont_retry_on", None) or (),
        budget=given.pop("retry_budget", None),
    )
    known = TaskOptions.__dataclass_fields__
    unknown = sorted(set(given) - set(known) | ({"retry"} & set(given)))
    if unknown:
        raise TypeError(f"task {name}: unknown option {', '.join(unknown)}")
    check.check_priority("priority", given.get("priority"))
    check.check_seconds("timeout", given.get("timeout"), above_zero=True)
    check.check_seconds("soft_timeout", given.get("soft_timeout"), above_zero=True)
    check.check_seconds("result_ttl", given.get("result_ttl"))
    for flag in ("idempotent", "transactional"):
        given[flag] = bool(check.check_flag(flag, given.get(flag)))
    if given.get("queue") is not None:
        check.check_name("queue", given["queue"], longest=100)
    if given.get("rate_limit") is not None:
        parse_rate_limit("rate_limit", given["rate_limit"])
    if given.get("max_concurrent") is not None:
        check.check_concurrency("max_concurrent", given["max_concurrent"])
    if given["transactional"] and check.is_coroutine(function):
        raise ConfigurationError(
            f"task {name}: transactional=True needs a plain function: Django's transactions do not"
            " work in coroutines"
        )
    return name, TaskOptions(**given, retry=policy)
