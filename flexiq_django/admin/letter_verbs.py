"""What may be done to dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from flexiq_django.admin.job_verbs import REPLAYED
from flexiq_django.admin.verbs import Entered, Skipped, Verb
from flexiq_django.api.queue import Queue
from flexiq_django.store import dead_letters, inspect

_DAY = 86_400


class AgeForm(forms.Form):
    """How old what is deleted has to be."""

    days = forms.FloatField(
        label=_("older than, in days"), min_value=0, max_value=36_500, initial=30
    )


def _retry(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    queue.retry_dead(str(row.pk))
    return None


def _replay(queue: Queue, row: Any, _entered: Entered, actor: str) -> Skipped:
    queue.replay(str(row.original_job_id), actor=actor)
    return None


def _delete(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return None if queue.delete_dead(str(row.pk)) else _("somebody else was faster")


def _purge(queue: Queue, _row: Any, entered: Entered, _actor: str) -> int:
    return queue.purge_dead(older_than=entered["days"] * _DAY)


def _purged(queue: Queue, _rows: Sequence[Any], entered: Entered) -> int:
    scope = queue.scope
    before = inspect.read_clock(scope) - timedelta(days=entered["days"])
    return dead_letters.count(scope, dead_letters.Wanted(before=before))


RETRY = Verb(
    name="retry",
    label=_("Retry"),
    permission="retry_deadletter",
    act=_retry,
    done=ngettext_lazy(
        "%(count)d job was enqueued again; its dead letter is gone.",
        "%(count)d jobs were enqueued again; their dead letters are gone.",
        "count",
    ),
)

REPLAY = Verb(
    name="replay",
    label=_("Replay the job, keep the letter"),
    permission="replay_deadletter",
    act=_replay,
    done=REPLAYED,
)

DELETE = Verb(
    name="delete",
    label=_("Delete"),
    permission="delete_deadletter",
    act=_delete,
    question=ngettext_lazy(
        "Delete %(count)d dead letter? Its arguments may be stored nowhere else.",
        "Delete %(count)d dead letters? Their arguments may be stored nowhere else.",
        "count",
    ),
    done=ngettext_lazy(
        "%(count)d dead letter was deleted.", "%(count)d dead letters were deleted.", "count"
    ),
)

PURGE = Verb(
    name="purge",
    label=_("Purge old dead letters"),
    permission="purge_deadletter",
    act=_purge,
    on_rows=False,
    form=AgeForm,
    count=_purged,
    question=ngettext_lazy(
        "Delete %(count)d dead letter of this namespace, with its job and all that is stored about"
        " it?",
        "Delete %(count)d dead letters of this namespace, with their jobs and all that is stored"
        " about them?",
        "count",
    ),
    done=ngettext_lazy(
        "%(count)d dead letter was deleted.", "%(count)d dead letters were deleted.", "count"
    ),
)
