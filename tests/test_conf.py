"""FLEXIQ: known keys, checked values, read once and again when they change."""

import dataclasses
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import override_settings

from flexiq_django.conf import Settings, find_problems, get_settings
from flexiq_django.core.retention import TABLES, Retention
from flexiq_django.exceptions import ConfigurationError

KEYS = [field.name for field in dataclasses.fields(Settings)]
NAN, INF, HUGE = float("nan"), float("inf"), 10**400

SECONDS: list[Any] = ["60", None, True, -1, NAN, INF, HUGE, 1e12]
NAMES: list[Any] = ["", " a", "a ", None, 5, "n" * 101]
BAD: dict[str, list[Any]] = {
    "DATABASE": NAMES,
    "NAMESPACE": NAMES,
    "AUTODISCOVER_MODULE": NAMES,
    "DEFAULT_RETRY": [-1, 1.5, "3", None, True, 2**31],
    "DEFAULT_TIMEOUT": [0, *(value for value in SECONDS if value is not None)],
    "DEFAULT_PRIORITY": [1.5, "0", None, True, 2**31, -(2**31)],
    "RETENTION": [
        "7d",
        5,
        [],
        {"jobs": 5},
        {5: 5},
        {"task_logs": -1},
        {"task_logs": "5"},
        {"task_logs": True},
        {"task_logs": NAN},
        {"task_logs": INF},
        {"task_logs": HUGE},
    ],
    "RESULT_TTL": [value for value in SECONDS if value is not None],
    "DLQ_AUTO_RETRY_DELAY": [value for value in SECONDS if value is not None],
    "DLQ_AUTO_RETRY_MAX": [-1, 1.5, "3", None, True, 2**31],
    "ARCHIVE_AFTER": [value for value in SECONDS if value is not None],
    "LOCK_GRACE_SECONDS": [0, *SECONDS],
    "HEARTBEAT_SECONDS": [0, *(value for value in SECONDS if value is not None)],
    "STOP_TIMEOUT_SECONDS": SECONDS,
    "STRAY_GRACE_SECONDS": [0, *SECONDS],
    "POLL_SECONDS": [0, *SECONDS],
    "LISTEN": [0, 1, None, "yes"],
    "MAX_QUEUE_DEPTH": [0, -1, True, "5", {"mail": 0}, {"": 5}, [5]],
    "MAX_PAYLOAD_BYTES": [0, -1, 1.5, "1", None, True],
    "MAX_ERROR_BYTES": [0, 199, -1, 1.5, None, True],
    "DEPLOYMENT_ID": [value for value in NAMES if value is not None],
}
GOOD: dict[str, list[Any]] = {
    "DATABASE": ["other"],
    "NAMESPACE": ["a", "n" * 100, "with blank"],
    "AUTODISCOVER_MODULE": ["jobs"],
    "DEFAULT_RETRY": [0, 7, 2**31 - 1],
    "DEFAULT_TIMEOUT": [None, 0.5, 10],
    "DEFAULT_PRIORITY": [0, -5, 2**31 - 1, -(2**31) + 1],
    "RETENTION": [
        None,
        {},
        {"task_logs": 5},
        {"task_logs": None, "dead_letter": 0.5},
        dict.fromkeys(TABLES, 3_600),
    ],
    "RESULT_TTL": [None, 0, 1.5],
    "DLQ_AUTO_RETRY_DELAY": [None, 0, 0.5, 3_600],
    "DLQ_AUTO_RETRY_MAX": [0, 3, 2**31 - 1],
    "ARCHIVE_AFTER": [None, 0, 86_400.5],
    "LOCK_GRACE_SECONDS": [0.1, 60],
    "HEARTBEAT_SECONDS": [None, 5],
    "STOP_TIMEOUT_SECONDS": [0, 30],
    "STRAY_GRACE_SECONDS": [0.5, 60],
    "POLL_SECONDS": [0.05, 10],
    "LISTEN": [True, False],
    "MAX_QUEUE_DEPTH": [None, 1, {}, {"mail": 5, "*": 9}],
    "MAX_PAYLOAD_BYTES": [1, 10**9],
    "MAX_ERROR_BYTES": [200],
    "DEPLOYMENT_ID": [None, "blue"],
}


