"""The facts of ``scenarios/by_hand.py``."""

from typing import Any

from .differing import ANY, ARCHIVE, ORDER, PLAIN, RESERVED, Differs

FACTS: dict[str, dict[str, Any]] = {
    "letters_by_hand": {
        "deleted": True,
        "gone": [],
        "again": False,
        "the job stays": [1, 1],
        "metadata that is no JSON": Differs("no JSON", ANY, PLAIN),
        "copy": [None, 0, None, None],
        "the first stays dead": "dead",
    },
    "replays_by_hand": {
        "newest first": Differs(True, ANY, ORDER),
        "no error": [None, None],
        "priority": 6,
        "result": 1,
        "archived at once": Differs(0, 3, ARCHIVE),
        "history goes with the job": [],
        "figures go too": {},
    },
    "odd_settings": {
        "empty key": None,
        "a key of the queue's own": Differs("ValueError", None, RESERVED),
        "a report nobody can read": None,
        "floors": {"99": "RuntimeError", "nonsense": "RuntimeError"},
        "opens again": None,
        "windows of 0": [0],
    },
}
