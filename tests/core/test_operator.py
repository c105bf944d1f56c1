"""What FLEXIQ["OPERATOR"] may say."""

from typing import Any

import pytest

from flexiq_django.core.operator import OperatorRules, TokenRules, find_problems, read_rules

SECRET = "s" * 64
PUBLIC = "-----BEGIN PUBLIC KEY-----"
JWT: dict[str, Any] = {"KEY": SECRET, "ALGORITHMS": ["HS256"]}


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"ENABLED": False},
        {"ENABLED": True, "JWT": None},
        {"ENABLED": True, "JWT": JWT},
        {"JWT": {"KEY": PUBLIC, "ALGORITHMS": ("RS256", "PS512")}},
        {"JWT": {**JWT, "AUDIENCE": "ops", "ISSUER": None, "SCOPE": "queue:admin", "LEEWAY": 5}},
    ],
    ids=str,
)
def test_good_values(given: Any) -> None:
    assert list(find_problems(given)) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (True, "is a bool; it must be a dict"),
        ({"ON": True}, "has unknown keys ON; known are ENABLED, JWT"),
        ({"ENABLED": "yes"}, "['ENABLED'] must be True or False"),
        ({"JWT": "secret"}, "['JWT'] is a str"),
        ({"JWT": {**JWT, "SECRET": 1}}, "['JWT'] has unknown keys SECRET"),
        ({"JWT": {"ALGORITHMS": ["HS256"]}}, "['KEY'] must be"),
        ({"JWT": {**JWT, "KEY": b"s" * 64}}, "['KEY'] must be"),
        ({"JWT": {**JWT, "KEY": "short"}}, "['KEY'] is too short for its algorithms: at least 32"),
        ({"JWT": {"KEY": "s" * 63, "ALGORITHMS": ["HS256", "HS512"]}}, "at least 64 bytes"),
        ({"JWT": {"KEY": SECRET}}, "['ALGORITHMS'] must be a list"),
        ({"JWT": {**JWT, "ALGORITHMS": "HS256"}}, "['ALGORITHMS'] must be a list"),
        ({"JWT": {**JWT, "ALGORITHMS": [["HS256"]]}}, "['ALGORITHMS'] must be a list"),
        ({"JWT": {**JWT, "ALGORITHMS": []}}, "['ALGORITHMS'] must be a list"),
        ({"JWT": {**JWT, "ALGORITHMS": ["none"]}}, "['ALGORITHMS'] must all be among"),
        ({"JWT": {**JWT, "ALGORITHMS": ["HS256", "RS256"]}}, "['ALGORITHMS'] must all be among"),
        ({"JWT": {**JWT, "ALGORITHMS": ["RS256", "ES256"]}}, "must all take the same kind of key"),
        ({"JWT": {**JWT, "ALGORITHMS": ["EdDSA", "ES256"]}}, "must all take the same kind of key"),
        ({"JWT": {**JWT, "AUDIENCE": 5}}, "['AUDIENCE'] must be a text"),
        ({"JWT": {**JWT, "SCOPE": "two words"}}, "['SCOPE'] must be one word"),
        ({"JWT": {**JWT, "SCOPE": None}}, "['SCOPE'] must be one word"),
        ({"JWT": {**JWT, "LEEWAY": -1}}, "['LEEWAY'] must be a number"),
    ],
    ids=str,
)
def test_bad_values_are_named(given: Any, said: str) -> None:
    (problem,) = find_problems(given)
    assert said in problem


def test_rules_are_off_unless_switched_on() -> None:
    assert read_rules(None) == read_rules({}) == OperatorRules(ENABLED=False, JWT=None)
    assert read_rules({"ENABLED": True, "JWT": JWT}) == OperatorRules(
        ENABLED=True, JWT=TokenRules(KEY=SECRET, ALGORITHMS=("HS256",))
    )
