"""What a person may do: each verb is one call of a ``Queue`` method, with a permission of its own.

A verb is offered to those who have its permission, on the rows of a list and on the page of a row,
or, if it takes no row, above the list. Where something is lost it asks first, with the count. What
was done, and what was skipped and why, is said and goes into Django's log with the actor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from flexiq_django.api.default import queue as default_queue
from flexiq_django.api.queue import Queue
from flexiq_django.exceptions import FlexiQError

#: Why a row was skipped; ``None`` when the verb did its work.
Skipped = Any

#: What was entered into the form of a verb.
Entered = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verb:
    """Something that can be done.

    ``act(queue, row, entered, actor)`` does it and returns ``None``, or why it did not; for a verb
    without rows it returns how many it was done to. ``done`` says what was done and ``question``
    makes it ask first, both with the number ``count``. ``count(queue, rows, entered)`` is what it
    asks about, the number of rows unless given. ``suits(row)``: whether the page of the row offers
    it.
    """

    name: str
    label: Any
    permission: str
    act: Callable[[Queue, Any, Entered, str], Any]
    done: Any
    question: Any = None
    count: Callable[[Queue, Sequence[Any], Entered], int] | None = None
    form: type[forms.Form] | None = None
    initial: Callable[[Any], dict[str, Any]] = lambda _row: {}
    suits: Callable[[Any], bool] = lambda _row: True
    on_rows: bool = True

    def is_allowed(self, request: HttpRequest) -> bool:
        """Whether the user has the permission."""
        return bool(request.user.has_perm(f"flexiq_django.{self.permission}"))

    def asks_about(self, rows: Sequence[Any], entered: Entered) -> int:
        """How many things would be lost."""
        if self.count is None:
            return len(rows)
        if not self.on_rows:
            return self.count(default_queue, rows, entered)
        return sum(self.count(queue, own, entered) for queue, own in by_queue(rows))


def by_queue(rows: Sequence[Any]) -> list[tuple[Queue, list[Any]]]:
    """The rows of each namespace, with the queue object that acts there."""
    scope = default_queue.scope
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(getattr(row, "namespace", scope.namespace), []).append(row)
    return [
        (default_queue if name == scope.namespace else Queue(name, using=scope.using), own)
        for name, own in groups.items()
    ]


def perform(
    request: HttpRequest, model: type[Model], verb: Verb, rows: Sequence[Any], entered: Entered
) -> None:
    """Do it, say what was done, and log it."""
    actor = str(request.user.get_username())
    if not verb.on_rows:
        found = _attempt(verb, default_queue, None, entered, actor)
        if isinstance(found, int):
            text = verb.done % {"count": found}
            messages.success(request, text)
            named = ", ".join(f"{name}: {value}" for name, value in entered.items())
            _log(request, [model()], f"{verb.label} ({named}). {text}")
        else:
            messages.warning(request, _("Nothing was done: %(reason)s") % {"reason": found})
        return
    reasons = [
        (row, _attempt(verb, queue, row, entered, actor))
        for queue, own in by_queue(rows)
        for row in own
    ]
    done = [row for row, reason in reasons if reason is None]
    if done:
        messages.success(request, verb.done % {"count": len(done)})
        _log(request, done, str(verb.label))
    skipped = Counter(str(reason) for _row, reason in reasons if reason is not None)
    for reason, number in skipped.items():
        text = ngettext(
            "%(number)d was skipped: %(reason)s", "%(number)d were skipped: %(reason)s", number
        )
        messages.warning(request, text % {"number": number, "reason": reason})


def _attempt(verb: Verb, queue: Queue, row: Any, entered: Entered, actor: str) -> Any:
    try:
        return verb.act(queue, row, entered, actor)
    except FlexiQError as error:
        return str(error)


def _log(request: HttpRequest, rows: Sequence[Model], message: str) -> None:
    LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, change_message=message)  # type: ignore[arg-type]
