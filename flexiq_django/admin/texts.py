"""How stored values look on a page. All data is escaped; nothing here marks data as safe."""

from __future__ import annotations

import json
import pprint
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib.admin.utils import quote
from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from flexiq_django.core.errors import parse_error, summarise_error
from flexiq_django.core.payload import decode_call, decode_result
from flexiq_django.exceptions import FlexiQError

#: Longest value shown, in characters. The page says how long the whole is.
LONGEST_SHOWN = 20_000
#: Longer values are shown as stored: laying them out would take seconds.
LONGEST_LAID_OUT = 100_000
#: How much of a text a list shows.
_LINE = 100
#: How much of a stored error a list reads.
ERROR_HEAD = 1_000

# Control characters but line feed and tab, marks that reorder the text around them, half
# surrogates.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(value: object) -> str:
    """``value`` as text that can be sent and seen: what cannot is written as an escape."""
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", str(value))


def short_key(value: object) -> SafeString:
    """The end of an id, where neighbours differ; the whole shows when the pointer rests on it."""
    text = str(value)
    return format_html('<span class="nowrap" title="{}">…{}</span>', text, text[-12:])


def quoted(key: object) -> str:
    """A key as the addresses of the admin spell it."""
    return str(quote(str(key)))


def unbroken(value: object) -> SafeString:
    """A name in one line."""
    return format_html('<span class="nowrap">{}</span>', printable(value))


def moment(value: datetime | None) -> SafeString | None:
    """An instant in the current time zone, with the zone's name."""
    if value is None:
        return None
    local = timezone.localtime(value)
    return format_html(
        '<time datetime="{}" class="nowrap">{}</time>',
        value.isoformat(),
        format_date(local, "Y-m-d H:i:s T"),
    )


def duration(milliseconds: float | None) -> str | None:
    """A span of time with its unit."""
    if milliseconds is None:
        return None
    if abs(milliseconds) < 1000:
        return _("%(number)d ms") % {"number": milliseconds}
    return _("%(number)s s") % {"number": f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")}


def progress_bar(value: int | None) -> SafeString | None:
    """A bar that needs neither script nor style."""
    if value is None:
        return None
    return format_html(
        '<span class="nowrap"><progress max="100" value="{0}">{0} %</progress> {0} %</span>', value
    )


def block(text: str) -> SafeString:
    """Text as it stands, line by line; the end of a very long one is left out and counted."""
    shown = printable(text[:LONGEST_SHOWN])
    rest = len(text) - LONGEST_SHOWN
    if rest <= 0:
        return format_html('<pre class="flexiq-block">{}</pre>', shown)
    note = ngettext(
        "%(count)d further character is not shown.",
        "%(count)d further characters are not shown.",
        rest,
    ) % {"count": rest}
    return format_html('<pre class="flexiq-block">{}</pre><p class="help">{}</p>', shown, note)


def line(text: str) -> str:
    """The beginning of a text, in one line."""
    shown = printable(text[:_LINE])
    return " ".join(shown.split()) + ("…" if len(text) > _LINE else "")


def arguments(stored: str) -> SafeString:
    """The arguments of a call, one below the other."""

    def laid_out(text: str) -> str:
        args, kwargs = decode_call(text)
        lines = [_layout(value) for value in args]
        lines += [f"{name}={_layout(value)}" for name, value in kwargs.items()]
        return ",\n".join(lines)

    return _decoded(stored, laid_out) if stored else block(stored)


def result(stored: str | None) -> SafeString | None:
    """The value a job returned."""
    return None if stored is None else _decoded(stored, lambda text: _layout(decode_result(text)))


def json_text(stored: str | None) -> SafeString | None:
    """JSON text, indented; other text as it is."""

    def laid_out(text: str) -> str:
        value = json.loads(text)
        if not isinstance(value, dict | list):
            return text
        return json.dumps(value, indent=2, ensure_ascii=False)

    return None if stored is None else _decoded(stored, laid_out)


def error(stored: str | None) -> SafeString | None:
    """A stored error: what it says, then the traceback."""
    if stored is None:
        return None
    found = parse_error(stored)
    head = ": ".join(part for part in (found.errtype, found.message) if part)
    if not found.traceback:
        return block(head)
    return format_html(
        '<p class="flexiq-error">{}</p>{}',
        printable(head[:LONGEST_SHOWN]),
        block("\n".join(found.traceback)),
    )


def error_line(head: str | None) -> str | None:
    """One line about a stored error of which only the first ``ERROR_HEAD`` characters were read."""
    if head is None:
        return None
    if len(head) == ERROR_HEAD:
        head = _complete(head)
    line = printable(summarise_error(head) or "")
    return line if len(line) <= 160 else f"{line[:160]}…"


def listing(names: list[Any] | None) -> str | None:
    """Names with commas between them."""
    return None if names is None else ", ".join(printable(name) for name in names)


def _layout(value: Any) -> str:
    return pprint.pformat(value, width=100, sort_dicts=False)


def _decoded(stored: str, lay_out: Callable[[str], str]) -> SafeString:
    """The text laid out; as stored where it is too long for that or cannot be read."""
    if len(stored) > LONGEST_LAID_OUT:
        return block(stored)
    try:
        return block(lay_out(stored))
    except (FlexiQError, ValueError, TypeError, LookupError, RecursionError):
        return block(stored)


def _complete(head: str) -> str:
    """The beginning of a stored exception, cut anywhere, as one that can be parsed.

    The type and the message come first in the stored text, so that they survive a cut.
    """
    match = re.match(r'\{"errtype":("(?:[^"\\]|\\.)*"),"message":("(?:[^"\\]|\\.)*)', head)
    if match is None:
        return head
    errtype, message = match.groups()
    for end in range(len(message), max(len(message) - 14, 0), -1):
        try:
            json.loads(f'{message[:end]}"')
        except ValueError:  # the cut went through an escape
            continue
        return f'{{"errtype":{errtype},"message":{message[:end]}","traceback":[]}}'
    return head