def pairs(values: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(key, value, id=f"{key}-{value!r:.12}")
        for key, each in values.items()
        for value in each
    ]


def test_every_key_is_tested() -> None:
    # OPERATOR holds a secret, so its problems name no values; see tests/core/test_operator.py.
    assert {*BAD, "OPERATOR"} == {*GOOD, "OPERATOR"} == set(KEYS)


def test_every_key_is_optional() -> None:
    with override_settings():
        del django_settings.FLEXIQ
        assert get_settings() == Settings()
    assert find_problems({}) == []


def test_the_defaults_are_allowed() -> None:
    assert find_problems(dataclasses.asdict(Settings())) == []


@pytest.mark.parametrize(("key", "value"), pairs(GOOD))
def test_a_good_value_is_in_force(key: str, value: Any) -> None:
    with override_settings(FLEXIQ={key: value}):
        assert getattr(get_settings(), key) == value


@pytest.mark.parametrize(("key", "value"), pairs(BAD))
def test_a_bad_value_is_refused_by_its_key(key: str, value: Any) -> None:
    (problem,) = find_problems({key: value})

    assert problem.startswith(f"FLEXIQ['{key}'] is {value!r}; it must be ")
    with override_settings(FLEXIQ={key: value}), pytest.raises(ConfigurationError, match=key):
        get_settings()


def test_an_unknown_key_is_told_the_known_ones() -> None:
    (problem,) = find_problems({"NAMESPACES": "a", "RETRIES": 1, "NAMESPACE": "a"})

    assert problem == (f"FLEXIQ has unknown keys NAMESPACES, RETRIES; known are {', '.join(KEYS)}.")


def test_every_problem_is_told_at_once() -> None:
    problems = find_problems({"NAMESPACE": "", "LISTEN": None})

    assert [problem.split()[0] for problem in problems] == [
        "FLEXIQ['NAMESPACE']", "FLEXIQ['LISTEN']"
    ]  # fmt: skip


@pytest.mark.parametrize("given", [None, [], "NAMESPACE", 5])
def test_anything_but_a_dict_is_refused(given: Any) -> None:
    assert find_problems(given) == [f"FLEXIQ is a {type(given).__name__}; it must be a dict."]


@override_settings(FLEXIQ={})
def test_a_change_of_the_settings_takes_effect_and_goes() -> None:
    with override_settings(FLEXIQ={"NAMESPACE": "one"}):
        assert get_settings().NAMESPACE == "one"
        with override_settings(FLEXIQ={"NAMESPACE": "two"}):
            assert get_settings().NAMESPACE == "two"
        assert get_settings().NAMESPACE == "one"
    assert get_settings().NAMESPACE == "default"


def test_other_settings_do_not_cost_a_new_look() -> None:
    known = get_settings()
    with override_settings(SITE_ID=5):
        assert get_settings() is known


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        get_settings().NAMESPACE = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, 15), ({"LOCK_GRACE_SECONDS": 8}, 2), ({"HEARTBEAT_SECONDS": 3}, 3)],
)
def test_a_heartbeat_is_a_quarter_of_the_grace_unless_said(given: Any, seconds: float) -> None:
    assert Settings(**given).heartbeat_seconds == seconds


def test_retention_becomes_windows() -> None:
    assert Settings().retention is None
    assert Settings(RETENTION={}).retention == Retention()
    assert Settings(RETENTION={"task_logs": 5}).retention == Retention(task_logs=5)


def test_the_operator_setting_becomes_rules_and_its_secret_is_never_shown() -> None:
    secret = "s" * 32
    given = {"ENABLED": True, "JWT": {"KEY": secret, "ALGORITHMS": ["HS256"]}}
    found = Settings(OPERATOR=given)
    assert (found.operator.ENABLED, Settings().operator.ENABLED) == (True, False)
    assert secret not in f"{found!r} {found.operator!r}"

    bad = {"OPERATOR": {"ENABLED": 1, "JWT": {"KEY": secret, "ALGORITHMS": ["none"]}}}
    problems = find_problems(bad)
    assert [problem.split()[0] for problem in problems] == [
        "FLEXIQ['OPERATOR']['ENABLED']",
        "FLEXIQ['OPERATOR']['JWT']['ALGORITHMS']",
    ]
    assert secret not in " ".join(problems)
