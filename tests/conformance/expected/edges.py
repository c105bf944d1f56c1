"""The facts of ``scenarios/edges.py``."""

from typing import Any

from .differing import FRACTIONS, LEVEL, REFUSED, TIMES, Differs

_BROKEN = Differs(None, "TypeError", FRACTIONS)

FACTS: dict[str, dict[str, Any]] = {
    "types_of_options": {
        "timeout 1.5": Differs(False, True, FRACTIONS),
        "metadata {}": True,
        "priority 2**31": True,
        "priority -2**31": True,
        "priorities": [2**31 - 1, 1 - 2**31],
        "delay 0.5": True,
        "max_retries 0": 0,
        "notes {}": "{}",
        "no notes": None,
        "notes are no dict": "ValueError",
        "note of infinity": "ValueError",
        "result_ttl 0": None,
        "expires 0": None,
        "unique_key wins": "u",
        "progress 1.5": True,
        "progress '5'": True,
        "progress None": True,
        "progress 100": None,
        "progress of unknown": "RuntimeError",
        "level -1": Differs("InvalidOptionError", True, LEVEL),
        "retry -1 of a queue": Differs("ValueError", None, REFUSED),
        "outside a job": ["RuntimeError"] * 4,
    },
    "idempotent": {
        "key": ["auto:", 37],
        "same arguments": True,
        "other arguments": False,
        "not this time": False,
        "a key of its own": "k",
        "without": False,
        "this time": True,
        "another task": False,
    },
    "ages": {
        "purge_completed None": "TypeError",
        "purge_completed '1'": "TypeError",
        "purge_completed 99.5": _BROKEN,
        "purge_completed huge": 0,
        "purge_dead None": "TypeError",
        "purge_dead '1'": "TypeError",
        "purge_dead 99.5": _BROKEN,
        "purge_dead huge": 0,
        "archive None": "TypeError",
        "archive '1'": "TypeError",
        "archive 99.5": _BROKEN,
        "archive huge": 0,
        "dead ones stay": [None, "dead"],
    },
    "moments": {
        "this millisecond and after": 1,
        "this millisecond and before": 1,
        "later": 0,
        "earlier": 0,
        "aware": Differs(None, "TypeError", TIMES),
        "naive": True,
        "a word": True,
    },
}
