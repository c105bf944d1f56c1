"""Notes: what is allowed, how it is stored, what is refused."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from flexiq_django.core import payload
from flexiq_django.exceptions import NotesValidationError


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        (None, None),
        ({}, "{}"),
        ({"b": 1, "a": {"d": None, "c": [True, 1.5]}}, '{"a":{"c":[true,1.5],"d":null},"b":1}'),
        ({"miasto": "Łódź"}, '{"miasto":"Łódź"}'),
        ({"k" * 64: "v" * 500}, json.dumps({"k" * 64: "v" * 500}, separators=(",", ":"))),
        ({"a": {"b": {"c": 1}}}, '{"a":{"b":{"c":1}}}'),
        ({"a": {"b": {"c": {}}}}, '{"a":{"b":{"c":{}}}}'),
        ({str(number): number for number in range(15)}, ...),
    ],
)
def test_notes_are_compact_sorted_json(notes: Any, text: Any) -> None:
    encoded = payload.encode_notes(notes)

    assert text is ... or encoded == text
    assert payload.decode_notes(encoded) == notes


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        ([], "are a dict"),
        ("{}", "are a dict"),
        (OrderedDict(), "are a dict"),
        ({str(number): 1 for number in range(16)}, "16 entries; at most 15"),
        ({1: 1}, "keys are str"),
        ({"": 1}, "1 to 64"),
        ({"k" * 65: 1}, "1 to 64"),
        ({"a": {"k" * 65: 1}}, "1 to 64"),
        ({"a": "v" * 501}, "at most 500"),
        ({"a": [["v" * 501]]}, r"notes\['a'\]\[0\]\[0\]"),
        ({"a": {"b": {"c": {"d": 1}}}}, "deeper than 3"),
        ({"a": [[[1]]]}, "deeper than 3"),
        ({"a": math.nan}, "finite"),
        ({"a": [math.inf]}, "finite"),
        ({"a": Decimal(1)}, "Decimal"),
        ({"a": (1,)}, "tuple"),
        ({"a": Level.HIGH}, "Level"),
        ({"a": uuid4()}, "UUID"),
        ({"a": 10**5000}, "JSON"),
        ({str(number): "v" * 500 for number in range(9)}, "at most 4096"),
        ({str(number): "ż" * 300 for number in range(9)}, "at most 4096"),
        ({"a": "\x00"}, "NUL"),
        ({"a\x00": 1}, "NUL"),
        ({"a": "\ud800"}, "surrogate"),
    ],
)
def test_notes_against_the_rules_are_refused(notes: Any, reason: str) -> None:
    with pytest.raises(NotesValidationError, match=reason):
        payload.encode_notes(notes)


@pytest.mark.parametrize("text", [None, "", "nope", "[]", "1"])
def test_stored_text_that_is_no_notes_reads_as_none(text: str | None) -> None:
    assert payload.decode_notes(text) is None
