"""Raise an exception, record it, read the record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from flexiq_django.core import errors
from flexiq_django.core.errors import ParsedError

LIMIT = 65_536


def caught(action: Callable[[], Any]) -> BaseException:
    try:
        action()
    except BaseException as exc:
        return exc
    raise AssertionError("nothing was raised")


def raising(exc: BaseException) -> Callable[[], NoReturn]:
    def action() -> NoReturn:
        raise exc

    return action


def describe(exc: BaseException, limit: int = LIMIT) -> ParsedError:
    text = errors.describe_exception(exc, limit_bytes=limit)
    assert text.isascii()
    assert len(text) <= max(limit, errors.MIN_LIMIT_BYTES)
    stored = json.loads(text)
    assert sorted(stored) == ["errtype", "message", "traceback"]
    assert errors.clean_text(str(stored)) == str(stored)
    summary = errors.summarise_error(text)
    assert summary is not None
    assert "\n" not in summary
    assert len(summary) <= 500
    return errors.parse_error(text)
