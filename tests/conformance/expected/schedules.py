"""The facts of ``scenarios/schedules.py``."""

from typing import Any

from .differing import CRON, ROWS, ZONE, Differs

FACTS: dict[str, dict[str, Any]] = {
    "schedules": {
        "before a worker": [],
        "a row is a dict": Differs(True, False, ROWS),
        "fields": True,
        "row": Differs(
            ["tick", "* * * * * *", None, True, "UTC"],
            ["tick", "* * * * * *", "default", True, None],
            ZONE,
        ),
        "times": True,
        "whole seconds": 0,
        "job": [0, 3, 300_000, "default"],
        "key": "periodic:tick",
        "runs its task": [True, 1],
    },
    "schedules_by_hand": {
        "unknown": [False] * 3,
        "paused": [True, True, [False]],
        "resumed": [True, True, [True]],
        "deleted": [True, False, []],
    },
    "cron_texts": {
        "0 0 2 * * *": None,
        "@daily": None,
        "0 0 2 * * MON": None,
        "0 0 2 * * 0": Differs(None, "ValueError", CRON),
        "0 2 * * *": Differs(None, "ValueError", CRON),
        "nonsense": "ValueError",
        "0 0 25 * * *": "ValueError",
        "0 0 2 1 1 * 2099": Differs("ValueError", None, CRON),
        "day 7": Differs("Sunday 02", "Saturday 02", CRON),
    },
}
