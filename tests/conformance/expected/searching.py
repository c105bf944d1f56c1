"""The facts of ``scenarios/searching.py``."""

from typing import Any

from .differing import KNOWN, LIKE, Differs

FACTS: dict[str, dict[str, Any]] = {
    "searches": {
        "part of an error": 1,
        "part of a traceback": 1,
        "no error": 0,
        "both": 1,
        "status too": 0,
        "case": Differs(1, 2, LIKE),
        "percent": Differs(0, 2, LIKE),
        "underline": 1,
        "an underline for a blank": Differs(0, 1, LIKE),
    },
    "cursors": {
        **{
            f"{listing} {cursor!r}": "ValueError"
            for listing in ("archived", "letters", "filtered")
            for cursor in ("garbage", "", ":", "abc:def")
        },
        **{
            f"{listing} {name}": fact
            for listing in ("archived", "letters", "filtered")
            for name, fact in (("limit -1", "ValueError"), ("limit 0", 0), ("short", None))
        },
        "archived pages": [3, True],
        "letter pages": [3, True],
        "default limits": [1, 1],
    },
    "percentiles": {
        "of two the upper": [True, True],
        "of three the middle": True,
        "the highest": True,
        "two decimals": True,
        "since 0": {},
        "unknown task": {},
        "the first begins then": True,
        "buckets": [3],
        "pending has none": ["probe"],
    },
    "empty_queues": {
        "of declared tasks": Differs(["default"], [], KNOWN),
        "known": Differs(["busy", "default", "mail", "reports"], ["busy"], KNOWN),
        "all zero": 0,
        "busy": {
            "pending": 1,
            "running": 0,
            "completed": 0,
            "failed": 0,
            "dead": 0,
            "cancelled": 0,
        },
    },
}
