"""The facts of ``scenarios/timing.py``."""

from typing import Any

from .differing import MODULE, TIMEOUT, WAITS, Differs

FACTS: dict[str, dict[str, Any]] = {
    "timeouts": {
        "no time left": ["dead", True],
        "stored as it is": [True],
        "letter": [True],
        "retried": ["complete", 1],
        "result of the other attempt": "second",
        "its errors": 1,
        "executions": [3, 2],
        "its real time is measured": Differs(True, False, TIMEOUT),
    },
    "late_but_unnoticed": {
        "a body that returns too late": Differs("dead", "complete", TIMEOUT),
    },
    "soft_timeouts": {
        "end": ["dead", 1],
        "says": Differs("flexiq_django.exceptions.SoftTimeoutError", "SoftTimeoutError", MODULE),
        "in time": "complete",
        "none": "complete",
    },
    "waits": {
        "listed": 40,
        "between": ["pending", 1, None, None, None],
        "jittered within": True,
        "jitter begins at nothing": True,
        "jitter reaches far": True,
        "each is drawn": True,
        "capped": True,
        "capped but drawn": True,
        "past the end of the list": Differs("dead", "pending", WAITS),
    },
}
