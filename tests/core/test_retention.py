"""Windows: what may be asked for, which level counts, and the report of a cleaner."""

import dataclasses
import json
from typing import Any

import pytest

from flexiq_django.core.retention import (
    RECOMMENDED,
    TABLES,
    Retention,
    RetentionPolicy,
    decode_report,
    encode_report,
    keep_longest,
    policy_of,
    resolve_retention,
)

DEFAULTS = {
    "archived_jobs": 604_800_000,
    "dead_letter": 2_592_000_000,
    "task_logs": 259_200_000,
    "task_metrics": 604_800_000,
    "job_errors": 604_800_000,
}
OFF = dict.fromkeys(TABLES)


def test_the_fields_are_the_tables() -> None:
    assert TABLES == ("archived_jobs", "dead_letter", "task_logs", "task_metrics", "job_errors")
    assert Retention() == Retention(None, None, None, None, None)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("bad", [-1, -0.001, float("nan"), float("inf"), True, "7", 3_153_600_001])
def test_a_window_that_is_none_is_refused_by_its_name(table: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=f"^{table} is {bad!r}; allowed is"):
        Retention(**{table: bad})


@pytest.mark.parametrize("good", [0, 0.5, 604_800, None, 3_153_600_000])
def test_allowed_windows(good: Any) -> None:
    assert Retention(task_logs=good).task_logs == good


def test_an_unknown_table_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="jobs"):
        Retention(jobs=5)  # type: ignore[call-arg]


def test_windows_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Retention().task_logs = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("level", "enabled", "defaulted", "windows"),
    [
        ((None, None), True, True, DEFAULTS),
        ((Retention(), None), False, False, OFF),
        ((Retention(task_logs=10), None), True, False, {**OFF, "task_logs": 10_000}),
        ((None, 3_600), True, False, dict.fromkeys(TABLES, 3_600_000)),
        ((Retention(task_logs=10), 3_600), True, False, {**OFF, "task_logs": 10_000}),
        ((Retention(), 3_600), False, False, OFF),
        ((None, 0), True, False, dict.fromkeys(TABLES, 0)),
        ((None, 0.0015), True, False, dict.fromkeys(TABLES, 2)),
    ],
)
def test_what_follows_from_a_configuration(
    level: Any, enabled: bool, defaulted: bool, windows: Any
) -> None:
    assert resolve_retention(level) == RetentionPolicy(
        enabled=enabled, defaulted=defaulted, windows=windows
    )


def test_the_first_level_that_says_anything_counts() -> None:
    settings = (Retention(task_logs=1), 5.0)

    assert resolve_retention((None, 9), settings).windows == dict.fromkeys(TABLES, 9_000)
    assert not resolve_retention((Retention(), None), settings).enabled
    assert resolve_retention((None, None), settings).windows == {**OFF, "task_logs": 1_000}
    assert resolve_retention((None, None), (None, None)) == policy_of(RECOMMENDED, defaulted=True)


def test_of_several_policies_the_longest_windows() -> None:
    chosen = keep_longest(
        [
            policy_of(Retention(archived_jobs=5, task_logs=9, job_errors=1)),
            policy_of(Retention(archived_jobs=7, task_logs=2, dead_letter=1)),
        ]
    )

    assert chosen.windows == {**OFF, "archived_jobs": 7_000, "task_logs": 9_000}
    assert (chosen.enabled, chosen.defaulted) == (True, False)
    assert not keep_longest([policy_of(RECOMMENDED), policy_of(Retention())]).enabled


# --- the report -----------------------------------------------------------------------------------


def report(**changes: Any) -> str:
    text = encode_report(policy_of(RECOMMENDED), namespace="a", reported_at=5)
    return json.dumps({**json.loads(text), **changes})


def test_a_report_comes_back() -> None:
    found = decode_report(report())

    assert found is not None
    assert (found.namespace, found.reported_at, found.defaulted) == ("a", 5, False)
    assert (found.enabled, found.windows) == (True, DEFAULTS)


@pytest.mark.parametrize(
    "text",
    [
        None, "", "nonsense", "[]", "5", "null", "[" * 100_000,
        report(enabled=1), report(defaulted=None), report(namespace=None), report(reported_at="5"),
        report(windows=None), report(windows={}), report(windows={**DEFAULTS, "task_logs": "3 d"}),
    ],
    ids=lambda text: str(text)[:30],
)  # fmt: skip
def test_what_cannot_be_read_is_no_report(text: str | None) -> None:
    assert decode_report(text) is None


def test_a_report_may_say_more_than_we_know() -> None:
    found = decode_report(report(later=1, windows={**DEFAULTS, "sessions": 9}))

    assert found is not None
    assert found.windows == DEFAULTS
