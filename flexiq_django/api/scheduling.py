"""The methods of ``Queue`` about schedules that are stored: list, pause, resume, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexiq_django.api import options as check
from flexiq_django.api.result import to_ms
from flexiq_django.api.twins import async_twin
from flexiq_django.core.cron import CronSchedule
from flexiq_django.exceptions import SettingConflictError
from flexiq_django.store import inspect, schedules

#: How often it is tried to resume a schedule whose timing others change.
_TRIES = 5

if TYPE_CHECKING:
    from flexiq_django.store.scope import Scope


class Scheduling:
    """Schedules of a namespace. What is done to one is stored, and holds for every worker."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

    def list_periodic(self) -> list[dict[str, Any]]:
        """The stored schedules by name.

        Keys: name, task_name, cron_expr, timezone, queue, enabled, last_run, next_run, missed.
        """
        return [
            {
                "name": row.name,
                "task_name": row.task_name,
                "cron_expr": row.cron,
                "timezone": row.timezone,
                "queue": row.queue,
                "enabled": row.enabled,
                "last_run": to_ms(row.last_run_at),
                "next_run": to_ms(row.next_run_at),
                "missed": row.missed_count,
            }
            for row in schedules.listing(self.scope)
        ]

    def pause_periodic(self, name: str) -> bool:
        """Let a schedule fire no more until it is resumed. False if there is none of this name.

        Jobs that it has stored already go on. Code that declares the schedule does not resume it.
        """
        return schedules.pause(self.scope, _name(name))

    def resume_periodic(self, name: str) -> bool:
        """Let a paused schedule fire again. False if there is none of this name.

        From its next time on, never at once; the runs of the pause are not made up for. One that is
        not paused stays as it is. Raises ``InvalidScheduleError`` if the stored expression or zone
        cannot be read, ``SettingConflictError`` if it keeps changing.
        """
        key = _name(name)
        for _ in range(_TRIES):
            row = schedules.find(self.scope, key)
            if row is None:
                return False
            following = CronSchedule(row.cron, row.timezone).next_after(
                inspect.read_clock(self.scope)
            )
            if schedules.resume(self.scope, row, following):
                return True
        raise SettingConflictError(
            f"schedule {key!r} could not be resumed: others keep changing its timing, or this"
            " transaction cannot see what they stored"
        )

    def delete_periodic(self, name: str) -> bool:
        """Forget a schedule. False if there is none of this name.

        Jobs that it has stored already go on. One that the code of a running worker declares comes
        back within a minute, as new: take it out of the code, or pause it.
        """
        return schedules.delete(self.scope, _name(name))

    alist_periodic = async_twin(list_periodic)
    apause_periodic = async_twin(pause_periodic)
    aresume_periodic = async_twin(resume_periodic)
    adelete_periodic = async_twin(delete_periodic)


def _name(name: str) -> str:
    return check.check_name("name", name, longest=200)
