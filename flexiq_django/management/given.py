"""What commands share: where to look, what went wrong, a question, a progress line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper
from django.db import Error as DjangoDatabaseError

from flexiq_django.api import options as check
from flexiq_django.conf import get_settings
from flexiq_django.exceptions import ConfigurationError, FlexiQError
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import gist, known_aliases

#: The exit code of a program that Ctrl-C has ended.
INTERRUPTED = 130


def add_scope_arguments(parser: CommandParser) -> None:
    """``--namespace`` and ``--database``."""
    parser.add_argument("--namespace", help="Default: the NAMESPACE setting.")
    parser.add_argument("--database", help="Database alias. Default: the DATABASE setting.")


def scope_of(given: Mapping[str, Any]) -> Scope:
    """Where the options point. Raises ``FlexiQError``."""
    settings = get_settings()
    alias = given.get("database") or settings.DATABASE
    if alias not in known_aliases():
        raise ConfigurationError(
            f"there is no database {alias!r}; DATABASES has {', '.join(known_aliases())}"
        )
    namespace = given.get("namespace") or settings.NAMESPACE
    return Scope(using=alias, namespace=check.check_name("--namespace", namespace, longest=100))


def queue_names(text: str | None) -> tuple[str, ...] | None:
    """The names in ``--queues``; ``None`` for every queue.

    Raises ``FlexiQError``, and ``CommandError`` for no name at all: a variable that is empty by
    mistake must not make a worker serve what it was not meant for.
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandError("name at least one queue, or leave --queues out", returncode=2)
    return tuple(check.check_name("--queues", name, longest=100) for name in names)


@contextlib.contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Leave without a traceback when a person at the terminal has had enough."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError("interrupted", returncode=INTERRUPTED) from None


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """What went wrong as a sentence, without a traceback."""
    try:
        yield
    except (FlexiQError, NotImplementedError) as error:
        raise CommandError(str(error)) from None
    except DjangoDatabaseError as error:
        raise CommandError(complaint(error)) from None


def complaint(error: DjangoDatabaseError) -> str:
    """What a database error means to whoever typed the command."""
    return f"the database cannot be read ({gist(error)}). Is it up, and have you run migrate?"


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if a person agrees, or ``--yes`` was given. Raises ``CommandError``."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} There is nobody to ask: say --yes if this is meant.")
    try:
        answer = input(f"{question} [y/N] ")
    except (EOFError, KeyboardInterrupt):
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was changed")


class ProgressLine:
    """How far a long run has come, on one line of a terminal; silent elsewhere."""

    def __init__(self, out: OutputWrapper, total: int) -> None:
        self._out, self._total, self._done = out, total, 0
        self._is_shown = out.isatty()

    def add(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        if self._is_shown:
            self._write(f"\r{self._done:,} of {max(self._total, self._done):,}")

    def end(self) -> None:
        """Leave the line."""
        if self._is_shown and self._done:
            self._write("\n")

    def _write(self, text: str) -> None:
        self._out.write(text, style_func=str, ending="")
        self._out.flush()
