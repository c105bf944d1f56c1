"""The facts of ``scenarios/dispatch.py``."""

from typing import Any

from .differing import PAUSED, REFUSED, SERVES, Differs

FACTS: dict[str, dict[str, Any]] = {
    "dispatch": {
        "never early": True,
        "delay": True,
        "a queue nobody named": Differs("complete", "pending", SERVES),
    },
    "paused_from_the_start": {
        "paused": ["default"],
        "job": Differs("pending", "complete", PAUSED),
        "empty name": Differs("ValueError", None, REFUSED),
        "resumed": 1,
    },
    "coroutines": {
        "result": 2,
        "knows its job": True,
        "progress": 50,
        "lines": ["from a coroutine"],
        "asked to stop": "cancelled",
    },
}
