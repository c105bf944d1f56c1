"""The facts of ``scenarios/sweeping.py``."""

from typing import Any

from .differing import LIFETIME, SCOPE, Differs

FACTS: dict[str, dict[str, Any]] = {
    "sweeps": {
        "its own lifetime is longer": True,
        "of another namespace": Differs(True, False, SCOPE),
        "waiting": "pending",
        "errors stay": 1,
        "figures stay": [2, 1],
        "letters stay": [True],
        "letter still works": "pending",
        "policy": [
            True,
            False,
            {
                "task_logs": None,
                "archived_jobs": 0,
                "job_errors": None,
                "task_metrics": None,
                "dead_letter": None,
            },
        ],
        "reported": True,
    },
    "lifetimes": {
        "without one": True,
        "errors": Differs(1, 2, LIFETIME),
        "figures": Differs(1, 2, LIFETIME),
        "letters": 1,
        "nothing is left": [False, 0],
    },
    "previews": {
        "own": [False, False, 0],
        "all": [
            False,
            {
                "archived_jobs": 2,
                "dead_letter": 1,
                "job_errors": 1,
                "task_logs": 0,
                "task_metrics": 2,
            },
            6,
        ],
        "some": 1,
        "time": True,
        "nothing is gone": [1, 1],
    },
    "retried_by_itself": {
        "once": [1, True],
        "dead": 2,
        "the first": "dead",
    },
}
