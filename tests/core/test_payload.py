"""What goes into a payload comes out of it, of the same type and value, or is refused by path."""

# ruff: noqa: DTZ001, DTZ901 - naive values are among what has to come back

from __future__ import annotations

import string
import sys
from collections import UserDict
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexiq_django.core import payload, wire

LIMIT = 1_048_576
WARSAW = ZoneInfo("Europe/Warsaw")


def same(left: Any, right: Any) -> bool:
    """Equal in type and value all the way down; ``==`` takes 1 for True and forgets folds."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return same(list(left.items()), list(right.items()))
    if isinstance(left, set | frozenset):
        return left == right and sorted(map(repr, left)) == sorted(map(repr, right))
    if isinstance(left, datetime | time):
        zones = [(type(x.tzinfo), repr(x.tzinfo)) for x in (left, right)]
        plain = [x.replace(tzinfo=None) for x in (left, right)]
        return zones[0] == zones[1] and plain[0] == plain[1] and left.fold == right.fold
    if isinstance(left, float | Decimal):
        return repr(left) == repr(right)
    return bool(left == right)


def round_trip(value: Any) -> Any:
    text = payload.encode_result(value, limit_bytes=LIMIT)
    assert text.isascii()
    assert "\x00" not in text
    args, kwargs = payload.decode_call(
        payload.encode_call((value,), {"a": value}, limit_bytes=LIMIT)
    )
    assert same(args[0], kwargs["a"])
    assert same(args[0], payload.decode_result(text))
    return args[0]


# --- values that round-trip -----------------------------------------------------------------------

VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**63,
    -(2**64),
    10**700,
    -(10**5000),
    0.0,
    -0.0,
    1.0,
    1e-320,
    sys.float_info.max,
    "",
    "a\x00b",
    "zażółć \U0001f600",
    "\ud800",
    "\udcff tail",
    "\ud83d\ude00",
    "\ud83d\ude00" * 3 + "\udc00",
    '"$fq:tuple"',
    "$fq:",
    [],
    {},
    [[], {}, [{}]],
    {"": 1, "a": None},
    {"$fq:tuple": [1]},
    {"$fq:": 1, "b": 2},
    {"$fq:nothing": {"$fq:map": [[1, 2]]}},
    {"\ud83d\ude00": 1},
    {1: "int", "1": "str"},
    {True: 1, None: 2, 2.5: 3},
    {(1, "a"): {date(2026, 1, 1): ()}},
    {frozenset({1}): b""},
    (),
    (1,),
    ((), [()]),
    set(),
    {1, "a", None, (1, 2)},
    frozenset({frozenset({1}), 2}),
    b"",
    b"\x00\xff",
    Decimal("1.10"),
    Decimal("-0"),
    Decimal("1E+999"),
    UUID("12345678-1234-5678-1234-567812345678"),
    date(1, 1, 1),
    date.max,
    time(1, 2, 3, 4),
    time(1, 30, fold=1),
    time(1, 30, tzinfo=UTC),
    time(1, 30, tzinfo=WARSAW),
    timedelta(0),
    timedelta.min,
    timedelta.max,
    timedelta(microseconds=-1),
    datetime(2026, 7, 1, 12),
    datetime.min,
    datetime.max,
    datetime(2026, 10, 25, 2, 30, fold=1),
    datetime(2026, 7, 1, 12, 0, 0, 5, tzinfo=UTC),
    datetime(2026, 10, 25, 2, 30, tzinfo=WARSAW),
    datetime(2026, 10, 25, 2, 30, tzinfo=WARSAW, fold=1),
    datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(seconds=-1, microseconds=3))),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET")),
    datetime(2026, 1, 1, fold=1, tzinfo=UTC),
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_same_type_and_value_come_back(value: Any) -> None:
    back = round_trip(value)

    assert same(back, value), f"{value!r} came back as {back!r}"


OFFSETS = st.timedeltas(
    min_value=timedelta(hours=-23, minutes=-59), max_value=timedelta(hours=23, minutes=59)
)
NAMES = st.text(string.printable, min_size=1, max_size=5)
ZONES: st.SearchStrategy[tzinfo | None] = st.one_of(
    st.none(),
    st.just(UTC),
    st.sampled_from(["Europe/Dublin", "America/New_York", "Australia/Lord_Howe"]).map(ZoneInfo),
    OFFSETS.map(timezone),
    st.builds(timezone, OFFSETS, NAMES),
)
ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.sampled_from(
    ["$fq:map", "$fq:tuple", "$fq:x", "\ud83d\ude00", "\x00"]
)
HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    ANY_TEXT,
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.uuids(),
    st.dates(),
    st.timedeltas(),
    st.times(timezones=ZONES),
    st.datetimes(timezones=ZONES),
    st.datetimes().map(lambda moment: moment.replace(fold=1)),
)
KEYS = st.recursive(HASHABLE, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
ANYTHING = st.recursive(
    HASHABLE | st.frozensets(KEYS, max_size=3),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(ANY_TEXT, inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(KEYS, max_size=3),
    ),
    max_leaves=15,
)


@given(ANYTHING)
@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
def test_any_supported_structure_comes_back(value: Any) -> None:
    assert same(round_trip(value), value)


@given(ANYTHING)
@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
def test_encoding_is_repeatable(value: Any) -> None:
    text = payload.encode_result(value, limit_bytes=LIMIT)

    assert payload.encode_result(payload.decode_result(text), limit_bytes=LIMIT) == text


def test_call_comes_back_as_tuple_and_dict() -> None:
    text = payload.encode_call([1, "a"], {"b": (2,)}, limit_bytes=LIMIT)

    assert payload.decode_call(text) == ((1, "a"), {"b": (2,)})


def test_plain_call_is_plain_json() -> None:
    assert payload.encode_call((1, "a"), {"b": None}, limit_bytes=LIMIT) == '[[1,"a"],{"b":null}]'


def test_mapping_of_another_kind_serves_as_kwargs() -> None:
    text = payload.encode_call((), UserDict(a=1), limit_bytes=LIMIT)

    assert payload.decode_call(text) == ((), {"a": 1})


def test_equal_sets_make_equal_texts() -> None:
    words = [f"word{number}" for number in range(50)]

    texts = {payload.encode_result(set(order), limit_bytes=LIMIT) for order in (words, words[::-1])}

    assert len(texts) == 1


def test_plain_payload_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire.Writer, "write", None)
    monkeypatch.setattr(payload, "_decode_tagged", None)
    args = (1, "zażółć", [True, None, {"a": 1.5}])

    assert payload.decode_call(payload.encode_call(args, {}, limit_bytes=LIMIT)) == (args, {})


def test_stand_in_for_datetime_of_a_test_library_is_taken_for_what_it_stands_for() -> None:
    kind = type("FakeDatetime", (datetime,), {"__module__": "freezegun.api"})

    assert round_trip(kind(2026, 1, 2, tzinfo=UTC)) == datetime(2026, 1, 2, tzinfo=UTC)
