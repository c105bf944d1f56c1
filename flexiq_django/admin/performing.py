"""Doing a verb: each row by itself, logged with the actor as soon as it is done.

So an error at one row hides nothing of those before it. What was done, skipped and failed, and why,
is said at the end.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import Error as DjangoDatabaseError
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from flexiq_django.admin import texts
from flexiq_django.admin.verbs import Entered, Verb, by_queue
from flexiq_django.api.default import queue as default_queue
from flexiq_django.api.queue import Queue
from flexiq_django.exceptions import FlexiQError
from flexiq_django.store import link

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A database error ended the act. ``is_general``: another row would meet the same."""

    reason: str
    is_general: bool


def perform(
    request: HttpRequest, model: type[Model], verb: Verb, rows: Sequence[Any], entered: Entered
) -> None:
    """Do it, say what was done, and log it."""
    if verb.on_rows:
        _do_to_rows(request, verb, rows, entered)
    else:
        _do_above(request, model, verb, entered)


def count_for_question(
    request: HttpRequest, verb: Verb, rows: Sequence[Any], entered: Entered
) -> int | None:
    """How many things would be lost; ``None`` if that cannot be found out, which is then said."""
    try:
        count: int = link.alone(default_queue.place, lambda: verb.asks_about(rows, entered))
        return count
    except FlexiQError as error:
        _say_nothing_was_done(request, str(error))
    except DjangoDatabaseError as error:
        logger.exception("The admin cannot count for %s", verb.name)
        _say_nothing_was_done(request, _in_a_line(error))
    return None


def _do_above(request: HttpRequest, model: type[Model], verb: Verb, entered: Entered) -> None:
    named = ", ".join(f"{name}: {value}" for name, value in entered.items())
    found = _attempt(request, verb, default_queue, None, entered)
    if isinstance(found, Failure):
        text = _("It failed, perhaps after a part was done: %(reason)s") % {"reason": found.reason}
        messages.error(request, text)
        _log_failure(request, model(), f"{verb.label} ({named}). {text}")
    elif isinstance(found, int):
        text = verb.done % {"count": found}
        messages.success(request, text)
        _log_done(request, model(), f"{verb.label} ({named}). {text}")
    else:
        _say_nothing_was_done(request, found)


def _do_to_rows(request: HttpRequest, verb: Verb, rows: Sequence[Any], entered: Entered) -> None:
    targets = [(queue, row) for queue, own in by_queue(rows) for row in own]
    done = 0
    skipped: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for queue, row in targets:
        found = _attempt(request, verb, queue, row, entered)
        if found is None:
            done += 1
            _log_done(request, row, str(verb.label))
        elif isinstance(found, Failure):
            failed[found.reason] += 1
            _log_failure(request, row, f"{verb.label}. {_failed(1, found.reason)}")
            if found.is_general:
                break
        else:
            skipped[str(found)] += 1
    if done:
        messages.success(request, verb.done % {"count": done})
    for reason, number in skipped.items():
        messages.warning(request, _skipped(number, reason))
    for reason, number in failed.items():
        messages.error(request, _failed(number, reason))
    left = len(targets) - done - skipped.total() - failed.total()
    if left:
        messages.error(request, _not_tried(left))


def _attempt(request: HttpRequest, verb: Verb, queue: Queue, row: Any, entered: Entered) -> Any:
    """What the act answers; else why it was refused, or its failure."""
    actor = _actor(request)
    try:
        return link.alone(queue.place, lambda: verb.act(queue, row, entered, actor))
    except FlexiQError as error:
        return str(error)
    except DjangoDatabaseError as error:
        logger.exception("%s by %r failed in the admin, on %r", verb.name, actor, row)
        if link.is_lost(queue.place):
            raise  # nothing of what was done before will stay
        trouble = link.trouble(queue.place, error)
        # With one writer at a time every row waits for the same one, each as long as it may.
        is_general = trouble == "outage" or (
            trouble == "conflict" and link.has_one_writer(queue.place)
        )
        return Failure(reason=_in_a_line(error), is_general=is_general)


# --- logging --------------------------------------------------------------------------------------


def _log_done(request: HttpRequest, row: Model, message: str) -> None:
    try:
        _log(request, row, message)
    except DjangoDatabaseError:
        logger.exception("%r did it, Django's log lacks it: %s %r", _actor(request), message, row)
        # Inside a transaction it takes back what was done, so it must not pass for a success.
        raise


def _log_failure(request: HttpRequest, row: Model, message: str) -> None:
    # Where the log is in the same database, it may be just as far away.
    with contextlib.suppress(DjangoDatabaseError):
        _log(request, row, message)


def _log(request: HttpRequest, row: Model, message: str) -> None:
    LogEntry.objects.log_actions(request.user.pk, [row], CHANGE, change_message=message)  # type: ignore[arg-type]


def _actor(request: HttpRequest) -> str:
    return str(request.user.get_username())


# --- saying ---------------------------------------------------------------------------------------


def _in_a_line(error: DjangoDatabaseError) -> str:
    # The further lines may quote values, which not everybody may see.
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {texts.line(first)}"


def _say_nothing_was_done(request: HttpRequest, reason: Any) -> None:
    messages.warning(request, _("Nothing was done: %(reason)s") % {"reason": reason})


def _skipped(number: int, reason: str) -> str:
    return ngettext(
        "%(number)d was skipped: %(reason)s", "%(number)d were skipped: %(reason)s", number
    ) % {"number": number, "reason": reason}


def _failed(number: int, reason: str) -> str:
    return ngettext(
        "%(number)d failed, perhaps after a part was done: %(reason)s",
        "%(number)d failed, each perhaps after a part was done: %(reason)s",
        number,
    ) % {"number": number, "reason": reason}


def _not_tried(number: int) -> str:
    return ngettext(
        "%(number)d was not tried after that.", "%(number)d were not tried after that.", number
    ) % {"number": number}
