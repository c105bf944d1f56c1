"""What cannot be stored is refused before anything is written, with its type, path and advice."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections import OrderedDict, defaultdict, namedtuple
from datetime import datetime, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from flexiq_django.core import payload, wire
from flexiq_django.exceptions import PayloadTooLargeError, SerializationError

LIMIT = 1_048_576

Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


class Label(str):
    pass


class Stamp(datetime):
    pass


class Amount(Decimal):
    pass


@dataclasses.dataclass
class Order:
    number: int


class Model:
    _meta = object()
    pk = 7


class QuerySet:
    model = Model

    @property
    def query(self) -> str:
        raise AssertionError("looking at a refused value must not run its code")


class __proxy__:  # noqa: N801 - the name Django gives to lazy strings
    def __str__(self) -> str:
        return "lazy"


class OtherZone(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta:
        return timedelta(hours=1)


REFUSED = [
    (float("nan"), "finite"),
    (float("inf"), "finite"),
    (-float("inf"), "finite"),
    (Decimal("NaN"), "finite"),
    (Decimal("sNaN"), "finite"),
    (Decimal("Infinity"), "finite"),
    (Model(), "pass its pk"),
    (QuerySet(), "list of pks"),
    (__proxy__(), "call str()"),
    (Colour.RED, ".value"),
    (Level.HIGH, ".value"),
    (Word.YES, ".value"),
    (Label("x"), "a plain str"),
    (Stamp(2026, 1, 1), "a plain datetime"),
    (Amount(1), "a plain Decimal"),
    (Point(1, 2), "a plain tuple"),
    (OrderedDict(a=1), "a plain dict"),
    (defaultdict(int), "a plain dict"),
    (Order(1), "asdict"),
    (bytearray(b"x"), "bytes"),
    (memoryview(b"x"), "bytes"),
    (datetime(2026, 1, 1, tzinfo=OtherZone()), "zoneinfo.ZoneInfo"),
    (time(1, tzinfo=OtherZone()), "zoneinfo.ZoneInfo"),
    (object(), "object"),
    (1j, "complex"),
    (Fraction(1, 3), "fractions.Fraction"),
    (range(3), "range"),
    (iter([]), "list_iterator"),
    (ValueError("x"), "ValueError"),
    (Model, "type"),
    (len, "builtin_function_or_method"),
    (..., "ellipsis"),
]


@pytest.mark.parametrize(("value", "advice"), REFUSED, ids=lambda item: type(item).__name__)
@pytest.mark.parametrize(
    ("wrap", "where"),
    [
        (lambda value: value, ""),
        (lambda value: [0, {"a": [value]}], "[1]['a'][0]"),
        (lambda value: {1: (value,)}, "[1][0]"),
    ],
)
def test_unsupported_value_is_refused_by_path(
    value: Any, advice: str, wrap: Any, where: str
) -> None:
    with pytest.raises(SerializationError) as in_args:
        payload.encode_call((0, 1, wrap(value)), {}, limit_bytes=LIMIT)
    with pytest.raises(SerializationError) as in_kwargs:
        payload.encode_call((), {"items": wrap(value)}, limit_bytes=LIMIT)
    with pytest.raises(SerializationError) as in_result:
        payload.encode_result(wrap(value), limit_bytes=LIMIT)

    assert str(in_args.value).startswith(f"args[2]{where}: ")
    assert str(in_kwargs.value).startswith(f"kwargs['items']{where}: ")
    assert str(in_result.value).startswith(f"result{where}: ")
    assert advice in str(in_args.value)


@pytest.mark.parametrize("key", [Level.HIGH, Label("k"), float("nan"), Model(), (1, Colour.RED)])
def test_unsupported_key_is_refused(key: Any) -> None:
    with pytest.raises(SerializationError, match=r"^args\[0\]\{key\}"):
        payload.encode_call(({key: 1},), {}, limit_bytes=LIMIT)


def test_unsupported_element_of_a_set_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"^args\[0\]\{element\}: .*Colour"):
        payload.encode_call(({Colour.RED},), {}, limit_bytes=LIMIT)


def test_type_is_named_with_its_module() -> None:
    with pytest.raises(SerializationError, match=rf"{__name__}\.Model"):
        payload.encode_result(Model(), limit_bytes=LIMIT)


@pytest.mark.parametrize("key", [10**9000, (10**9000, 1)], ids=["int", "tuple"])
def test_key_that_cannot_be_printed_is_still_refused_by_path(key: Any) -> None:
    with pytest.raises(SerializationError, match=r"^result\[.+\]: a value of type object"):
        payload.encode_result({key: object()}, limit_bytes=LIMIT)


def test_long_key_does_not_flood_the_message() -> None:
    with pytest.raises(SerializationError) as caught:
        payload.encode_result({"k" * 10_000: object()}, limit_bytes=LIMIT)

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("args", ["abc", b"abc", {1: 2}, None, 5, iter([1])])
def test_args_are_a_list_or_tuple(args: Any) -> None:
    with pytest.raises(SerializationError, match="args is a list or tuple"):
        payload.encode_call(args, {}, limit_bytes=LIMIT)


@pytest.mark.parametrize("kwargs", [None, [], "a"])
def test_kwargs_are_a_dict(kwargs: Any) -> None:
    with pytest.raises(SerializationError, match="kwargs is a dict"):
        payload.encode_call((), kwargs, limit_bytes=LIMIT)


@pytest.mark.parametrize("name", [1, None, Label("x"), ("a",)])
def test_names_of_kwargs_are_str(name: Any) -> None:
    with pytest.raises(SerializationError, match="not a str"):
        payload.encode_call((), {name: 1}, limit_bytes=LIMIT)


def test_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})

    with pytest.raises(SerializationError, match=r"args\[0\]\[1\]\['again'\].*contains itself"):
        payload.encode_call((loop,), {}, limit_bytes=LIMIT)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: (inner,), lambda i: {1: i}])
def test_deep_nesting_is_refused_not_a_crash(wrap: Any) -> None:
    value: Any = 1
    for _ in range(5_000):
        value = wrap(value)

    with pytest.raises(SerializationError, match="nested deeper than 100 levels"):
        payload.encode_call((value,), {}, limit_bytes=LIMIT)


@pytest.mark.parametrize("leaf", [1, Decimal(1)])
def test_deepest_allowed_nesting_is_the_same_for_plain_and_tagged_values(leaf: Any) -> None:
    value = leaf
    for _ in range(wire.MAX_DEPTH):
        value = [value]

    assert round_trip_result(value) == value
    with pytest.raises(SerializationError):
        payload.encode_result([value], limit_bytes=LIMIT)


def test_deepest_nesting_of_the_widest_form_can_be_read() -> None:
    value: Any = 1
    for _ in range(wire.MAX_DEPTH):
        value = {1: value}

    assert round_trip_result(value) == value


def test_nesting_too_deep_for_the_stack_is_refused_not_a_crash() -> None:
    value: Any = Decimal(1)
    for _ in range(wire.MAX_DEPTH - 1):
        value = (value,)

    def dive(levels: int) -> Any:
        if levels:
            return dive(levels - 1)
        try:
            return round_trip_result(value)
        except SerializationError:
            return value

    here = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, here = frame.f_back, here + 1

    for room in range(15, 700, 35):
        assert dive(sys.getrecursionlimit() - here - room) == value


def round_trip_result(value: Any) -> Any:
    return payload.decode_result(payload.encode_result(value, limit_bytes=LIMIT))


# --- size -----------------------------------------------------------------------------------------


def test_limit_is_inclusive() -> None:
    assert payload.encode_result("x" * 8, limit_bytes=10) == '"xxxxxxxx"'


@pytest.mark.parametrize("value", ["x" * 9, b"x" * 9, [1, 2, 3, 4, 5]])
def test_more_than_the_limit_is_refused_with_both_sizes(value: Any) -> None:
    size = len(payload.encode_result(value, limit_bytes=LIMIT))

    with pytest.raises(PayloadTooLargeError, match=f"{size} bytes.*at most 10 bytes"):
        payload.encode_result(value, limit_bytes=10)


def test_large_arguments_are_refused_with_both_sizes() -> None:
    with pytest.raises(PayloadTooLargeError, match=r"arguments take 5000009 bytes.* 1048576 "):
        payload.encode_call(("x" * 5_000_000,), {}, limit_bytes=LIMIT)


@pytest.mark.parametrize("leaf", [1, Decimal(1)])
def test_small_structure_that_unfolds_without_end_is_refused(leaf: Any) -> None:
    value: Any = [leaf]
    for _ in range(90):
        value = [value, value]

    with pytest.raises(PayloadTooLargeError):
        payload.encode_call((value,), {}, limit_bytes=10_000)
