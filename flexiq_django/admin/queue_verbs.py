"""What may be done to queues: pause, resume, limit, purge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from flexiq_django.admin.verbs import Entered, Skipped, Verb
from flexiq_django.api import options as check
from flexiq_django.api.queue import Queue
from flexiq_django.core.rates import LONGEST_TEXT, parse_rate_limit
from flexiq_django.exceptions import InvalidOptionError

# --- forms ----------------------------------------------------------------------------------------


class LimitForm(forms.Form):
    """The limits of a queue; empty is no limit."""

    rate_limit = forms.CharField(
        label=_("rate limit"),
        required=False,
        max_length=LONGEST_TEXT,
        help_text=_("How many jobs may start, such as 100/m. Empty: no limit."),
    )
    max_concurrent = forms.IntegerField(
        label=_("running at the same time"),
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text=_("Over all workers. Empty: no limit. To stop a queue, pause it."),
    )

    def clean_rate_limit(self) -> str:
        """The rate as it was typed, if it is one."""
        text = str(self.cleaned_data["rate_limit"]).strip()
        if text:
            try:
                parse_rate_limit("rate_limit", text)
            except InvalidOptionError as error:
                raise ValidationError(str(error)) from None
        return text


class QueueForm(forms.Form):
    """Which queue."""

    name = forms.CharField(label=_("queue"), max_length=100, initial="default")

    def clean_name(self) -> str:
        """The name, if a queue can have it."""
        try:
            return check.check_name("queue", self.cleaned_data["name"], longest=100)
        except InvalidOptionError as error:
            raise ValidationError(str(error)) from None


class QueueLimitForm(LimitForm, QueueForm):
    """Which queue, and its limits."""

    field_order = ("name", "rate_limit", "max_concurrent")


# --- acts -----------------------------------------------------------------------------------------


def _name(row: Any, entered: Entered) -> str:
    return str(entered["name"] if row is None else row.name)


def _pause(queue: Queue, row: Any, entered: Entered, _actor: str) -> Any:
    name = _name(row, entered)
    if row is not None and row.paused_at is not None:
        return _("already paused")
    queue.pause(name)
    return None if row is not None else 1


def _resume(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    if row.paused_at is None:
        return _("not paused")
    queue.resume(row.name)
    return None


def _limit(queue: Queue, row: Any, entered: Entered, _actor: str) -> Any:
    name = _name(row, entered)
    queue.set_queue_rate_limit(name, entered["rate_limit"] or None)
    queue.set_queue_concurrency(name, entered["max_concurrent"])
    return None if row is not None else 1


def _purge(queue: Queue, row: Any, entered: Entered, _actor: str) -> Any:
    cancelled = queue.purge(_name(row, entered))
    return cancelled if row is None else None


def _pending(queue: Queue, rows: Sequence[Any], entered: Entered) -> int:
    counts = queue.stats_by_queue()
    names = [row.name for row in rows] or [entered["name"]]
    return sum(counts[name]["pending"] for name in names if name in counts)


_PURGE_QUESTION = ngettext_lazy(
    "Cancel %(count)d pending job, and all jobs that depend on it? This cannot be undone.",
    "Cancel %(count)d pending jobs, and all jobs that depend on them? This cannot be undone.",
    "count",
)


_PAUSED = ngettext_lazy(
    "%(count)d queue is paused: no worker starts a job of it. Running jobs go on.",
    "%(count)d queues are paused: no worker starts a job of them. Running jobs go on.",
    "count",
)


_LIMITED = ngettext_lazy(
    "The limits of %(count)d queue hold from the next claim of every worker on.",
    "The limits of %(count)d queues hold from the next claim of every worker on.",
    "count",
)


# --- verbs ----------------------------------------------------------------------------------------

PAUSE = Verb(
    name="pause",
    label=_("Pause"),
    permission="pause_queue",
    act=_pause,
    done=_PAUSED,
    suits=lambda row: row.paused_at is None,
)

PAUSE_NAMED = Verb(
    name="pause",
    label=_("Pause a queue"),
    permission="pause_queue",
    act=_pause,
    done=_PAUSED,
    form=QueueForm,
    on_rows=False,
)

RESUME = Verb(
    name="resume",
    label=_("Resume"),
    permission="resume_queue",
    act=_resume,
    suits=lambda row: row.paused_at is not None,
    done=ngettext_lazy(
        "%(count)d queue is open again.", "%(count)d queues are open again.", "count"
    ),
)

LIMIT = Verb(
    name="limit",
    label=_("Set limits"),
    permission="limit_queue",
    act=_limit,
    done=_LIMITED,
    form=LimitForm,
    initial=lambda row: {"rate_limit": row.rate_limit, "max_concurrent": row.max_concurrent},
)

LIMIT_NAMED = Verb(
    name="limit",
    label=_("Limit a queue"),
    permission="limit_queue",
    act=_limit,
    done=_LIMITED,
    form=QueueLimitForm,
    on_rows=False,
)

PURGE = Verb(
    name="purge",
    label=_("Purge"),
    permission="purge_queue",
    act=_purge,
    count=_pending,
    question=_PURGE_QUESTION,
    done=ngettext_lazy(
        "The pending jobs of %(count)d queue were cancelled.",
        "The pending jobs of %(count)d queues were cancelled.",
        "count",
    ),
)

PURGE_NAMED = Verb(
    name="purge",
    label=_("Purge a queue"),
    permission="purge_queue",
    act=_purge,
    count=_pending,
    question=_PURGE_QUESTION,
    form=QueueForm,
    on_rows=False,
    done=ngettext_lazy(
        "%(count)d pending job was cancelled.", "%(count)d pending jobs were cancelled.", "count"
    ),
)
