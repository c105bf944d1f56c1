"""What may be done to schedules: pause, resume, delete."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from flexiq_django.admin.verbs import Entered, Skipped, Verb
from flexiq_django.api.queue import Queue

_GONE = _("somebody has deleted it")


def _pause(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    if not row.enabled:
        return _("already paused")
    return None if queue.pause_periodic(row.name) else _GONE


def _resume(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    if row.enabled:
        return _("not paused")
    return None if queue.resume_periodic(row.name) else _GONE


def _delete(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return None if queue.delete_periodic(row.name) else _GONE


PAUSE = Verb(
    name="pause",
    label=_("Pause"),
    permission="pause_schedule",
    act=_pause,
    suits=lambda row: row.enabled,
    done=ngettext_lazy(
        "%(count)d schedule is paused: it does not fire.",
        "%(count)d schedules are paused: they do not fire.",
        "count",
    ),
)

RESUME = Verb(
    name="resume",
    label=_("Resume"),
    permission="resume_schedule",
    act=_resume,
    suits=lambda row: not row.enabled,
    done=ngettext_lazy(
        "%(count)d schedule fires again, from its next time on.",
        "%(count)d schedules fire again, from their next time on.",
        "count",
    ),
)

DELETE = Verb(
    name="delete",
    label=_("Delete"),
    permission="delete_schedule",
    act=_delete,
    question=ngettext_lazy(
        "Delete %(count)d schedule? If the code of a running worker declares it, it comes back"
        " within a minute.",
        "Delete %(count)d schedules? Those that the code of a running worker declares come back"
        " within a minute.",
        "count",
    ),
    done=ngettext_lazy(
        "%(count)d schedule was deleted.", "%(count)d schedules were deleted.", "count"
    ),
)
