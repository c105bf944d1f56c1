"""Schedules as declared in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from flexiq_django.api import options as check
from flexiq_django.api.task import Task
from flexiq_django.conf import get_settings
from flexiq_django.core.cron import CronSchedule
from flexiq_django.core.misfire import MisfirePolicy
from flexiq_django.core.payload import encode_call
from flexiq_django.exceptions import InvalidOptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """When which task is enqueued with which arguments."""

    name: str
    task: Task[Any, Any]
    cron: CronSchedule
    payload: str
    queue: str | None
    misfire: MisfirePolicy
    misfire_window_ms: int

    def row(self) -> dict[str, Any]:
        """The columns of its stored row."""
        return {
            "name": self.name,
            "task_name": self.task.name,
            "cron": self.cron.expression,
            "timezone": self.cron.timezone,
            "payload": self.payload,
            "queue": self.queue,
            "misfire_policy": self.misfire.value,
            "misfire_window_ms": self.misfire_window_ms,
        }


def build_schedule(
    task: Task[Any, Any],
    cron: str,
    *,
    name: str | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    queue: str | None,
    timezone: str | None,
    misfire: MisfirePolicy | str,
    misfire_window: float,
) -> Schedule:
    """A checked schedule. Raises ``InvalidScheduleError`` and ``InvalidOptionError``."""
    task.check_call(args, kwargs)
    try:
        policy = MisfirePolicy(misfire)
    except ValueError:
        allowed = ", ".join(each.value for each in MisfirePolicy)
        raise InvalidOptionError(f"misfire is {misfire!r}; allowed are {allowed}") from None
    return Schedule(
        name=check.check_name("name", task.name if name is None else name, longest=200),
        task=task,
        cron=CronSchedule(
            expression=cron, timezone=settings.TIME_ZONE if timezone is None else timezone
        ),
        payload=encode_call(args, kwargs, limit_bytes=get_settings().MAX_PAYLOAD_BYTES),
        queue=None if queue is None else check.check_name("queue", queue, longest=100),
        misfire=policy,
        misfire_window_ms=check.check_span("misfire_window", misfire_window),
    )
