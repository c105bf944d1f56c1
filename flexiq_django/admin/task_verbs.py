"""What may be done to tasks: revoke, allow again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from flexiq_django.admin.verbs import Entered, Skipped, Verb
from flexiq_django.api import options as check
from flexiq_django.api.queue import Queue
from flexiq_django.exceptions import InvalidOptionError

_QUESTION = _(
    "Refuse new jobs of the task until it is allowed again, and cancel its pending jobs with all"
    " that depend on them? What is cancelled cannot be brought back."
)


class TaskForm(forms.Form):
    """Which task."""

    name = forms.CharField(
        label=_("task"), max_length=200, help_text=_("The whole name, such as shop.tasks.pay.")
    )

    def clean_name(self) -> str:
        """The name, if a task can have it."""
        try:
            return check.check_name("task", self.cleaned_data["name"], longest=200)
        except InvalidOptionError as error:
            raise ValidationError(str(error)) from None


def _revoke(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    if row.revoked_at is not None:
        return _("already revoked")
    queue.revoke_task(row.name)
    return None


def _revoke_named(queue: Queue, _row: Any, entered: Entered, _actor: str) -> int:
    return queue.revoke_task(entered["name"])


def _allow(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return None if queue.unrevoke_task(row.name) else _("not revoked")


REVOKE = Verb(
    name="revoke",
    label=_("Revoke"),
    permission="revoke_task",
    act=_revoke,
    suits=lambda row: row.revoked_at is None,
    question=_QUESTION,
    done=ngettext_lazy(
        "%(count)d task is revoked: its pending jobs are cancelled, new ones are refused.",
        "%(count)d tasks are revoked: their pending jobs are cancelled, new ones are refused.",
        "count",
    ),
)

REVOKE_NAMED = Verb(
    name="revoke",
    label=_("Revoke a task"),
    permission="revoke_task",
    act=_revoke_named,
    question=_QUESTION,
    form=TaskForm,
    on_rows=False,
    done=ngettext_lazy(
        "The task is revoked: %(count)d pending job is cancelled, new ones are refused.",
        "The task is revoked: %(count)d pending jobs are cancelled, new ones are refused.",
        "count",
    ),
)

ALLOW = Verb(
    name="allow",
    label=_("Allow again"),
    permission="unrevoke_task",
    act=_allow,
    suits=lambda row: row.revoked_at is not None,
    done=ngettext_lazy(
        "%(count)d task may be enqueued again.", "%(count)d tasks may be enqueued again.", "count"
    ),
)
