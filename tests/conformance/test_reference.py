"""The reference's answers, where FLEXIQ_REFERENCE_PYTHON names an interpreter that has it."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.expected import ANY, EXPECTED, Differs

INTERPRETER = os.environ.get("FLEXIQ_REFERENCE_PYTHON")
MARK = "FACTS"

pytestmark = pytest.mark.skipif(
    not INTERPRETER, reason="FLEXIQ_REFERENCE_PYTHON names no interpreter with the reference"
)


#: It mostly waits for its own looks, so several processes share the work; the slow ones come first.
PROCESSES = 4
SLOW = ("schedules", "retried_by_itself")


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """The facts of every scenario, asked once."""
    names = [*SLOW, *(name for name in EXPECTED if name not in SLOW)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        parts = pool.map(_ask, [names[first::PROCESSES] for first in range(PROCESSES)])
        return {name: facts for part in parts for name, facts in part.items()}


def _ask(names: list[str]) -> dict[str, Any]:
    program = Path(__file__).with_name("reference.py")
    done = subprocess.run(
        [str(INTERPRETER), str(program), *names], capture_output=True, text=True, timeout=110
    )
    # Its workers print a banner of their own, also into the middle of a line.
    lines = [line.partition(MARK)[2] for line in done.stdout.splitlines() if MARK in line]
    found = dict(json.loads(line) for line in lines)
    assert set(found) == set(names), done.stderr[-4_000:]
    return found


@pytest.mark.parametrize("scenario", EXPECTED)
def test_reference(scenario: str, answers: dict[str, Any]) -> None:
    facts = answers[scenario]
    for name, each in EXPECTED[scenario].items():
        wanted = each.reference if isinstance(each, Differs) else each
        assert wanted is ANY or facts[name] == wanted, (name, facts.get(name, facts))
