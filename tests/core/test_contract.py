"""The contract level: which floors let this build in, and which it may set."""

from typing import Any

import pytest

from flexiq_django.core import contract
from flexiq_django.exceptions import ContractError, InvalidOptionError


@pytest.fixture(autouse=True)
def levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of level 5 that can read rows from level 3 on."""
    monkeypatch.setattr(contract, "LEVEL", 5)
    monkeypatch.setattr(contract, "OLDEST", 3)


def test_without_a_floor_it_is_the_oldest() -> None:
    assert contract.parse_floor(None, using="jobs") == 3


@pytest.mark.parametrize(
    ("text", "floor"), [("3", 3), ("0", 0), ("007", 7), ("999999999", 999999999)]
)
def test_floors(text: str, floor: int) -> None:
    assert contract.parse_floor(text, using="jobs") == floor


@pytest.mark.parametrize("text", ["", "two", "-1", "2.0", " 2", "2\n", "²", "1e3", "9" * 10])
def test_a_floor_that_is_none_refuses(text: str) -> None:
    with pytest.raises(ContractError, match=r"contract:min_sdk in database 'jobs' is .*upgrade"):
        contract.parse_floor(text, using="jobs")


@pytest.mark.parametrize("floor", [0, 3, 4, 5])
def test_a_floor_up_to_our_level_lets_us_in(floor: int) -> None:
    contract.require_level(floor, using="jobs")


def test_a_floor_above_our_level_says_what_to_upgrade() -> None:
    with pytest.raises(ContractError, match=r"level 6 or newer.*level 5: upgrade flexiq_django"):
        contract.require_level(6, using="jobs")


def test_what_refuses_is_a_runtime_error() -> None:
    assert issubclass(ContractError, RuntimeError)


@pytest.mark.parametrize("level", [3, 4, 5])
def test_levels_this_build_may_set(level: int) -> None:
    assert contract.check_level(level) == level


@pytest.mark.parametrize("level", [2, 6, -1, True, 3.0, "3", None])
def test_levels_it_may_not_set(level: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^level is .* from 3 .* to 5"):
        contract.check_level(level)
