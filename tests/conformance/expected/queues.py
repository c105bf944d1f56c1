"""The facts of ``scenarios/queues.py``."""

from typing import Any

from .differing import ARCHIVE, LIMITS, REVOKE, Differs

FACTS: dict[str, dict[str, Any]] = {
    "queues": {
        "paused": ["mail"],
        "resume unknown": None,
        "paused takes jobs": "pending",
        "resumed": [],
        "rate '10'": Differs("ValueError", None, LIMITS),
        "rate '10/d'": Differs("ValueError", None, LIMITS),
        "rate '0/s'": Differs("ValueError", None, LIMITS),
        "rate '-1/s'": Differs("ValueError", None, LIMITS),
        "rate '5/s/s'": Differs("ValueError", None, LIMITS),
        "rate '2/S'": Differs("ValueError", None, LIMITS),
        "rate 'nan/s'": Differs("ValueError", None, LIMITS),
        "rate 'inf/s'": Differs("ValueError", None, LIMITS),
        "rate ''": Differs("ValueError", None, LIMITS),
        "rate '1/s'": None,
        "rate '1.5/sec'": None,
        "rate '1e1/second'": None,
        "rate '5/m'": None,
        "rate '5/min'": None,
        "rate '5/h'": None,
        "rate ' 5 / hr '": None,
        "concurrency 0": Differs("ValueError", None, LIMITS),
    },
    "purges": {
        "too young": 0,
        "purged": 1,
        "gone": True,
        "none of a queue": 0,
        "none of a task": 0,
        "purge": 2,
        "row stays": ["cancelled", "purged"],
        "revoke": 1,
        "revoked": ["cancelled", "revoked"],
        "enqueue of a revoked task": Differs("RuntimeError", None, REVOKE),
    },
    "archive": {
        "moved": Differs(1, 0, ARCHIVE),
        "again": 0,
        "archived": [True],
        "in stats": Differs(0, 1, ARCHIVE),
        "in list_jobs": Differs(0, 1, ARCHIVE),
        "found by id": "complete",
        "result": 1,
        "replayed": "pending",
        "limit -1": "ValueError",
    },
}
