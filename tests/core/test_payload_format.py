"""The stored text itself: its format is kept, and text that is not in it is a named error."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from flexiq_django.core import payload
from flexiq_django.exceptions import SerializationError

LIMIT = 1_048_576
WARSAW = ZoneInfo("Europe/Warsaw")

BROKEN = [
    " ",
    "nope",
    "[1",
    "NaN",
    "[Infinity]",
    '{"$fq:nothing":1}',
    '{"$fq:uuid":"x"}',
    '{"$fq:uuid":1}',
    '{"$fq:bytes":"*"}',
    '{"$fq:tuple":"ab"}',
    '{"$fq:set":[[]]}',
    '{"$fq:map":[[1]]}',
    '{"$fq:map":["ab"]}',
    '{"$fq:decimal":"x"}',
    '{"$fq:datetime":"yesterday"}',
    '{"$fq:datetime":["2026-01-01",0,"Nowhere/City"]}',
    '{"$fq:datetime":["2026-01-01",0,"../etc/passwd"]}',
    '{"$fq:datetime":["2026-01-01",7,null]}',
    '{"$fq:timedelta":[1e300]}',
    '{"$fq:int":"g"}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:50])
def test_broken_text_is_a_named_error(text: str) -> None:
    with pytest.raises(SerializationError):
        payload.decode_result(text)
    with pytest.raises(SerializationError):
        payload.decode_call(f"[[0,{text}],{{}}]")


@pytest.mark.parametrize(
    "text", ["1", "[]", "[1,2]", "[{},[]]", "[[],{},1]", '[[],{"$fq:map":[[1,2]]}]']
)
def test_text_that_is_no_call_is_a_named_error(text: str) -> None:
    with pytest.raises(SerializationError):
        payload.decode_call(text)


def test_stored_value_is_text() -> None:
    with pytest.raises(SerializationError, match="NoneType"):
        payload.decode_result(None)  # type: ignore[arg-type]


def test_format_of_stored_payloads_does_not_change() -> None:
    """Jobs stored by one release are read by the next: this text is a contract."""
    args = (
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, tzinfo=WARSAW, fold=1),
        date(2026, 1, 2),
        time(3, 4),
        timedelta(days=1, seconds=2, microseconds=3),
        Decimal("1.10"),
        UUID(int=1),
        b"ab",
        (1,),
        {2},
        frozenset({3}),
        {4: 5},
        10**640,
        "\ud83d\ude00",
    )
    text = (
        '[[{"$fq:datetime":"2026-01-02T03:04:05+00:00"},'
        '{"$fq:datetime":["2026-10-25T02:30:00",1,"Europe/Warsaw"]},'
        '{"$fq:date":"2026-01-02"},{"$fq:time":"03:04:00"},{"$fq:timedelta":[1,2,3]},'
        '{"$fq:decimal":"1.10"},{"$fq:uuid":"00000000-0000-0000-0000-000000000001"},'
        '{"$fq:bytes":"YWI="},{"$fq:tuple":[1]},{"$fq:set":[2]},{"$fq:frozenset":[3]},'
        f'{{"$fq:map":[[4,5]]}},{{"$fq:int":"{hex(10**640)}"}},'
        '{"$fq:str":["\\ud83d","\\ude00"]}],{}]'
    )

    assert payload.encode_call(args, {}, limit_bytes=LIMIT) == text
    assert payload.decode_call(text) == (args, {})
