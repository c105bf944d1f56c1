"""What a person may do: each verb is one call of a ``Queue`` method, with a permission of its own.

A verb is offered to those who have its permission, on the rows of a list and on the page of a row,
or, if it takes no row, above the list. Where something is lost it asks first, with the count.
``performing`` does it, says so and logs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest

from flexiq_django.api.default import queue as default_queue
from flexiq_django.api.queue import Queue

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
    it. ``one_at_a_time``: it is refused on several rows.
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
    one_at_a_time: bool = False

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
    # Not its scope, which the contract floor may refuse: that is for the act to tell.
    place = default_queue.place
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(getattr(row, "namespace", place.namespace), []).append(row)
    return [
        (default_queue if name == place.namespace else Queue(name, using=place.using), own)
        for name, own in groups.items()
    ]
