"""Lanes: one name for a queue and a deployment, and back."""

import pytest

from flexiq_django.core.lanes import SEPARATOR, Lane, lane_name, parse_lane


@pytest.mark.parametrize(
    ("lane", "name"),
    [
        (Lane("mail"), "mail"),
        (Lane("mail", None), "mail"),
        (Lane("mail", "blue"), "mail\x1fblue"),
        (Lane("a b:c/d", "e|f"), "a b:c/d\x1fe|f"),
        (Lane("q" * 100, "d" * 100), "q" * 100 + "\x1f" + "d" * 100),
    ],
)
def test_there_and_back(lane: Lane, name: str) -> None:
    assert lane_name(*lane) == name
    assert parse_lane(name) == lane


def test_no_two_lanes_share_a_name() -> None:
    parts = ["a", "b", "ab", "a b", "b a"]
    lanes = {Lane(queue, deployment) for queue in parts for deployment in [None, *parts]}

    assert len({lane_name(*lane) for lane in lanes}) == len(lanes)


def test_the_separator_is_in_no_printable_name() -> None:
    assert not SEPARATOR.isprintable()
