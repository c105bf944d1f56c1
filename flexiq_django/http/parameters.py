"""Query parameters: what each may be. The views read by this table, the description prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flexiq_django.http.answers import RefusedError

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One query parameter. The kind of value is that of ``default``; a tuple may be repeated.

    ``choices`` are all that is allowed; ``known`` are those that mean something, while any other
    text counts as the default.
    """

    name: str
    default: int | bool | str | tuple[str, ...]
    description: str
    choices: Sequence[str] = ()
    known: Sequence[str] = ()
    least: int = 1
    most: int = 1

    def read(self, texts: Sequence[str]) -> Any:
        """The value that a query gives it. Raises ``RefusedError`` with a reason."""
        if isinstance(self.default, tuple):
            return tuple(dict.fromkeys(self._choice(text) for text in texts)) or self.default
        if not texts:
            return self.default
        if len(texts) > 1:
            raise RefusedError(400, f"{self.name} is given {len(texts)} times; once is allowed")
        (text,) = texts
        if isinstance(self.default, bool):
            if text.lower() not in _BOOLEANS:
                raise self._refusal(text, "true or false")
            return _BOOLEANS[text.lower()]
        if isinstance(self.default, int):
            return self._number(text)
        if self.known:
            return text if text in self.known else self.default
        return self._choice(text)

    def _choice(self, text: str) -> str:
        if text not in self.choices:
            raise self._refusal(text, ", ".join(self.choices))
        return text

    def _number(self, text: str) -> int:
        # Digits alone: int() would also take blanks, underscores and digits of other scripts.
        if text.isascii() and text.isdigit() and len(text) < 20:
            number = int(text)
            if self.least <= number <= self.most:
                return number
        raise self._refusal(text, f"a whole number from {self.least} to {self.most}")

    def _refusal(self, text: str, allowed: str) -> RefusedError:
        shown = text if len(text) <= 50 else f"{text[:50]}..."
        return RefusedError(400, f"{self.name} is {shown!r}; allowed is {allowed}")


def read_query(query: QueryDict, parameters: Sequence[Parameter]) -> Mapping[str, Any]:
    """The values of a query by name.

    Raises ``RefusedError`` with a reason, also for a name that the table does not have: it may be a
    misspelt one, and then what was asked for would not be done.
    """
    known = [each.name for each in parameters]
    for name in query:
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise RefusedError(400, f"there is no parameter {name[:50]!r}; allowed: {allowed}")
    return {each.name: each.read(query.getlist(each.name)) for each in parameters}
