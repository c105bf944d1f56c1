"""What the settings and the queues say of dead letters that are retried by themselves."""

from typing import Any

import pytest

from flexiq_django import Queue
from flexiq_django.api import auto_retry
from flexiq_django.api.auto_retry import auto_retry_for
from flexiq_django.core.records import AutoRetry
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.management.commands.flexiq_worker import Command, worker_options
from flexiq_django.store.scope import Scope


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> list[Queue]:
    """The queues there are, instead of those of other tests."""
    queues: list[Queue] = []
    monkeypatch.setattr(auto_retry, "declared_queues", lambda: queues)
    return queues


@pytest.mark.parametrize(
    ("flexiq", "expected"),
    [
        ({}, None),
        ({"DLQ_AUTO_RETRY_MAX": 5}, None),
        ({"DLQ_AUTO_RETRY_DELAY": 1.5}, AutoRetry(1_500, 3)),
        ({"DLQ_AUTO_RETRY_DELAY": 0, "DLQ_AUTO_RETRY_MAX": 1}, AutoRetry(0, 1)),
        ({"DLQ_AUTO_RETRY_DELAY": 60, "DLQ_AUTO_RETRY_MAX": 0}, None),
    ],
)
def test_the_settings_say_when(
    settings: Any, declared: list[Queue], flexiq: dict[str, Any], expected: AutoRetry | None
) -> None:
    settings.FLEXIQ = flexiq
    assert auto_retry_for(Scope()) == expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([{}], AutoRetry(60_000, 3)),
        ([{"dlq_auto_retry_delay": 5}], AutoRetry(5_000, 3)),
        ([{"dlq_auto_retry_max": 1}, {}], AutoRetry(60_000, 1)),
        ([{"dlq_auto_retry_max": 0}], None),
        ([{"dlq_auto_retry_delay": 5}, {"dlq_auto_retry_delay": 9}], AutoRetry(9_000, 3)),
        ([{"dlq_auto_retry_max": 9}, {"dlq_auto_retry_max": 2}], AutoRetry(60_000, 2)),
    ],
    ids=str,
)
def test_a_queue_outranks_them_in_its_namespace(
    settings: Any, declared: list[Queue], own: list[dict[str, Any]], expected: AutoRetry | None
) -> None:
    settings.FLEXIQ = {"DLQ_AUTO_RETRY_DELAY": 60}
    declared += [Queue("a", **options) for options in own]

    assert auto_retry_for(Scope(namespace="a")) == expected
    assert auto_retry_for(Scope(namespace="b")) == AutoRetry(60_000, 3)


@pytest.mark.parametrize(
    "options",
    [{"dlq_auto_retry_delay": -1}, {"dlq_auto_retry_delay": "5"}, {"dlq_auto_retry_max": -1},
     {"dlq_auto_retry_max": 1.5}, {"dlq_auto_retry_max": True}],
    ids=str,
)  # fmt: skip
def test_a_bad_value_is_refused_where_the_queue_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        Queue("a", **options)


def test_a_worker_is_told_and_publishes_it(settings: Any, declared: list[Queue]) -> None:
    settings.FLEXIQ = {"DLQ_AUTO_RETRY_DELAY": 60}
    given = vars(Command().create_parser("manage.py", "flexiq_worker").parse_args([]))

    options = worker_options(given)

    assert options.auto_retry == AutoRetry(60_000, 3)
    assert options.fleet_values["dlq_auto_retry"] == {"delay_ms": 60_000, "most": 3}
    settings.FLEXIQ = {}
    options = worker_options(given)
    assert (options.auto_retry, options.fleet_values["dlq_auto_retry"]) == (None, None)
