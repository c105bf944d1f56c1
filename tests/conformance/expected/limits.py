"""The facts of ``scenarios/limits.py``."""

from typing import Any

from .differing import STORED, Differs

FACTS: dict[str, dict[str, Any]] = {
    "rate_limits": {
        "of a queue": 2,
        "held": [[0, None]],
        "no failure": [],
        "of a task": ["complete", "complete", "pending"],
        "others go on": "complete",
        "a task's wrong limit": "ValueError",
    },
    "limits_of_another_object": {
        "jobs that ran": Differs(1, 2, STORED),
    },
    "concurrency_limits": {
        "counts": [2, []],
        "of a queue": 1,
        "of a task": 1,
        "without": 2,
    },
}
