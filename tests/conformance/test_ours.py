"""Our answers to the questions of the scenarios, on the database under test."""

import json
from collections.abc import Callable

import pytest

from tests.conformance import scenarios
from tests.conformance.expected import EXPECTED, Differs
from tests.conformance.ours import Ours

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS, ids=lambda each: each.__name__)
def test_ours(scenario: Callable[[scenarios.Bench], scenarios.Facts]) -> None:
    facts = json.loads(json.dumps(scenario(Ours()), default=str))
    expected = EXPECTED[scenario.__name__]

    assert facts == {
        name: each.ours if isinstance(each, Differs) else each for name, each in expected.items()
    }


def test_every_scenario_has_its_facts() -> None:
    assert set(EXPECTED) == {scenario.__name__ for scenario in scenarios.SCENARIOS}
