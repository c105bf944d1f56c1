"""Whether a worker may work with its database, at its start and later."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from flexiq_django.exceptions import ConfigurationError, ContractError
from flexiq_django.store import link, settings
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.process import WorkerProcess
from flexiq_django.worker.readiness import CONTRACT_SECONDS, require_ready, watch_contract
from tests.factories import at

pytestmark = pytest.mark.django_db


def call(verb: Callable[[], Any]) -> Any:
    return verb()


def test_a_migrated_database_is_ready() -> None:
    require_ready(at(), call)


def test_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "has_tables", lambda scope: False)

    with pytest.raises(ConfigurationError, match=r"manage\.py migrate$"):
        require_ready(at(), call)
    with pytest.raises(ConfigurationError, match="--database jobs"):
        require_ready(at(using="jobs"), call)


@pytest.mark.parametrize("floor", ["3", "x"])
def test_below_the_floor(floor: str) -> None:
    settings.put(at(), "contract:min_sdk", floor)

    with pytest.raises(ContractError):
        require_ready(at(), call)


def test_a_worker_does_not_start_below_the_floor() -> None:
    settings.put(at(), "contract:min_sdk", "3")

    worker = WorkerProcess(WorkerOptions(scope=at(), burst=True))

    with pytest.raises(ContractError, match="upgrade flexiq_django"):
        worker.run()
    worker.close()


def test_a_worker_that_comes_to_be_below_it_drains(caplog: pytest.LogCaptureFixture) -> None:
    refused: list[bool] = []
    act = lambda: refused.append(True)  # noqa: E731

    assert watch_contract(at(), call, act) == CONTRACT_SECONDS
    assert refused == []
    settings.put(at(), "contract:min_sdk", "3")
    assert watch_contract(at(), call, act) == math.inf  # once is enough
    assert refused == [True]
    assert "the worker stops: database 'default' asks for contract level 3" in caplog.text
